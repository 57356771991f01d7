"""Earlier sessions of a history in arrays, which a commit does not write again until they change.

A session takes 24 bytes, and 8 more for each label. Labels are in one list, so that a class can be
renamed or forgotten without a change to the arrays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrtflite.errors import StateError
from lrtflite.taught_session import ID_BYTES, TaughtSession

# Names of the arrays in a state, with the dtype and the length of each row.
ARRAYS: dict[str, tuple[np.dtype[Any], int]] = {
    "history/ids": (np.dtype(np.uint8), ID_BYTES),
    "history/sessions": (np.dtype("<u4"), 2),
    "history/taught": (np.dtype("<u4"), 2),
}
IDS, SESSIONS, TAUGHT = ARRAYS
# Maximum number of folded sessions, and of labels in all of them; some 225 MB together.
MOST_FOLDED, MOST_TAUGHT = 1 << 22, 1 << 24


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
        if len(arrays[IDS]) > MOST_FOLDED or len(arrays[TAUGHT]) > MOST_TAUGHT:
            raise StateError(
                f"Expected at most {MOST_FOLDED:,} sessions in a state, got "
                f"{len(arrays[IDS]):,} with {len(arrays[TAUGHT]):,} labels; go on from a shipped "
                "bundle in a new state path"
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
