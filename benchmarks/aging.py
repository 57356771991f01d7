"""Accuracy with moments below the replay layer that are frozen or adapt.

A stored latent was made with the moments of its session, and ages when they move. The same stream
is learned with several moment rates (0 freezes the moments; the paper uses 5e-5), from a bundle of
`lrtflite convert --adapt-moments`. The figures are the accuracy on the whole test set after the
last session.

    python benchmarks/aging.py BUNDLE [--dataset synthetic] [--seeds 2000 2001 2002]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

from lrtflite import Bundle, Learner, LrtfliteError
from lrtflite.data import StreamOptions, nic_stream, open_source
from lrtflite.machine import this_machine
from lrtflite.runtime import describe_runtime


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("bundle", type=Path)
    parser.add_argument("--dataset", default="synthetic")
    parser.add_argument("--seeds", type=int, nargs="+", default=[2000, 2001, 2002])
    parser.add_argument("--rates", type=float, nargs="+", default=[0, 5e-5, 5e-4, 5e-3])
    parser.add_argument("--runtime", default="auto")
    arguments = parser.parse_args()
    try:
        print(run(arguments))
    except LrtfliteError as error:
        sys.exit(f"Error: {error}")


def run(arguments: argparse.Namespace) -> str:
    bundle = Bundle.open(arguments.bundle)
    if not bundle.manifest.adapt_moments:
        raise LrtfliteError(
            f"Expected a bundle of `convert --adapt-moments`, got {bundle.path}; convert it again"
        )
    lines = [" ".join([f"{'seed':>6}", *(f"{rate:>9g}" for rate in arguments.rates)])]
    rows = []
    for seed in arguments.seeds:
        rows.append([learn(bundle, arguments, seed, rate) for rate in arguments.rates])
        print(f"seed {seed}: {rows[-1]}", file=sys.stderr, flush=True)
    for seed, row in zip([*arguments.seeds, "mean"], [*rows, np.mean(rows, axis=0)]):
        lines.append(" ".join([f"{seed:>6}", *(f"{value:9.3f}" for value in row)]))
    with Learner.open(bundle, runtime=arguments.runtime) as learner:
        runtime = describe_runtime(learner.runtime)
    lines += [
        f"columns: moment rate below {bundle.manifest.replay_layer}; "
        f"{bundle.manifest.training.epochs} epochs, memory {bundle.manifest.replay_size}, "
        f"{arguments.dataset}; backbone: {bundle.manifest.backbone}",
        f"{runtime}, on {this_machine()}",
    ]
    return "\n".join(lines)


def learn(bundle: Bundle, arguments: argparse.Namespace, seed: int, rate: float) -> float:
    source = open_source(arguments.dataset, size=bundle.manifest.input_size, seed=seed)
    training = bundle.manifest.training.with_options(adapt_rate=rate)
    with Learner.open(bundle, runtime=arguments.runtime) as learner:
        for batch in nic_stream(source, StreamOptions(visits=2, seed=seed)):
            learner.learn(batch.frames(), slot=list(batch.labels), training=training)
        hits = [
            learner.probabilities(learner.extract(frame)).argmax() == clip.label
            for clip in source.test_clips()
            for frame in clip.read()
        ]
    return float(np.mean(hits))


if __name__ == "__main__":
    main()
