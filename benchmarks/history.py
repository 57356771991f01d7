"""Cost of a commit after many sessions: folded, and with every session in full.

Each row is a state with this many sessions of one label. The figures are the time of a commit and
the bytes that it writes, in the median and in the commit that folds; the last column is the median
time over that of the first row. "in full" keeps every session as JSON, as states before format 6
did; it ends where the JSON has more bytes than a state may have. Times of one commit after another
with alternating lengths, so that a busy machine slows all of them.

    python benchmarks/history.py BUNDLE [--sessions 100 1000 10000 100000] [--commits 40]
"""

from __future__ import annotations

import argparse
import hashlib
import tempfile
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import numpy as np

from lrtflite import Learner
from lrtflite.errors import StateError
from lrtflite.state import history
from lrtflite.state.committed import CommittedState
from lrtflite.state.history import BLOCK, MAX_LABELS, History, TaughtSession
from lrtflite.state.models import save_models
from lrtflite.state.slots import Slots
from lrtflite.system.machine import this_machine

# More sessions and labels than any history has, so that all of them stay in full.
NEVER = 1 << 40


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("bundle", type=Path)
    parser.add_argument("--sessions", type=int, nargs="+", default=[100, 1000, 10_000, 100_000])
    parser.add_argument("--commits", type=int, default=40)
    options = parser.parse_args()
    print(f"{this_machine()}; n = {options.commits} commits each\n")
    choices = (("folded", BLOCK, MAX_LABELS), ("in full", NEVER, NEVER))
    for name, block, labels in choices:
        print(f"| sessions, {name} | commit p50 | p95 | written p50 | at a fold | to row 1 |")
        print("| --- | --- | --- | --- | --- | --- |")
        history.BLOCK, history.MAX_LABELS = block, labels
        compare(options.bundle, options.sessions, options.commits, folds=block == BLOCK)
        print()


def compare(bundle: Path, lengths: list[int], commits: int, *, folds: bool) -> None:
    """Print a row for each length of the history."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        learners = {}
        for length in lengths:
            learner = stack.enter_context(Learner.open(bundle, folder / str(length)))
            learner.committed.history = taught(length)
            learners[length] = learner
        times: dict[int, list[float]] = {length: [] for length in lengths}
        written: dict[int, list[int]] = {length: [] for length in lengths}
        full: set[int] = set()
        for _ in range(commits + 3):  # the first few have no earlier generation to share with
            for length in lengths:
                if length in full:
                    continue
                try:
                    took, count = commit(learners[length].committed, folder / str(length))
                except StateError:
                    full.add(length)
                    continue
                times[length].append(took)
                written[length].append(count)
        first = float(np.median(times[lengths[0]][3:]))
        for length in lengths:
            if length in full:
                print(f"| {length:,} | refused: too many bytes of JSON | | | | |")
                continue
            p50, p95 = np.percentile(times[length][3:], (50, 95))
            fold = f"{fold_bytes(learners[length].committed, folder / str(length)):,}"
            print(
                f"| {length:,} | {1e3 * p50:.1f} ms | {1e3 * p95:.1f} ms | "
                f"{int(np.median(written[length][3:])):,} | {fold if folds else '-'} | "
                f"{p50 / first:.2f} |",
                flush=True,
            )


def taught(sessions: int) -> History:
    """Return a history of so many sessions, of one label each."""
    return History.of(
        TaughtSession(hashlib.sha256(str(k).encode()).hexdigest()[:32], k, ("mug",), (20,))
        for k in range(1, sessions + 1)
    )


def commit(committed: CommittedState, folder: Path) -> tuple[float, int]:
    """Commit one more session; return the seconds that it took, and the bytes of new files."""
    before = set(folder.iterdir())
    with committed.change():
        tensors = save_models(committed.working, committed.adapting)
        # The head's own weights change in every session.
        tensors["head/cw"] = tensors["head/cw"] + np.float32(1e-6)
        started = time.perf_counter()
        grown = committed.history.with_session({"mug": 20}, time=1_800_000_000)
        slots = Slots(("mug", *committed.slots.labels[1:]))
        committed.commit(tensors, committed.learned, slots=slots, history=grown)
        took = time.perf_counter() - started
    return took, sum(path.stat().st_size for path in set(folder.iterdir()) - before)


def fold_bytes(committed: CommittedState, folder: Path) -> int:
    """Return the bytes of the next commit that folds a block."""
    while len(committed.history.recent) < 2 * BLOCK - 1 and history.BLOCK == BLOCK:
        more = committed.history.recent[-1]
        recent = (*committed.history.recent, replace(more, session=more.session + 1))
        committed.history = History(recent, committed.history.folded)
    return commit(committed, folder)[1]


if __name__ == "__main__":
    main()
