"""The sessions that taught a state, with the number of patterns of each label.

Each session has a random id, so that states with sessions in common are recognised when a fleet is
merged. Ids come from the operating system: a learner's own generator is seeded, and two devices
with the same seed must not share ids.

The newest sessions are kept in full, as JSON. Earlier ones are folded into arrays, block by block,
so that a commit costs the same after any number of sessions.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from lrtflite.folded_history import Folded
from lrtflite.taught_session import ID_BYTES, TaughtSession

# Number of sessions that are folded at a time, and the least that stay in full.
BLOCK = 128
# Maximum number of labels in the sessions that stay in full.
MOST_LABELS = 10_000


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
        """Return all sessions; folded ones are made into values again, which takes time."""
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
        elif sum(len(entry.labels) for entry in self.recent) > MOST_LABELS:
            count = len(self.recent) - 1
        else:
            return self
        folded = self.folded.with_entries(self.recent[:count])
        return History(self.recent[count:], folded).compacted() if count else self

    @property
    def meta(self) -> dict[str, Any]:
        """Return the part of a state that is JSON."""
        found = {
            "sessions": self.sessions,
            "history": [entry.to_json() for entry in self.recent],
        }
        return {**found, "folded": self.folded.to_json()} if len(self.folded) else found

    @property
    def arrays(self) -> Mapping[str, NDArray[Any]]:
        """Return the part of a state that is arrays."""
        return self.folded.arrays if len(self.folded) else {}

    @classmethod
    def from_state(cls, meta: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> History:
        """Return the history that `meta` and `arrays` describe; a long one is folded."""
        recent: Sequence[Mapping[str, Any]] = meta["history"]
        return cls(
            tuple(map(TaughtSession.from_json, recent)),
            Folded.from_state(meta.get("folded"), arrays),
        ).compacted()
