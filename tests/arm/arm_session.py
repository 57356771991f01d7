"""Verify a bundle, learn three short sessions, and print the results as JSON.

    python tests/arm/arm_session.py BUNDLE RUNTIME FRAMES STATE

The script imports numpy and `lrtflite` only, so it runs on a device as on a desktop. FRAMES comes
from `arm_frames.py`: machines that disagree do so in what they compute, not in what they are given.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrtflite import Learner
from lrtflite.runtime.model import describe_runtime
from lrtflite.verification.verify import verify_bundle

# Classes of each session: two new ones, then one learned and one new, then a new one alone.
SESSIONS = ((0, 1), (1, 2), (3,))
# Least steps of a session, and of one that trains a trunk: under emulation one step above
# `conv5_4/dw` takes two minutes.
STEPS, TRUNK_STEPS = 8, 2
REPLAY_SIZE = 48

Frames = dict[str, NDArray[Any]]


def teach(
    learner: Learner, frames: Frames, session: tuple[int, ...], lr: float | None
) -> float | None:
    """Learn the training frames of some classes in one session; return the loss."""
    shown = np.concatenate([frames["train"][each] for each in session])
    labels = [str(frames["classes"][each]) for each in session for _ in frames["train"][each]]
    manifest = learner.bundle.manifest
    steps = TRUNK_STEPS if manifest.trains_trunk else STEPS
    training = manifest.training.with_options(epochs=1, least_steps=steps, lr=lr)
    return learner.learn(shown, labels, training=training).loss


def ask(learner: Learner, frames: Frames) -> dict[str, Any]:
    """Return probabilities (frames, slots) of all test frames, and their most likely labels."""
    latents = learner.extract(np.concatenate(frames["test"]))
    return {
        "probabilities": learner.probabilities(latents).tolist(),
        "labels": [found[0].label for found in learner.predict_latents(latents, top=1)],
    }


def learn(
    bundle: Path, frames: Frames, state: Path, *, runtime: str, lr: float | None = None
) -> dict[str, Any]:
    """Run the sessions in `state`, closed and reopened before the last, which is then undone.

    `lr` is the learning rate of the CWR layer in place of the bundle's own.
    """
    losses, answers = [], []
    with Learner.open(bundle, state, runtime=runtime, replay_size=REPLAY_SIZE) as learner:
        for session in SESSIONS[:-1]:
            losses.append(teach(learner, frames, session, lr))
            answers.append(ask(learner, frames))
    with Learner.open(bundle, state, runtime=runtime) as learner:
        reopened = ask(learner, frames)
        losses.append(teach(learner, frames, SESSIONS[-1], lr))
        answers.append(ask(learner, frames))
        learner.undo()
        undone = ask(learner, frames)
    return {
        "losses": losses,
        "answers": answers,
        # Equal to the last bit, because runtime and machine are the same.
        "reopened_unchanged": reopened == answers[-2],
        "undone_unchanged": undone == answers[-2],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Verify a bundle and learn three sessions.")
    parser.add_argument("bundle", type=Path)
    parser.add_argument("runtime", choices=["litert", "tflite"])
    parser.add_argument("frames", type=Path, help="what arm_frames.py draws")
    parser.add_argument("state", type=Path, help="a new folder for the learner's state")
    parser.add_argument("--lr", type=float, help="learning rate in place of the bundle's own")
    given = parser.parse_args()
    with np.load(given.frames, allow_pickle=False) as archive:
        frames = {name: archive[name] for name in archive.files}
    started = time.monotonic()
    checks = verify_bundle(given.bundle, runtime=given.runtime)
    verified = time.monotonic()
    learned = learn(given.bundle, frames, given.state, runtime=given.runtime, lr=given.lr)
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
