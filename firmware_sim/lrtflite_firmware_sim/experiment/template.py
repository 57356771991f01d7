"""The commented plan that `lrtflite experiment --init` writes; it runs in two minutes."""

from __future__ import annotations

from pathlib import Path

from lrtflite.errors import InputError
from lrtflite.files.atomic import write_atomic, writing
from lrtflite_firmware_sim.experiment.plan_file import PACKAGED

TEMPLATE = """\
# A plan for `lrtflite experiment PLAN.toml --out DIR`: a grid of simulations.
# The names are those of the options of `lrtflite simulate` and `lrtflite convert`.
title = "Memory and policy"
about = "How much the size of the replay memory and its policy matter."

# Options of every cell.
[fixed]
dataset = "synthetic?frames=10&test_frames=5&classes=20"
first-classes = 5
# A fixed split-seed keeps the drawn objects, so that `seed` changes the order of sessions alone.
split-seed = 0
# Options of convert make a bundle of your own (this needs the extra `host`); without any, the
# packaged demo bundle learns.
# network = "mobilenet_v1"
# replay-layer = "conv5_4/dw"
# strategy = "ar1"
# A rate by its name, as with --rate NAME=VALUE:
# rate.momentum = 0.9

# Axes: every combination of these values is a cell.
[grid]
policy = ["algorithm1", "balanced"]
replay-size = [20, 100]
seed = [0, 1, 2]
"""


def write_template(path: str | Path) -> None:
    """Write the plan; raise InputError if there is a file already, or a packaged plan is named."""
    if str(path).startswith(PACKAGED):
        raise InputError(
            f"Expected a path for the new plan, got {path}, a name of a packaged plan",
            "give one such as plan.toml",
        )
    if Path(path).exists():
        raise InputError(f"Expected a new file, got {path}, which exists", "give another path")
    with writing(path):
        write_atomic(path, TEMPLATE)
