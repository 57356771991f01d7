"""Cost of a commit whose tensors are large, without any model: time and bytes on the disk.

The tensors are a trunk of 12.6 MB, which rests, trains in every other session or in each, and a
last layer that always changes. With `--checkout` a copy of the package from another commit takes
turns with this one, each in processes of its own; the last column is the median of the ratios.

    python benchmarks/generations.py [--checkout FOLDER] [--rounds 5] [--commits 12]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from statistics import median

import numpy as np

from lrtflite.replay.memory import Content
from lrtflite.state.checkpoint import Checkpoint
from lrtflite.state.meta import StateMeta
from lrtflite.state.reading import State
from lrtflite.system.machine import this_machine

ROOT = Path(__file__).resolve().parents[1]
# The session whose trunk a session has, by the name of the case.
TRUNKS: dict[str, Callable[[int], int]] = {
    "rests": lambda number: 0,
    "rests, reopened each time": lambda number: 0,
    "trains in every other session": lambda number: number // 2,
    "trains in every session": lambda number: number,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--checkout", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--commits", type=int, default=12)
    parser.add_argument("--case", choices=TRUNKS, help="run one case and print JSON")
    options = parser.parse_args()
    if options.case:
        print(json.dumps(measure(options.case, options.commits)))
        return
    print(f"{this_machine()}; n = {options.rounds} rounds of {options.commits} commits\n")
    print("| trunk | commit, mean | folder | before | folder before | ratio |")
    print("| --- | --- | --- | --- | --- | --- |")
    for case in TRUNKS:
        rounds = [compare(case, options) for _ in range(options.rounds)]
        after, before = ([each[side] for each in rounds] for side in (0, 1))
        ratio = median(a[0] / b[0] for a, b in rounds)
        print(f"| {case} | {shown(after)} | {shown(before)} | {ratio:.2f} |", flush=True)


def shown(found: list[list[float]]) -> str:
    return f"{median(ms for ms, _ in found):.0f} ms | {max(size for _, size in found):.1f} MB"


def compare(case: str, options: argparse.Namespace) -> list[list[float]]:
    """Return the figures of this checkout and of the other one, in turns."""
    found = []
    for checkout in (ROOT, options.checkout or ROOT):
        words = ["--case", case, "--commits", str(options.commits)]
        environment = {**os.environ, "PYTHONPATH": str(checkout)}
        command = [sys.executable, __file__, *words]
        run = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
        found.append(json.loads(run.stdout))
    return found


def measure(case: str, commits: int) -> list[float]:
    """Return the mean time of a commit in ms, and the size of the folder in MB at its largest."""
    memory = Content.empty((3,), np.dtype(np.float32))
    spent, largest = 0.0, 0
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = Checkpoint(folder)
        checkpoint.load()
        for number in range(commits + 2):  # the first two write every tensor in any case
            state = made(number, TRUNKS[case](number), memory)
            started = time.perf_counter()
            memory = checkpoint.commit(state)
            spent += time.perf_counter() - started if number > 1 else 0
            largest = max(largest, sum(path.stat().st_size for path in Path(folder).iterdir()))
            if "reopened" in case:
                checkpoint.close()
                checkpoint = Checkpoint(folder)
                found = checkpoint.load()
                assert found is not None
                memory = found.memory
        with closing(checkpoint):
            return [spent / commits * 1e3, largest / 1e6]


def made(number: int, trunk: int, memory: Content) -> State:
    arrays = {f"head/{k}": np.full((1024, 1024), trunk, np.float32) for k in range(3)}
    arrays["head/last"] = np.full((50, 1024), number, np.float32)
    entry = {"id": "0" * 32, "labels": ["cup"], "patterns": [1]}
    meta = StateMeta(
        bundle="b" * 64,
        replay_layer="conv5_4/dw",
        replay_size=0,
        policy="algorithm1",
        codec="raw",
        labels=("cup",),
        learned=(True,),
        rng=np.random.PCG64(number).state,
        sessions=number,
        history=tuple({**entry, "session": k + 1} for k in range(number)),
    )
    return State(arrays, memory, meta)


if __name__ == "__main__":
    main()
