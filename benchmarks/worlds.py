"""A stream as latents, extracted once, for studies that learn it again and again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrtflite import Bundle, Learner, Training
from lrtflite.data import StreamOptions, nic_stream, open_source
from lrtflite.errors import InputError

Latents = NDArray[Any]


@dataclass(frozen=True)
class World:
    """What each session brings, and what is judged in the end."""

    sessions: list[tuple[Latents, list[int]]]
    test: Latents
    test_labels: list[int]

    def validation(self, *, every: int = 4) -> World:
        """Another split of the training patterns: each fourth of a class is judged, not learned."""
        seen: dict[int, int] = {}
        sessions, held, held_labels = [], [], []
        for latents, labels in self.sessions:
            kept = []
            for row, label in enumerate(labels):
                seen[label] = seen.get(label, 0) + 1
                if seen[label] % every:
                    kept.append(row)
                else:
                    held.append(latents[row])
                    held_labels.append(label)
            sessions.append((latents[kept], [labels[row] for row in kept]))
        return World(sessions, np.stack(held), held_labels)

    def of_classes(self, count: int) -> World:
        """What it has of `count` classes: those of the first session, then the lowest numbers."""
        first = set(self.sessions[0][1])
        if count < len(first):
            raise InputError(f"Expected at least the first {len(first)} classes, got {count}")
        others = sorted(set(self.test_labels) - first)
        chosen = first.union(others[: count - len(first)])
        judged = [row for row, label in enumerate(self.test_labels) if label in chosen]
        return World(
            [session for session in self.sessions if chosen.issuperset(session[1])],
            self.test[judged],
            [self.test_labels[row] for row in judged],
        )


def extract(bundle: Bundle, dataset: str, *, seed: int, visits: int, runtime: str) -> World:
    source = open_source(dataset, size=bundle.manifest.input_size, seed=seed)
    stream = nic_stream(source, StreamOptions(visits=visits, seed=seed))
    with Learner.open(bundle, runtime=runtime) as learner:
        test = source.test_clips()
        return World(
            sessions=[
                (learner.extract(np.stack(list(batch.frames()))), list(batch.labels))
                for batch in stream
            ],
            test=np.concatenate([learner.extract(np.stack(list(clip.read()))) for clip in test]),
            test_labels=[clip.label for clip in test for _ in range(clip.length)],
        )


def learn_stream(
    bundle: Bundle, world: World, training: Training, memory: int, *, runtime: str, seed: int = 0
) -> NDArray[np.intp]:
    """(n,) the slot that each test pattern is given after the last session."""
    with Learner.open(bundle, runtime=runtime, replay_size=memory, seed=seed) as learner:
        for latents, labels in world.sessions:
            learner.learn_latents(latents, slot=labels, training=training)
        return np.asarray(learner.probabilities(world.test).argmax(axis=1))
