"""One session in the history of a state."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

ID_BYTES = 16
_ID = re.compile(r"[0-9a-f]{32}", re.ASCII)
# Start of 2020 in seconds since 1970, UTC. A clock that shows an earlier time was never set.
EARLIEST = 1_577_836_800
# Fields that a session may lack.
OPTIONAL = ("time", "device", "bundle_version")


@dataclass(frozen=True)
class TaughtSession:
    """One session: its id, its number on its device, and the patterns of each label.

    `labels` has the current names, None for a class forgotten since; `patterns` has one count per
    label. INVARIANT: a label keeps its place in the list, even if it is renamed or forgotten.
    `time` is in seconds since 1970 UTC, `device` the name of the device, `bundle_version` the
    version of its bundle. These are None where they are not known; sessions are the same without
    them.
    """

    id: str
    session: int
    labels: tuple[str | None, ...]
    patterns: tuple[int, ...]
    time: int | None = field(default=None, compare=False)
    device: str | None = field(default=None, compare=False)
    bundle_version: str | None = field(default=None, compare=False)

    def with_names(self, rename: Callable[[str], str | None]) -> TaughtSession:
        names = (None if label is None else rename(label) for label in self.labels)
        return replace(self, labels=tuple(names))

    def to_json(self) -> dict[str, Any]:
        """Return the session as JSON, without the optional fields that it lacks."""
        return {
            name: value
            for name, value in asdict(self).items()
            if value is not None or name not in OPTIONAL
        }

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> TaughtSession:
        return cls(
            id=normal_id(str(found["id"])),
            session=int(found["session"]),
            labels=tuple(found["labels"]),
            patterns=tuple(int(count) for count in found["patterns"]),
            **{name: found.get(name) for name in OPTIONAL},
        )


def normal_id(identity: str) -> str:
    """Return an id as 32 hexadecimal digits; another text becomes the start of its SHA-256."""
    if _ID.fullmatch(identity):
        return identity
    return hashlib.sha256(identity.encode(errors="surrogatepass")).hexdigest()[: 2 * ID_BYTES]


def clock() -> int | None:
    """Return the time in seconds since 1970 UTC, or None if the clock was never set."""
    now = int(time.time())
    return now if now >= EARLIEST else None
