"""The sessions that taught a state, with the number of patterns of each label.

Each session has a random id, so that states with sessions in common are recognised when a fleet is
merged. Ids come from the operating system: a learner's own generator is seeded, and two devices
with the same seed must not share ids.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

_ID_BYTES = 16


@dataclass(frozen=True)
class TaughtSession:
    """One session: its id, its number on its device, and the patterns of each label.

    `labels` has the current names, None for a class forgotten since; `patterns` has one count per
    label. INVARIANT: a label keeps its place in the list, even if it is renamed or forgotten.
    """

    id: str
    session: int
    labels: tuple[str | None, ...]
    patterns: tuple[int, ...]

    def with_names(self, rename: Callable[[str], str | None]) -> TaughtSession:
        names = (None if label is None else rename(label) for label in self.labels)
        return replace(self, labels=tuple(names))


@dataclass(frozen=True)
class History:
    """The sessions of a state, oldest first. A change makes a new value."""

    entries: tuple[TaughtSession, ...] = ()

    @property
    def sessions(self) -> int:
        """Return the number of sessions."""
        return len(self.entries)

    @property
    def ids(self) -> frozenset[str]:
        return frozenset(entry.id for entry in self.entries)

    @property
    def patterns(self) -> dict[str, int]:
        """Return the number of patterns taught for each label, without forgotten classes."""
        found: Counter[str] = Counter()
        for entry in self.entries:
            for label, count in zip(entry.labels, entry.patterns):
                if label is not None:
                    found[label] += count
        return dict(found)

    def with_session(self, patterns: Mapping[str, int]) -> History:
        """Return a copy with one more session, in which `patterns` of each label were taught."""
        identity = os.urandom(_ID_BYTES).hex()
        labels, counts = tuple(patterns), tuple(patterns.values())
        entry = TaughtSession(identity, self.sessions + 1, labels, counts)
        return History((*self.entries, entry))

    def renamed(self, old: str | None, new: str | None) -> History:
        """Return a copy in which one label has another name, or None once it is forgotten."""
        return History(
            tuple(
                entry.with_names(lambda label: new if label == old else label)
                for entry in self.entries
            )
        )

    def only(self, ids: frozenset[str]) -> History:
        """Return the sessions with these ids."""
        return History(tuple(entry for entry in self.entries if entry.id in ids))

    def without(self, ids: frozenset[str]) -> History:
        """Return the sessions with other ids."""
        return self.only(self.ids - ids)

    def to_json(self) -> list[dict[str, Any]]:
        return [asdict(entry) for entry in self.entries]

    @classmethod
    def from_json(cls, found: Sequence[Mapping[str, Any]]) -> History:
        return cls(
            tuple(
                TaughtSession(
                    id=str(entry["id"]),
                    session=int(entry["session"]),
                    labels=tuple(entry["labels"]),
                    patterns=tuple(int(count) for count in entry["patterns"]),
                )
                for entry in found
            )
        )
