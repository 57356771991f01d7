"""Comparison of ways to learn the synthetic stream, all with the demo bundle and its head.

There are fifty objects: 10 in the first session, then one object per session. The figures are the
accuracy on the whole test set after the last session, per seed of the world. All ways learn from
the same latents.

- cumulative: one session with all frames, for 40 epochs;
- replay: CWR* with a replay memory, as `lrtflite simulate` runs it;
- no replay: CWR* alone;
- naive: plain fine-tuning of the same head on one session after another, 40 epochs each.

    python benchmarks/synthetic_strategies.py [--seeds 2000 2001 2002] [--visits 2]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from worlds import Latents, World, extract, learn_stream

from lrtflite import Bundle, LrtfliteError, Training
from lrtflite.bundle.bundle import demo_bundle
from lrtflite.contract.signatures import ZERO
from lrtflite.replay.memory import ReplayMemory
from lrtflite.runtime.model import Model, describe_runtime
from lrtflite.session.minibatch import Patterns, minibatches
from lrtflite.system.machine import this_machine
from lrtflite.workbench.metrics import accuracy

# Epochs of cumulative, and of naive in each session.
LONG = 40
TARGETS = "cumulative at least 0.85, naive below 0.30, replay within 0.05 of cumulative"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[2000, 2001, 2002])
    parser.add_argument("--visits", type=int, default=2)
    parser.add_argument("--replay-size", type=int, help="latents to keep  [the bundle's]")
    parser.add_argument("--epochs", type=int, help="per session  [the bundle's]")
    parser.add_argument("--lr", type=float, help="[the bundle's]")
    parser.add_argument("--bundle", type=Path, help="bundle to use instead of the demo bundle")
    parser.add_argument("--runtime", default="auto")
    arguments = parser.parse_args()
    try:
        if arguments.bundle is not None:
            print(run(Bundle.open(arguments.bundle), arguments))
        else:
            with demo_bundle() as path:
                print(run(Bundle.open(path), arguments))
    except LrtfliteError as error:
        sys.exit(f"Error: {error}")


def run(bundle: Bundle, arguments: argparse.Namespace) -> str:
    manifest = bundle.manifest
    training = manifest.training.with_options(lr=arguments.lr, epochs=arguments.epochs)
    memory = manifest.replay_size if arguments.replay_size is None else arguments.replay_size
    runtime: str = arguments.runtime
    strategies: dict[str, Callable[[World], NDArray[np.intp]]] = {
        "cumulative": lambda world: learn_at_once(bundle, world, training, runtime=runtime),
        "replay": lambda world: learn_stream(bundle, world, training, memory, runtime=runtime),
        "no replay": lambda world: learn_stream(bundle, world, training, 0, runtime=runtime),
        "naive": lambda world: fine_tune(
            bundle, world, training.with_options(epochs=LONG), runtime=runtime
        ),
    }
    rows = []
    for seed in arguments.seeds:
        world = extract(bundle, "synthetic", seed=seed, visits=arguments.visits, runtime=runtime)
        print(f"seed {seed}: latents ready", file=sys.stderr)
        rows.append([accuracy(learn(world), world.test_labels) for learn in strategies.values()])
    lines = [" ".join([f"{'seed':>6}", *(f"{name:>10}" for name in strategies)])]
    for seed, row in zip([*arguments.seeds, "mean"], [*rows, np.mean(rows, axis=0)]):
        lines.append(" ".join([f"{seed:>6}", *(f"{value:10.3f}" for value in row)]))
    frames = sum(len(labels) for _, labels in world.sessions)
    lines += [
        f"targets for the mean: {TARGETS}",
        f"{len(world.sessions)} sessions, {frames} frames, {len(world.test_labels)} test frames; "
        f"{memory} latents, {training.epochs} epochs, lr {training.values['lr']:g}; cumulative "
        f"and naive {LONG} epochs; backbone: {manifest.backbone}",
        f"{describe_runtime(Model(bundle.head, runtime=runtime).runtime)}, on {this_machine()}",
    ]
    return "\n".join(lines)


def learn_at_once(
    bundle: Bundle, world: World, training: Training, *, runtime: str
) -> NDArray[np.intp]:
    everything = World([_together(world)], world.test, world.test_labels)
    longer = training.with_options(epochs=LONG)
    return learn_stream(bundle, everything, longer, 0, runtime=runtime)


def _together(world: World) -> tuple[Latents, list[int]]:
    latents, labels = zip(*world.sessions)
    return np.concatenate(latents), [label for session in labels for label in session]


def fine_tune(
    bundle: Bundle, world: World, training: Training, *, runtime: str
) -> NDArray[np.intp]:
    """Train by plain SGD through the bundle's head, and return the predicted slots.

    CWR* is switched off: with all past counts 0 and every class present, `begin` loads all weights,
    and `consolidate` puts them back minus one scalar, which does not change any argmax.
    """
    manifest = bundle.manifest
    head = Model(bundle.head, runtime=runtime)
    present = np.ones(manifest.slots, np.float32)
    rates = training.scalars(head.signatures["train"].inputs)
    start = training.scalars(head.signatures["begin"].inputs)
    nothing = ReplayMemory(0, manifest.latent_form, policy=manifest.policy, codec=manifest.codec)
    rng = np.random.default_rng(0)
    for latents, labels in world.sessions:
        state = head.run("save", zero=ZERO)
        state["past"] = np.zeros_like(state["past"])
        head.run("restore", **state)
        head.run("begin", counts=present, **start)
        feeding = training.feeding
        for batch, targets in minibatches(
            Patterns(latents, np.array(labels, np.int32), nothing),
            feeding,
            steps=feeding.steps_per_epoch(new=len(latents), stored=0) * feeding.epochs,
            classes=manifest.slots,
            rng=rng,
            out=head.buffer("train", "latents"),
        ):
            head.run("train", latents=batch, targets=targets, **rates)
        head.run("consolidate", counts=present)
    return np.asarray(head.run("infer", latents=world.test)["probabilities"].argmax(axis=1))


if __name__ == "__main__":
    main()
