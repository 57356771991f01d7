"""Accuracy of several replay layers on the same stream.

- photographs: fifty classes of Caltech photographs, ImageNet weights (`../shared`), memory 1000;
- synthetic: drawn videos and the demo backbone, which was trained on other drawn objects;
- shifted: drawn videos and the ImageNet weights, which were not trained on drawings.

The stream is that of `lrtflite simulate`: 10 classes first, then one class per session, two visits
per class. The rates are the defaults of `convert` for each layer. They were chosen with `--try` on
a validation split: a quarter of the training photographs, or worlds of other seeds.

    python benchmarks/replay_layers.py photographs --layers pool6 conv5_6/dw conv5_4/dw
    python benchmarks/replay_layers.py shifted --seeds 1000 --try 0.01,0.001,4 --try 0.01,0.003,4
    python benchmarks/replay_layers.py synthetic --layers images --classes 20  # a third of the time
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from bundles import IMAGENET, LARGE_PHOTOGRAPHS, PHOTOGRAPHS, WEIGHTS, converted
from worlds import World, extract, learn_stream

from lrtflite import Bundle, LrtfliteError, Training
from lrtflite.runtime.model import describe_runtime, pick_runtime
from lrtflite.system.machine import this_machine
from lrtflite.workbench.metrics import accuracy


@dataclass(frozen=True)
class Case:
    """A stream and a backbone."""

    dataset: str
    weights: str
    memory: int
    seeds: tuple[int, ...]
    network: str = "mobilenet_v1"
    input_size: int = 128

    def of_size(self, size: int) -> Case:
        """Return the same stream with frames of another size."""
        if size == self.input_size:
            return self
        large = self.dataset.replace(str(PHOTOGRAPHS), str(LARGE_PHOTOGRAPHS))
        return replace(self, dataset=large, input_size=size)

    def of_network(self, network: str) -> Case:
        """Return the same stream with another network's ImageNet weights."""
        if network == self.network:
            return self
        if self.weights == "demo":
            raise LrtfliteError(f"Expected mobilenet_v1 for the demo backbone, got {network!r}")
        return replace(self, weights=str(WEIGHTS[network]), network=network)

    def words(self, layer: str) -> list[str]:
        """Return the options of `convert` for this backbone."""
        size = [] if self.input_size == 128 else ["--input-size", str(self.input_size)]
        words = ["--network", self.network, "--replay-layer", layer, "--weights", self.weights]
        return [*words, *size]

    def name(self, layer: str) -> str:
        """Return a name for a bundle at a layer."""
        backbone = "demo" if self.weights == "demo" else "imagenet"
        if self.network != "mobilenet_v1":
            backbone += f"-{self.network}"
        if self.input_size != 128:
            backbone += f"-{self.input_size}"
        return f"{backbone}-{layer.replace('/', '-')}"


CASES = {
    "photographs": Case(f"folder:{PHOTOGRAPHS}", str(IMAGENET), 1000, (0, 1, 2)),
    "synthetic": Case("synthetic", "demo", 1500, (2000, 2001, 2002)),
    "shifted": Case("synthetic", str(IMAGENET), 1500, (2000, 2001, 2002)),
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("case", choices=CASES)
    parser.add_argument("--network", choices=WEIGHTS, default="mobilenet_v1")
    parser.add_argument("--layers", nargs="+", default=["pool6", "conv5_6/dw", "conv5_4/dw"])
    parser.add_argument("--seeds", type=int, nargs="+")
    parser.add_argument(
        "--validation", action="store_true", help="test on a quarter of the training frames"
    )
    parser.add_argument(
        "--try",
        dest="tried",
        type=rates,
        action="append",
        help="lr,trunk_lr,epochs[,moment_rate] instead of the bundle's; may be repeated",
    )
    parser.add_argument("--classes", type=int, help="use only this many classes of the stream")
    parser.add_argument("--runtime", default="auto")
    arguments = parser.parse_args()
    try:
        print(run(CASES[arguments.case].of_network(arguments.network), arguments))
    except LrtfliteError as error:
        sys.exit(f"Error: {error}")


def rates(text: str) -> Callable[[Training], Training]:
    lr, trunk_lr, epochs, *rest = text.split(",")
    (moment_rate,) = rest or (None,)
    return lambda default: default.with_options(
        lr=float(lr),
        trunk_lr=float(trunk_lr),
        epochs=int(epochs),
        moment_rate=None if moment_rate is None else float(moment_rate),
    )


def run(case: Case, arguments: argparse.Namespace) -> str:
    seeds = arguments.seeds or case.seeds
    lines = [
        f"{'layer':12} {'lr':>6} {'trunk lr':>8} {'moments':>7} {'epochs':>6}  "
        + " ".join(f"{seed:>6}" for seed in seeds)
        + "    mean"
    ]
    for layer in arguments.layers:
        bundle = convert(case, layer)
        default = bundle.manifest.training
        for training in [change(default) for change in arguments.tried or [lambda same: same]]:
            found = [judge(bundle, case, training, arguments, seed) for seed in seeds]
            values = {name: f"{value:g}" for name, value in training.values.items()}
            # A bundle without a trunk lacks these rates.
            trunk_lr, moment_rate = values.get("trunk_lr", ""), values.get("moment_rate", "")
            lines.append(
                f"{layer:12} {values['lr']:>6} {trunk_lr:>8} {moment_rate:>7} {training.epochs:6}  "
                + " ".join(f"{value:6.3f}" for value in found)
                + f"  {np.mean(found):6.3f}"
            )
            print(lines[-1], file=sys.stderr, flush=True)
    part = f" of {arguments.classes} classes" if arguments.classes else ""
    part += ", validation split" if arguments.validation else ""
    lines += [
        f"{arguments.case}{part}: accuracy over the test set after the last session, by seed; "
        f"memory {case.memory}; backbone: {bundle.manifest.backbone}",
        f"{describe_runtime(pick_runtime(arguments.runtime))}, on {this_machine()}",
    ]
    return "\n".join(lines)


def judge(
    bundle: Bundle, case: Case, training: Training, arguments: argparse.Namespace, seed: int
) -> float:
    started = time.perf_counter()
    runtime: str = arguments.runtime
    world: World = extract(bundle, case.dataset, seed=seed, visits=2, runtime=runtime)
    if arguments.validation:
        world = world.validation()
    if arguments.classes:
        world = world.of_classes(arguments.classes)
    answers = learn_stream(bundle, world, training, case.memory, runtime=runtime, seed=seed)
    found = accuracy(answers, world.test_labels)
    took = time.perf_counter() - started
    layer = bundle.manifest.replay_layer
    print(f"{layer} seed {seed}: {found:.3f}, {took:.0f} s", file=sys.stderr, flush=True)
    return found


def convert(case: Case, layer: str) -> Bundle:
    """Return the bundle of a layer, which is converted only once."""
    return Bundle.open(converted(f"layers/{case.name(layer)}", case.words(layer)))


if __name__ == "__main__":
    main()
