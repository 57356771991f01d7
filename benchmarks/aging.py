"""Accuracy where moments below the replay layer adapt: stored latents against fresh ones.

A stored latent was made with the moments of its session, and ages when they move. The same stream
is learned with several moment rates (0 freezes the moments; the paper uses 5e-5), from a bundle of
`lrtflite convert --adapt-moments`. Every policy replays the latents that it stored. As in the
paper's ablation, the row "extracted again" replays the same patterns from their frames, passed
through the current features before each session. The figures are the accuracy on the whole test
set after the last session, and in brackets the paired difference from stored latents with the first
policy, in points, with its 95 % interval.

    python benchmarks/aging.py BUNDLE [--dataset synthetic] [--memory 500] [--visits 2]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from bundles import say
from intervals import shown
from numpy.typing import NDArray
from worlds import Latents

from lrtflite import Bundle, Learner, LrtfliteError
from lrtflite.contract.signatures import ZERO
from lrtflite.data import StreamOptions, nic_stream, open_source
from lrtflite.replay.policies import POLICIES
from lrtflite.runtime.model import Model, describe_runtime, pick_runtime
from lrtflite.session.run import adapt_moments
from lrtflite.session.session import Session
from lrtflite.system.machine import this_machine
from lrtflite.workbench.metrics import accuracy

AGAIN = "extracted again"


@dataclass(frozen=True)
class AgingSession:
    """A session's frames, their latents at that time, and the moments that made them."""

    frames: NDArray[np.uint8]
    labels: list[int]
    latents: Latents
    moments: dict[str, Latents]


@dataclass(frozen=True)
class AgingWorld:
    """A stream whose moments adapt. They depend on the frames alone, so all policies share them."""

    sessions: list[AgingSession]
    test: Latents
    test_labels: list[int]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("bundle", type=Path)
    parser.add_argument("--dataset", default="synthetic")
    parser.add_argument("--seeds", type=int, nargs="+", default=[2000, 2001, 2002, 2003, 2004])
    parser.add_argument("--rates", type=float, nargs="+", default=[0, 5e-5, 5e-4, 5e-3])
    parser.add_argument("--memory", type=int, default=500)
    parser.add_argument("--visits", type=int, default=2)
    parser.add_argument("--policies", nargs="+", choices=list(POLICIES), default=list(POLICIES))
    parser.add_argument("--runtime", default="auto")
    arguments = parser.parse_args()
    try:
        for line in rows(arguments):
            print(line, flush=True)
    except LrtfliteError as error:
        sys.exit(f"Error: {error}")


def rows(arguments: argparse.Namespace) -> Iterator[str]:
    bundle = Bundle.open(arguments.bundle)
    if not bundle.manifest.adapt_moments:
        raise LrtfliteError(
            f"Expected a bundle of `convert --adapt-moments`, got {bundle.path}", "convert it again"
        )
    first = arguments.policies[0]
    variants = [*arguments.policies, AGAIN]
    found: dict[tuple[str, float], list[float]] = {}
    for rate in arguments.rates:
        for seed in arguments.seeds:
            world = adapt(bundle, arguments, seed=seed, rate=rate)
            for variant in variants:
                right = learn(bundle, arguments, world, variant, seed=seed)
                found.setdefault((variant, rate), []).append(right)
            newest = {variant: round(found[variant, rate][-1], 3) for variant in variants}
            say(f"rate {rate:g}, seed {seed}: {newest}")
    yield f"| replayed | {' | '.join(f'{rate:g}' for rate in arguments.rates)} |"
    yield f"| --- |{' --- |' * len(arguments.rates)}"
    for variant in variants:
        cells = []
        for rate in arguments.rates:
            values, base = found[variant, rate], found[first, rate]
            difference = "" if variant == first else f" ({shown(values, base)})"
            cells.append(f"{np.mean(values):.3f}{difference}")
        yield f"| {variant} | {' | '.join(cells)} |"
    yield (
        f"columns: moment rate below {bundle.manifest.replay_layer}; memory {arguments.memory}, "
        f"{arguments.visits} visits, {arguments.dataset}; backbone: {bundle.manifest.backbone}"
    )
    yield f"{describe_runtime(pick_runtime(arguments.runtime))}, 1 thread, on {this_machine()}"


def adapt(bundle: Bundle, arguments: argparse.Namespace, *, seed: int, rate: float) -> AgingWorld:
    """Pass a stream through features whose moments adapt after each session, as `learn` does."""
    source = open_source(arguments.dataset, size=bundle.manifest.input_size, seed=seed)
    training = bundle.manifest.training.with_options(adapt_rate=rate)
    features = Model(bundle.features, runtime=arguments.runtime)
    sessions = []
    for batch in nic_stream(source, StreamOptions(visits=arguments.visits, seed=seed)):
        frames = np.stack(list(batch.frames()))
        moments = features.run("save", zero=ZERO)
        latents = extracted(features, frames)
        sessions.append(AgingSession(frames, list(batch.labels), latents, moments))
        adapt_moments(features, list(frames), training, Session(None, None))
    clips = source.test_clips()
    test = np.concatenate([extracted(features, np.stack(list(clip.read()))) for clip in clips])
    return AgingWorld(sessions, test, [clip.label for clip in clips for _ in range(clip.length)])


def learn(
    bundle: Bundle, arguments: argparse.Namespace, world: AgingWorld, variant: str, *, seed: int
) -> float:
    """Return the accuracy after the last session."""
    policy = arguments.policies[0] if variant == AGAIN else variant
    features = Model(bundle.features, runtime=arguments.runtime)
    with Learner.open(
        bundle, runtime=arguments.runtime, replay_size=arguments.memory, policy=policy, seed=seed
    ) as learner:
        kept: list[NDArray[np.uint8]] = []  # frame of each row
        for session in world.sessions:
            if variant == AGAIN and kept:
                features.run("restore", **session.moments)
                learner.memory.codes[:] = extracted(features, np.stack(kept))
            learner.learn_latents(session.latents, slot=session.labels)
            kept = frames_of_rows(learner.memory.codes, session, kept)
        answers = learner.probabilities(world.test).argmax(axis=1)
    return accuracy(answers, world.test_labels)


def frames_of_rows(
    codes: Latents, session: AgingSession, before: list[NDArray[np.uint8]]
) -> list[NDArray[np.uint8]]:
    """Return the frame of each row; a row that is not from this session keeps its frame."""
    new = {latent.tobytes(): frame for latent, frame in zip(session.latents, session.frames)}
    keys = [code.tobytes() for code in codes]
    return [new[key] if key in new else before[row] for row, key in enumerate(keys)]


def extracted(features: Model, frames: NDArray[np.uint8]) -> Latents:
    """Return the latents of frames, one by one as on a device."""
    parts = [features.run("extract", frames=frame[np.newaxis])["latents"] for frame in frames]
    return np.concatenate(parts)


if __name__ == "__main__":
    main()
