"""Verify a bundle, learn three short sessions, and print what came out as JSON.

    python tests/arm/arm_session.py BUNDLE RUNTIME STATE

The script imports numpy and `lrtflite` only, so it runs on a device as on a desktop. Every input is
made of integers, so machines that disagree do so in what they compute, not in what they are given.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrtflite import Bundle, Learner, Training
from lrtflite.runtime import describe_runtime
from lrtflite.verify import verify_bundle

# Two new classes; one known and one new; one new class alone, against the memory.
SESSIONS = (("cup", "ball"), ("ball", "plug"), ("can",))
CLASSES = ("cup", "ball", "plug", "can")
TRAIN_FRAMES, TEST_FRAMES = 8, 2
# Steps of a session: enough to learn these patterns, few enough for an emulated `conv5_4/dw`.
STEPS = 4
REPLAY_SIZE = 24


def frames_of(label: str, count: int, *, size: int, seed: int) -> NDArray[np.uint8]:
    """(count, size, size, 3) uint8: coloured blocks, a pattern for each label, with noise."""
    kind = CLASSES.index(label)
    blocks = np.random.default_rng(kind).integers(40, 215, (8, 8, 3))
    side = -(-size // 8)
    pattern = blocks.repeat(side, 0).repeat(side, 1)[:size, :size]
    noise = np.random.default_rng((kind, seed)).integers(-25, 26, (count, size, size, 3))
    return (pattern + noise).astype(np.uint8)


def learn_a_session(learner: Learner, labels: tuple[str, ...], training: Training) -> float:
    """Teach every label some frames; return the loss."""
    size = learner.bundle.manifest.input_size
    frames = [frames_of(label, TRAIN_FRAMES, size=size, seed=1) for label in labels]
    names = [label for label in labels for _ in range(TRAIN_FRAMES)]
    return learner.learn(np.concatenate(frames), names, training=training).loss


def answers(learner: Learner) -> dict[str, Any]:
    """Probabilities (frames, slots) of unseen frames of each class, and the likeliest labels."""
    size = learner.bundle.manifest.input_size
    frames = np.concatenate([frames_of(each, TEST_FRAMES, size=size, seed=2) for each in CLASSES])
    latents = learner.extract(frames)
    return {
        "probabilities": learner.probabilities(latents).tolist(),
        "labels": [found[0].label for found in learner.predict_latents(latents, top=1)],
    }


def run(bundle: Bundle, runtime: str, state: Path, *, lr: float | None = None) -> dict[str, Any]:
    """Run the sessions in `state`, closed and reopened before the last, which is then undone.

    `lr` is the learning rate of the CWR layer in place of the bundle's own.
    """
    training = replace(bundle.manifest.training, epochs=1, least_steps=STEPS)
    training = training.with_options(lr=lr)
    losses: list[float] = []
    after: list[dict[str, Any]] = []
    with Learner.open(bundle, state, runtime=runtime, replay_size=REPLAY_SIZE) as learner:
        for labels in SESSIONS[:-1]:
            losses.append(learn_a_session(learner, labels, training))
            after.append(answers(learner))
    with Learner.open(bundle, state, runtime=runtime) as learner:
        reopened = answers(learner)
        losses.append(learn_a_session(learner, SESSIONS[-1], training))
        after.append(answers(learner))
        learner.undo()
        undone = answers(learner)
    return {
        "losses": losses,
        "answers": after,
        # Exactly: a state continues bit for bit on the runtime that made it.
        "reopened_unchanged": reopened == after[-2],
        "undone_unchanged": undone == after[-2],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bundle", type=Path)
    parser.add_argument("runtime", choices=["litert", "tflite"])
    parser.add_argument("state", type=Path, help="a new folder for the learner's state")
    parser.add_argument("--lr", type=float, help="learning rate in place of the bundle's own")
    given = parser.parse_args()
    started = time.monotonic()
    checks = verify_bundle(given.bundle, runtime=given.runtime)
    verified = time.monotonic()
    learned = run(Bundle.open(given.bundle), given.runtime, given.state, lr=given.lr)
    result = {
        "machine": platform.machine(),
        "runtime": describe_runtime(given.runtime),
        "checks": [[check.name, check.passed, check.seen] for check in checks],
        **learned,
        "verify_seconds": round(verified - started, 1),
        "learn_seconds": round(time.monotonic() - verified, 1),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
