"""Compare speed and RAM of this checkout with those of an earlier commit, in paired rounds.

Each side converts its own bundles and simulates with its own code, in its own processes. The two
take turns, so that other programs on the machine disturb both equally. Each round gives one ratio;
the table has the median and the spread of the ratios.

    python benchmarks/before_after.py REVISION [--rounds 5]

- app session: `pool6`, alpha 1.0, the paper's app (40 steps of 20 + 100, memory 500), from the last
  latent ready to the state on disk;
- step: one training step above `conv5_4/dw`, alpha 1.0, 21 + 107 latents;
- RAM: peak of the device process in each.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bundles import BUILD, IMAGENET, ROOT, say

from lrtflite.system.machine import this_machine

APP = ("--protocol", "app", "--dataset", "synthetic?frames=100&test_frames=1")
DEEP = ("--dataset", "synthetic?frames=5&test_frames=1", "--replay-size", "1500")
FIGURES = ("app session, ms", "app RAM, MB", "step, ms", "step RAM, MB")


@dataclass(frozen=True)
class Side:
    """One checkout and its bundles."""

    checkout: Path
    bundles: Path

    def lrtflite(self, words: Sequence[str]) -> None:
        path = [self.checkout / name for name in ("", "converters", "firmware_sim", "cli")]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, path))}
        # Run in the checkout, so that its packages come before installed ones.
        command = [sys.executable, "-m", "lrtflite_cli.main", *words]
        subprocess.run(
            command, cwd=self.checkout, env=environment, check=True, stdout=subprocess.DEVNULL
        )

    def convert(self, name: str, layer: str) -> Path:
        out = self.bundles / name
        weights = ["--weights", str(IMAGENET if IMAGENET.exists() else "imagenet")]
        options = ["--alpha", "1.0", "--classes", "50", "--replay-layer", layer]
        self.lrtflite(["convert", *weights, *options, "--out", str(out)])
        return out

    def simulate(self, bundle: str, words: Sequence[str], sessions: int) -> dict[str, float]:
        result = self.bundles / "result.json"
        how = ["--sessions", str(sessions), "--runtime", "litert", "--threads", "1"]
        self.lrtflite(["simulate", str(self.bundles / bundle), *words, *how, "--json", str(result)])
        found = json.loads(result.read_text())
        return {
            "session": found["session_ms_p50"],
            "step": found["latency_ms"]["train"]["p50"],
            "ram": found["peak_ram_mb"],
        }

    def measure(self) -> tuple[float, ...]:
        """Return the values of FIGURES in one round."""
        app = self.simulate("pool6", APP, sessions=11)
        deep = self.simulate("deep", DEEP, sessions=2)
        return app["session"], app["ram"], deep["step"], deep["ram"]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("revision", help="the commit to compare with")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    BUILD.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=BUILD) as folder, _checkout(arguments.revision) as before:
        sides = [Side(before, Path(folder) / "before"), Side(ROOT, Path(folder) / "after")]
        for side in sides:
            say(f"Converting with {side.checkout}")
            side.convert("pool6", "pool6")
            side.convert("deep", "conv5_4/dw")
        pairs = []
        for number in range(arguments.rounds):
            order = sides if number % 2 == 0 else sides[::-1]
            found = {side: side.measure() for side in order}
            pairs.append((found[sides[0]], found[sides[1]]))
            say(f"round {number + 1}: before {_row(pairs[-1][0])}, after {_row(pairs[-1][1])}")
    print(f"| figure | {arguments.revision} | now | ratio, median (least to greatest) |")
    print("| --- | --- | --- | --- |")
    for column, name in enumerate(FIGURES):
        old, new = ([pair[side][column] for pair in pairs] for side in (0, 1))
        ratios = sorted(n / o for o, n in zip(old, new))
        spread = f"{median(ratios):.3f} ({ratios[0]:.3f} to {ratios[-1]:.3f})"
        print(f"| {name} | {median(old):.1f} | {median(new):.1f} | {spread} |")
    print(f"\n{arguments.rounds} rounds, ai-edge-litert, 1 thread, {this_machine()}")


@contextmanager
def _checkout(revision: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "before"
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--quiet", "--detach", str(path), revision], check=True)
        try:
            yield path
        finally:
            subprocess.run([*git, "remove", "--force", str(path)], check=True)


def _row(values: Sequence[float]) -> str:
    return " / ".join(f"{value:.1f}" for value in values)


if __name__ == "__main__":
    main()
