"""The sessions that taught a state, with the number of patterns of each label.

Each session has a random id, so that states with sessions in common are recognised when a fleet is
merged. Ids come from the operating system: a learner's own generator is seeded, and two devices
with the same seed must not share ids.

The newest sessions are kept in full, as JSON. Earlier ones are folded into arrays, block by block,
so that a commit costs the same after any number of sessions.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrtflite.errors import StateError

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
    version of its bundle. These are None if unknown; they do not matter for equality.
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


# Names of the arrays in a state, with the dtype and the length of each row.
ARRAYS: dict[str, tuple[np.dtype[Any], int]] = {
    "history/ids": (np.dtype(np.uint8), ID_BYTES),
    "history/sessions": (np.dtype("<u4"), 2),
    "history/taught": (np.dtype("<u4"), 2),
}
IDS, SESSIONS, TAUGHT = ARRAYS
# Maximum number of folded sessions, and of labels in all of them; some 225 MB together.
MAX_FOLDED, MAX_TAUGHT = 1 << 22, 1 << 24


def _empty() -> dict[str, NDArray[Any]]:
    return {name: np.zeros((0, width), dtype) for name, (dtype, width) in ARRAYS.items()}


@dataclass(frozen=True, eq=False)
class Folded:
    """Sessions in arrays, oldest first.

    `ids` (n, 16) uint8 has the id of each. `sessions` (n, 2) uint32 has the number of each, and of
    its rows in `taught` (m, 2) uint32: the place of a label in `labels`, and a count of patterns. A
    label is None once it is forgotten.
    """

    labels: tuple[str | None, ...] = ()
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=_empty)

    def __len__(self) -> int:
        return len(self.arrays[IDS])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Folded):
            return NotImplemented
        return self is other or (
            self.labels == other.labels
            and all(np.array_equal(self.arrays[name], other.arrays[name]) for name in ARRAYS)
        )

    __hash__ = None  # type: ignore[assignment]

    @property
    def entries(self) -> tuple[TaughtSession, ...]:
        """Return the sessions as values; the place in `labels` becomes a label."""
        taught = self.arrays[TAUGHT]
        names = [self.labels[place] for place in taught[:, 0].tolist()]
        patterns = taught[:, 1].tolist()
        found, start = [], 0
        for identity, (session, count) in zip(self.arrays[IDS], self.arrays[SESSIONS].tolist()):
            end = start + count
            labels, counts = tuple(names[start:end]), tuple(patterns[start:end])
            found.append(TaughtSession(identity.tobytes().hex(), session, labels, counts))
            start = end
        return tuple(found)

    @property
    def patterns(self) -> dict[str, int]:
        """Return the number of patterns taught for each label, without forgotten classes."""
        places, counts = self.arrays[TAUGHT].T.astype(np.int64)
        totals = np.zeros(len(self.labels), np.int64)
        np.add.at(totals, places, counts)
        return {
            label: int(totals[place])
            for place, label in enumerate(self.labels)
            if label is not None
        }

    def renamed(self, old: str | None, new: str | None) -> Folded:
        """Return a copy in which one label has another name, or None once it is forgotten."""
        if old is None or old not in self.labels:
            return self
        return replace(self, labels=tuple(new if each == old else each for each in self.labels))

    def with_entries(self, entries: Sequence[TaughtSession]) -> Folded:
        """Return a copy with more sessions; times and other facts of a session are left out."""
        places: dict[str | None, int] = {}
        for label in (*self.labels, *(label for entry in entries for label in entry.labels)):
            places.setdefault(label, len(places))
        # Forgotten labels share a place from now on, so that they do not pile up.
        moved = np.array([places[label] for label in self.labels], np.uint32)
        before = self.arrays[TAUGHT].copy()
        before[:, 0] = moved[before[:, 0]]
        new: dict[str, list[Any]] = {
            IDS: [list(bytes.fromhex(entry.id)) for entry in entries],
            SESSIONS: [(entry.session, len(entry.labels)) for entry in entries],
            TAUGHT: [
                (places[label], count)
                for entry in entries
                for label, count in zip(entry.labels, entry.patterns)
            ],
        }
        old = {**self.arrays, TAUGHT: before}
        arrays = {
            name: np.concatenate([old[name], np.array(new[name], dtype).reshape(-1, width)])
            for name, (dtype, width) in ARRAYS.items()
        }
        if len(arrays[IDS]) > MAX_FOLDED or len(arrays[TAUGHT]) > MAX_TAUGHT:
            raise StateError(
                f"Expected at most {MAX_FOLDED:,} sessions in a state, got "
                f"{len(arrays[IDS]):,} with {len(arrays[TAUGHT]):,} labels",
                "go on from a shipped bundle in a new state path",
            )
        return Folded(tuple(places), arrays)

    def to_json(self) -> dict[str, Any]:
        """Return the part that is not in arrays."""
        return {"sessions": len(self), "labels": list(self.labels)}

    @classmethod
    def from_state(
        cls, found: Mapping[str, Any] | None, arrays: Mapping[str, NDArray[Any]]
    ) -> Folded:
        """Return the sessions that `to_json` and `arrays` describe, or raise ValueError."""
        if found is None:
            return cls()
        for name, (dtype, width) in ARRAYS.items():
            if name not in arrays:
                raise ValueError(f"it lacks {name}")
            if arrays[name].dtype != dtype or arrays[name].shape[1:] != (width,):
                raise ValueError(f"invalid {name}")
        made = cls(tuple(found["labels"]), {name: arrays[name] for name in ARRAYS})
        counts, taught = made.arrays[SESSIONS][:, 1], made.arrays[TAUGHT]
        if not len(made) == len(counts) == found["sessions"]:
            raise ValueError("folded sessions differ in number")
        if int(counts.sum(dtype=np.uint64)) != len(taught):
            raise ValueError("folded labels differ in number")
        if len(taught) and int(taught[:, 0].max()) >= len(made.labels):
            raise ValueError("a folded label that is not there")
        return made


# Number of sessions that are folded at a time, and the least that stay in full.
BLOCK = 128
# Maximum number of labels in the sessions that stay in full.
MAX_LABELS = 10_000


@dataclass(frozen=True)
class History:
    """The sessions of a state, oldest first. A change makes a new value.

    `recent` are the newest sessions, `folded` all before them.
    """

    recent: tuple[TaughtSession, ...] = ()
    folded: Folded = field(default_factory=Folded)

    @classmethod
    def of(cls, entries: Iterable[TaughtSession]) -> History:
        """Return a history of these sessions, of any number."""
        return cls(tuple(entries)).compacted()

    @property
    def entries(self) -> tuple[TaughtSession, ...]:
        """Return all sessions; unfolding the folded ones takes time."""
        return (*self.folded.entries, *self.recent)

    @property
    def sessions(self) -> int:
        """Return the number of sessions."""
        return len(self.folded) + len(self.recent)

    @property
    def ids(self) -> frozenset[str]:
        return frozenset(entry.id for entry in self.entries)

    @property
    def patterns(self) -> dict[str, int]:
        """Return the number of patterns taught for each label, without forgotten classes."""
        found: Counter[str] = Counter(self.folded.patterns)
        for entry in self.recent:
            for label, count in zip(entry.labels, entry.patterns):
                if label is not None:
                    found[label] += count
        return dict(found)

    def with_session(
        self,
        patterns: Mapping[str, int],
        *,
        time: int | None = None,
        device: str | None = None,
        bundle_version: str | None = None,
    ) -> History:
        """Return a copy with one more session, in which `patterns` of each label were taught."""
        entry = TaughtSession(
            os.urandom(ID_BYTES).hex(),
            self.sessions + 1,
            tuple(patterns),
            tuple(patterns.values()),
            time=time,
            device=device,
            bundle_version=bundle_version,
        )
        return History((*self.recent, entry), self.folded).compacted()

    def renamed(self, old: str | None, new: str | None) -> History:
        """Return a copy in which one label has another name, or None once it is forgotten."""
        return History(
            tuple(
                entry.with_names(lambda label: new if label == old else label)
                for entry in self.recent
            ),
            self.folded.renamed(old, new),
        )

    def only(self, ids: frozenset[str]) -> History:
        """Return the sessions with these ids."""
        return History.of(entry for entry in self.entries if entry.id in ids)

    def without(self, ids: frozenset[str]) -> History:
        """Return the sessions with other ids."""
        return self.only(self.ids - ids)

    def compacted(self) -> History:
        """Return a copy whose earliest sessions are folded, if it has too many in full."""
        if len(self.recent) >= 2 * BLOCK:
            count = (len(self.recent) - BLOCK) // BLOCK * BLOCK
        elif sum(len(entry.labels) for entry in self.recent) > MAX_LABELS:
            count = len(self.recent) - 1
        else:
            return self
        folded = self.folded.with_entries(self.recent[:count])
        return History(self.recent[count:], folded).compacted() if count else self

    @property
    def arrays(self) -> Mapping[str, NDArray[Any]]:
        """Return the part of a state that is arrays."""
        return self.folded.arrays if len(self.folded) else {}

    @classmethod
    def from_state(
        cls,
        recent: Iterable[Mapping[str, Any]],
        folded: Mapping[str, Any] | None,
        arrays: Mapping[str, NDArray[Any]],
    ) -> History:
        """Return the history with these values and arrays of a state; a long one is folded."""
        return cls(
            tuple(map(TaughtSession.from_json, recent)), Folded.from_state(folded, arrays)
        ).compacted()
