"""Accuracy on classes that were taught one after the other from a few pictures each.

The head is empty and the options are the bundle's defaults. Some classes are drawn at random, and
the first pictures of each are one session. The figures are the accuracy on the held-out pictures of
all drawn classes. With `--head-start 0`, as in the paper, a new class starts from zero and not from
the mean of the known classes.

    python benchmarks/few_pictures.py BUNDLE folder:PATH [--classes 5] [--pictures 6 12 20]
    python benchmarks/few_pictures.py BUNDLE synthetic --classes 12 --draws 6 --head-start 0
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lrtflite import Bundle, Learner, LrtfliteError
from lrtflite.data import Clip, open_source
from lrtflite.runtime.model import describe_runtime
from lrtflite.system.machine import this_machine

DRAWS = "accuracy of each draw"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("bundle", type=Path)
    parser.add_argument("dataset", help="folder:PATH with a folder of pictures per class, ...")
    parser.add_argument("--seed", type=int, default=0, help="seed of the data set")
    parser.add_argument("--classes", type=int, default=5)
    parser.add_argument("--pictures", type=int, nargs="+", default=[6, 12, 20])
    parser.add_argument("--draws", type=int, default=4)
    parser.add_argument("--head-start", type=float, help="overrides the bundle's rate")
    arguments = parser.parse_args()
    try:
        print(run(Bundle.open(arguments.bundle), arguments))
    except LrtfliteError as error:
        sys.exit(f"Error: {error}")


def run(bundle: Bundle, arguments: argparse.Namespace) -> str:
    size, training = bundle.manifest.input_size, bundle.manifest.training
    source = open_source(arguments.dataset, size=size, seed=arguments.seed)
    training = training.with_options(head_start=arguments.head_start)
    width = max(6 * arguments.draws, len(DRAWS))
    lines = [f"pictures  {DRAWS:<{width}} mean"]
    for pictures in arguments.pictures:
        found = []
        for draw in range(arguments.draws):
            shuffled = np.random.default_rng(draw).permutation(len(source.classes))
            chosen = shuffled[: arguments.classes]
            with Learner.open(bundle) as learner:
                for label in chosen:
                    latents = _latents(learner, source.train_clips(), label)[:pictures]
                    learner.learn_latents(latents, source.classes[label], training=training)
                hits = [
                    top[0].label == source.classes[label]
                    for label in chosen
                    for top in learner.predict_latents(
                        _latents(learner, source.test_clips(), label), top=1
                    )
                ]
            found.append(np.mean(hits))
        shown = " ".join(f"{accuracy:.3f}" for accuracy in found)
        lines.append(f"{pictures:8}  {shown:<{width}} {np.mean(found):.3f}")
    lines.append(
        f"{arguments.classes} classes, {bundle.manifest.replay_layer}; {training.epochs} epochs, "
        f"at least {training.least_steps} steps, lr {training.values['lr']:g}, "
        f"head start {training.values['head_start']:g}; {bundle.manifest.backbone}"
    )
    lines.append(f"{describe_runtime(learner.runtime)}, on {this_machine()}")
    return "\n".join(lines)


def _latents(learner: Learner, clips: Sequence[Clip], label: int) -> NDArray[np.float32]:
    """Return the latents (n, ...) float32 of all frames of a class."""
    of_class = [frame for clip in clips if clip.label == label for frame in clip.read()]
    return learner.extract(np.stack(of_class))


if __name__ == "__main__":
    main()
