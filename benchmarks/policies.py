"""Accuracy of every replay policy at the same number of stored latents, paired by seed.

The streams and backbones are those of replay_layers.py, at `pool6` with CWR*: the latents of a
world are extracted once, and every policy learns the same stream with the same seed. A figure is
the accuracy over the whole test set after the last session. The interval is that of the paired
difference from the first policy, `algorithm1`, over the seeds.

    python benchmarks/policies.py synthetic [--memories 150 500 1500] [--seeds 2000 2001 2002]
    python benchmarks/policies.py synthetic --visits 6
    python benchmarks/policies.py photographs --validation
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

import numpy as np
from bundles import say
from closed_form import bundle_of
from intervals import shown
from replay_layers import CASES
from worlds import extract, learn_stream

from lrtflite import LrtfliteError
from lrtflite.replay.policies import POLICIES
from lrtflite.runtime.model import describe_runtime, pick_runtime
from lrtflite.system.machine import this_machine
from lrtflite.workbench.metrics import accuracy

SEEDS = {
    "photographs": (0, 1, 2, 3, 4),
    "synthetic": (2000, 2001, 2002, 2003, 2004),
    "shifted": (2000, 2001, 2002, 2003, 2004),
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("case", choices=CASES)
    parser.add_argument("--memories", type=int, nargs="+", default=[150, 500, 1500])
    parser.add_argument("--seeds", type=int, nargs="+")
    parser.add_argument("--visits", type=int, default=2, help="sessions of each class")
    parser.add_argument("--policies", nargs="+", choices=list(POLICIES), default=list(POLICIES))
    parser.add_argument(
        "--validation", action="store_true", help="test on a quarter of the training frames"
    )
    parser.add_argument("--runtime", default="auto")
    arguments = parser.parse_args()
    try:
        for line in rows(arguments):
            print(line, flush=True)
    except LrtfliteError as error:
        sys.exit(f"Error: {error}")
    print(f"{describe_runtime(pick_runtime(arguments.runtime))}, 1 thread, on {this_machine()}")


def rows(arguments: argparse.Namespace) -> Iterator[str]:
    found = judge(arguments)
    first = arguments.policies[0]
    titles = [f"{memory} | minus {first}" for memory in arguments.memories]
    yield f"| policy | {' | '.join(titles)} |"
    yield f"| --- |{' --- | --- |' * len(arguments.memories)}"
    for policy in arguments.policies:
        cells = []
        for memory in arguments.memories:
            values, base = found[policy, memory], found[first, memory]
            cells += [f"{np.mean(values):.3f}", "" if policy == first else shown(values, base)]
        yield f"| `{policy}` | {' | '.join(cells)} |"


def judge(arguments: argparse.Namespace) -> dict[tuple[str, int], list[float]]:
    """Return the accuracy by seed of each policy and memory."""
    case, runtime = CASES[arguments.case], arguments.runtime
    bundle = bundle_of(case, "pool6", "cwr")
    found: dict[tuple[str, int], list[float]] = {}
    for seed in arguments.seeds or SEEDS[arguments.case]:
        world = extract(bundle, case.dataset, seed=seed, visits=arguments.visits, runtime=runtime)
        world = world.validation() if arguments.validation else world
        for memory in arguments.memories:
            for policy in arguments.policies:
                answers = learn_stream(
                    bundle,
                    world,
                    bundle.manifest.training,
                    memory,
                    runtime=runtime,
                    seed=seed,
                    policy=policy,
                )
                right = accuracy(answers, world.test_labels)
                found.setdefault((policy, memory), []).append(right)
        say(f"seed {seed}: { ({key: round(values[-1], 3) for key, values in found.items()}) }")
    return found


if __name__ == "__main__":
    main()
