"""Accuracy with other rates than a bundle's own, at one replay layer; streams as in closed_form.py.

Latents are extracted once for all rates. Rates are chosen with `--validation` (a quarter of the
training photographs, or worlds of other seeds) and reported without it. Each row has the accuracy
after the last session by seed, and "one by one": twelve classes, a session each, six draws.

    python benchmarks/rates.py photographs --seeds 100 101 --validation --try lr=0.005
    python benchmarks/rates.py shifted --layer block_13 --classes 20 --try trunk_lr=0.005
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np
from bundles import WEIGHTS, converted
from closed_form import CLASSES, DRAWS, ONE_BY_ONE, PICTURES
from replay_layers import CASES
from worlds import World, extract, learn_stream

from lrtflite import Bundle, Learner, LrtfliteError, Training
from lrtflite.networks.architecture import NETWORKS
from lrtflite.runtime.model import describe_runtime, pick_runtime
from lrtflite.system.machine import this_machine
from lrtflite.workbench.metrics import accuracy

# First draw of "one by one" for validation.
OTHER_DRAWS = 100


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("case", choices=CASES)
    parser.add_argument("--network", choices=WEIGHTS, default="mobilenet_v2")
    parser.add_argument("--layer", help="[the pooled layer]")
    parser.add_argument("--strategy", help="[the layer's default]")
    parser.add_argument("--seeds", type=int, nargs="+")
    parser.add_argument("--classes", type=int, help="use only this many classes of the stream")
    parser.add_argument("--validation", action="store_true", help="judge a quarter of the training")
    parser.add_argument("--draws", type=int, default=DRAWS, help="of one by one [%(default)s]")
    parser.add_argument(
        "--try",
        dest="tried",
        type=named,
        action="append",
        default=[],
        help="NAME=VALUE[,NAME=VALUE] instead of the bundle's; may be repeated",
    )
    arguments = parser.parse_args()
    try:
        run(arguments)
    except LrtfliteError as error:
        sys.exit(f"Error: {error}")
    print(f"{describe_runtime(pick_runtime('auto'))}, on {this_machine()}")


def named(text: str) -> dict[str, float]:
    pairs = (each.partition("=") for each in text.split(","))
    return {name: int(value) if value.isdigit() else float(value) for name, _, value in pairs}


def run(arguments: argparse.Namespace) -> None:
    case = CASES[arguments.case].of_network(arguments.network)
    layer = arguments.layer or NETWORKS[arguments.network].pooled
    words, name = case.words(layer), f"rates/{case.name(layer)}"
    if arguments.strategy:
        words, name = [*words, "--strategy", arguments.strategy], f"{name}-{arguments.strategy}"
    bundle = Bundle.open(converted(name, words))
    default = bundle.manifest.training
    rows = [{}, *arguments.tried]
    found: list[list[float]] = [[] for _ in rows]
    for seed in arguments.seeds or case.seeds:
        world = extract(bundle, case.dataset, seed=seed, visits=2, runtime="auto")
        world = world.validation() if arguments.validation else world
        world = world.of_classes(arguments.classes) if arguments.classes else world
        for row, changed in zip(found, rows):
            started = time.perf_counter()
            training = default.with_options(**changed)
            answers = learn_stream(bundle, world, training, case.memory, runtime="auto", seed=seed)
            row.append(accuracy(answers, world.test_labels))
            took = time.perf_counter() - started
            print(f"{layer} {changed} seed {seed}: {row[-1]:.3f}, {took:.0f} s", file=sys.stderr)
    print("| rates | accuracy by seed | mean | one by one |\n| --- | --- | --- | --- |")
    for row, changed in zip(found, rows):
        shown = " ".join(f"{value:.3f}" for value in row)
        rates = ", ".join(f"{name} {value:g}" for name, value in changed.items()) or "default"
        single = "-"
        if arguments.draws:
            drawn = one_by_one(bundle, case.dataset, default.with_options(**changed), arguments)
            single = f"{np.mean(drawn):.3f}"
        print(f"| {rates} | {shown} | {np.mean(row):.3f} | {single} |", flush=True)


_worlds: dict[str, World] = {}


def one_by_one(
    bundle: Bundle, dataset: str, training: Training, arguments: argparse.Namespace
) -> list[float]:
    """Teach classes drawn at random, a session each; return the accuracy of each draw."""
    seed = ONE_BY_ONE[arguments.case]
    if dataset not in _worlds:
        found = extract(bundle, dataset, seed=seed, visits=1, runtime="auto")
        is_held = arguments.validation and arguments.case == "photographs"
        _worlds[dataset] = found.validation() if is_held else found
    world = _worlds[dataset]
    train = np.concatenate([latents for latents, _ in world.sessions])
    slots = np.concatenate([labels for _, labels in world.sessions])
    truth = np.array(world.test_labels)
    accuracies = []
    first = OTHER_DRAWS if arguments.validation else 0
    for draw in range(first, first + arguments.draws):
        chosen = np.random.default_rng(draw).permutation(len(np.unique(truth)))[:CLASSES]
        with Learner.open(bundle) as learner:
            for slot in chosen:
                patterns = train[slots == slot][:PICTURES]
                learner.learn_latents(patterns, slot=int(slot), training=training)
            judged = np.isin(truth, chosen)
            answers = learner.probabilities(world.test[judged]).argmax(axis=1)
        accuracies.append(float((answers == truth[judged]).mean()))
    return accuracies


if __name__ == "__main__":
    main()
