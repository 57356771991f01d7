"""A disk that records, fails and forgets: the calls of a commit, and what a power cut leaves."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

# Calls of the operating system that change a disk, or wait for it.
CALLS = ("open", "write", "fsync", "replace", "unlink", "close", "listdir", "mkdir")
Files = dict[str, bytes]
# Which calls fail, from call `at` on: that one alone, all of them, or only flushes.
FAILS: dict[str, Callable[[int, int, str], bool]] = {
    "once": lambda now, at, call: now == at,
    "lasting": lambda now, at, call: now >= at,
    "flushes": lambda now, at, call: now >= at and call == "fsync",
}


@dataclass
class Recorder:
    """Notes every call; `before` runs ahead of each and may raise, or end the process."""

    before: Callable[[int, str], None] = lambda number, call: None
    calls: list[str] = field(default_factory=list)
    changes: list[tuple[Any, ...]] = field(default_factory=list)
    handles: dict[int, str] = field(default_factory=dict)

    def wrap(self, call: str) -> Callable[..., Any]:
        real = getattr(os, call)

        def wrapped(*args: Any, **options: Any) -> Any:
            self.before(len(self.calls), call)
            self.calls.append(call)
            found = real(*args, **options)
            self.note(call, args, found)
            return found

        return wrapped

    def note(self, call: str, args: tuple[Any, ...], found: Any) -> None:
        if call == "open":
            name = Path(args[0]).name
            self.handles[found] = "" if Path(args[0]).is_dir() else name
            if args[1] & os.O_CREAT:
                self.changes.append(("create", name))
        elif call == "write":
            self.changes.append(("write", self.handles[args[0]], bytes(args[1][:found])))
        elif call == "fsync":
            self.changes.append(("flush", self.handles.get(args[0], "")))
        elif call == "replace":
            self.changes.append(("rename", Path(args[0]).name, Path(args[1]).name))
        elif call == "unlink":
            self.changes.append(("unlink", Path(args[0]).name))


@contextmanager
def recording(before: Callable[[int, str], None] | None = None) -> Iterator[Recorder]:
    """Record all calls of a block, in this process."""
    recorder = Recorder(before) if before is not None else Recorder()
    with pytest.MonkeyPatch.context() as patch:
        for call in CALLS:
            patch.setattr(os, call, recorder.wrap(call))
        yield recorder


def power_cuts(
    files: Files, changes: list[tuple[Any, ...]], *, at_end: bool = False
) -> Iterator[Files]:
    """Yield every folder that a power cut may leave, at any point of these changes or `at_end`.

    Names that are not flushed may be lost, each on its own. Bytes that are not flushed may be
    lost, whole or in part. What was flushed stays.
    """
    seen = set()
    for point in range(len(changes) if at_end else 0, len(changes) + 1):
        for found in _states(files, changes[:point]):
            key = frozenset(found.items())
            if key not in seen:
                seen.add(key)
                yield found


def _states(files: Files, changes: list[tuple[Any, ...]]) -> Iterator[Files]:
    flushed_names = max((k for k, c in enumerate(changes) if c == ("flush", "")), default=-1)
    pending = [k for k, c in enumerate(changes) if c[0] in ("create", "rename", "unlink")]
    pending = [k for k in pending if k > flushed_names]
    contents = _contents(files, changes)
    for done in itertools.product((True, False), repeat=len(pending)):
        lost = {k for k, is_done in zip(pending, done) if not is_done}
        names = {name: name for name in files}
        for number, change in enumerate(changes):
            if number in lost:
                continue
            if change[0] == "create":
                names[change[1]] = change[1]
            elif change[0] == "unlink":
                names.pop(change[1], None)
            elif change[0] == "rename" and change[1] in names:
                names[change[2]] = names.pop(change[1])
        for variant in range(4):
            yield {name: contents[origin][variant] for name, origin in names.items()}


def _contents(files: Files, changes: list[tuple[Any, ...]]) -> dict[str, list[bytes]]:
    """Return four possible contents of each file: whole, nothing, half, zeros."""
    found = {name: [content] * 4 for name, content in files.items()}
    for name in {change[1] for change in changes if change[0] == "create"}:
        written = b"".join(c[2] for c in changes if c[0] == "write" and c[1] == name)
        flushes = [k for k, c in enumerate(changes) if c == ("flush", name)]
        writes = [k for k, c in enumerate(changes) if c[0] == "write" and c[1] == name]
        if flushes and (not writes or max(flushes) > max(writes)):
            found[name] = [written] * 4
        else:
            found[name] = [written, b"", written[: len(written) // 2], bytes(len(written))]
    return found
