"""A stream of latents, extracted once, for benchmarks that learn it many times."""

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
    """The latents and labels of each session, and those of the test set."""

    sessions: list[tuple[Latents, list[int]]]
    test: Latents
    test_labels: list[int]

    def validation(self, *, every: int = 4) -> World:
        """Return another split of the training patterns: every fourth of a class is for testing."""
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
        """Return the part with `count` classes: those of the first session, then by number."""
        first = set(self.sessions[0][1])
        if count < len(first):
            raise InputError(
                f"Expected at least the first {len(first)} classes, got {count}", "give more"
            )
        others = sorted(set(self.test_labels) - first)
        chosen = first.union(others[: count - len(first)])
        judged = [row for row, label in enumerate(self.test_labels) if label in chosen]
        return World(
            [session for session in self.sessions if chosen.issuperset(session[1])],
            self.test[judged],
            [self.test_labels[row] for row in judged],
        )


def extract(bundle: Bundle, dataset: str, *, seed: int, visits: int, runtime: str) -> World:
    """Extract the latents of a whole data set."""
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
    bundle: Bundle,
    world: World,
    training: Training,
    memory: int,
    *,
    runtime: str,
    seed: int = 0,
    policy: str | None = None,
) -> NDArray[np.intp]:
    """Return the predicted slot (n,) of each test pattern after the last session."""
    with Learner.open(
        bundle, runtime=runtime, replay_size=memory, seed=seed, policy=policy
    ) as learner:
        for latents, labels in world.sessions:
            learner.learn_latents(latents, slot=labels, training=training)
        return np.asarray(learner.probabilities(world.test).argmax(axis=1))
