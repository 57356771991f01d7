"""Time of experiments: a cell from shared latents against `simulate`, workers, the scheduler.

    python benchmarks/experiments.py [--cells 8] [--dataset SPEC]

Prints a line for each measurement, and the RAM of the processes of a cell. Run it while both cores
are free.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

COMMAND = [sys.executable, "-m", "lrtflite_cli.main"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", type=int, default=8)
    parser.add_argument("--dataset", default="synthetic?frames=20")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measure(Path(folder), given.dataset, given.cells)


def measure(folder: Path, dataset: str, cells: int) -> None:
    own = timed(["simulate", "--dataset", dataset, "--split-seed", "0", "--threads", "1"])
    print(f"simulate: {own}", flush=True)
    plan = folder / "plan.toml"
    plan.write_text(f'dataset = "{dataset}"\nsplit-seed = 0\n[grid]\nseed = {[*range(cells)]}\n')
    first = timed(["experiment", plan, "--out", folder / "first", "--workers", 1])
    print(f"{cells} cells, and their latents, on one worker: {first}", flush=True)
    runs = {
        "one worker": ["--workers", 1],
        "two workers": ["--workers", 2],
        "a cluster of one worker": ["--workers", 1, "--scheduler", "local"],
    }
    found = {}
    for name, words in runs.items():
        out = folder / name.replace(" ", "-")
        out.mkdir()
        # The same latents, so that only cells are timed.
        subprocess.run(["cp", "-r", folder / "first/latents", out / "latents"], check=True)
        found[name] = timed(["experiment", plan, "--out", out, *words])
        print(f"{cells} cells, {name}: {found[name]}", flush=True)
    one, two, cluster = found.values()
    print(f"a cell from shared latents: {one.processors / cells / own.processors:.2f} of simulate")
    print(f"two workers: {two.seconds / one.seconds:.2f} of the time of one")
    each = (cluster.seconds - one.seconds) / cells
    print(f"more for each cell in a cluster, with the start of the cluster: {each:.2f} s")


class TimedCommand:
    """Wall and processor seconds of a command, and the peak RAM of all its processes.

    Seconds of processors are those of the command and its children, so other programs that run at
    the same time hardly change them.
    """

    def __init__(self, words: Sequence[object]) -> None:
        self.megabytes = 0.0
        started, before = time.monotonic(), processors()
        with subprocess.Popen(
            [*COMMAND, *map(str, words)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as process:
            watching = threading.Thread(target=self._watch, args=(process,))
            watching.start()
            process.wait()
            self.seconds = time.monotonic() - started
            watching.join()
        self.processors = processors() - before
        assert process.returncode == 0

    def __str__(self) -> str:
        used = f"{self.processors:.1f} s of processors"
        return f"{self.seconds:.1f} s ({used}), {self.megabytes:.0f} MB"

    def _watch(self, process: subprocess.Popen[bytes]) -> None:
        while process.poll() is None:
            self.megabytes = max(self.megabytes, sum(map(proportional_mb, tree(process.pid))))
            time.sleep(0.1)


timed = TimedCommand


def processors() -> float:
    """Return the seconds of processors of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def tree(top: int) -> list[int]:
    """Return a process and all below it."""
    found = [top]
    for process in found:
        for task in Path(f"/proc/{process}/task").glob("*/children"):
            try:
                found += map(int, task.read_text().split())
            except OSError:
                continue
    return found


def proportional_mb(process: int) -> float:
    """Return the RAM of a process; shared pages count once for all who map them."""
    try:
        text = Path(f"/proc/{process}/smaps_rollup").read_text()
    except OSError:
        return 0.0
    [line] = [each for each in text.splitlines() if each.startswith("Pss_Anon:")] or ["0 0"]
    return int(line.split()[1]) * 1024 / 1e6


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
