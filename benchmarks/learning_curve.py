"""Draw the README's picture from the results of a simulation.

make demo
lrtflite convert --strategy lda --out build/lda
lrtflite simulate build/lda --json build/lda.json
python benchmarks/learning_curve.py demo/report.json docs/learning-curve.png --other build/lda.json
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from lrtflite.errors import LrtfliteError
from lrtflite_firmware_sim import load_simulation
from lrtflite_firmware_sim.reporting.plot import learning_curve


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("results", type=Path, help="file that `lrtflite simulate --json` wrote")
    parser.add_argument("--other", type=Path, help="results of another strategy, drawn dashed")
    parser.add_argument("picture", type=Path, help="PNG, SVG or PDF, by its ending")
    arguments = parser.parse_args()
    try:
        other = None if arguments.other is None else load_simulation(arguments.other)
        learning_curve(load_simulation(arguments.results), arguments.picture, other)
    except LrtfliteError as error:
        sys.exit(f"Error: {error}")


if __name__ == "__main__":
    main()
