"""Warnings about quantised features, and their line in `lrtflite inspect`."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from lrtflite.bundle.bundle import Bundle
from lrtflite.bundle.quantisation import Quantisation
from lrtflite_cli.commands.inspect import command
from lrtflite_cli.terminal.cautions import quantisation_warnings

FINE = Quantisation(
    mode="int8",
    scale=0.02,
    zero_point=-128,
    calibration="synthetic",
    frames=200,
    epochs=0,
    snr_db=24.0,
    agreement=0.99,
    float_bytes=1000,
    int8_bytes=250,
    runtime="1.14.0",
)


@pytest.mark.parametrize(
    ("changes", "warning"),
    [
        ({}, None),
        ({"agreement": None, "runtime": ""}, None),
        ({"snr_db": 9.0}, r"ratio of 9.0 dB, below 15; try --quantize qat, more --cal"),
        ({"agreement": 0.9}, "90.0 % equal predictions, below 95; try --quantize qat"),
        ({"agreement": 0.9, "mode": "qat", "epochs": 5}, "below 95; try more --calibration-frames"),
        ({"frames": 9}, "9 calibration frames are few.*give at least 32"),
        ({"runtime": "2.17.0"}, "need TFLite 2.17.0 or later; tflite-runtime 2.14.0 cannot open"),
    ],
)
def test_what_is_poor_is_said_with_what_to_try(
    changes: dict[str, Any], warning: str | None
) -> None:
    found = quantisation_warnings(dataclasses.replace(FINE, **changes))
    assert len(found) == (warning is not None)
    assert warning is None or re.search(warning, found[0])


def test_inspect_shows_it(demo: Path, tmp_path: Path) -> None:
    bundle = Path(shutil.copytree(demo, tmp_path / "b"))
    manifest = Bundle.open(bundle).manifest
    changed = dataclasses.replace(
        manifest, latent_dtype="int8", train_dtype="int8", quantisation=FINE
    )
    (bundle / "manifest.json").write_text(changed.to_json())
    done = CliRunner().invoke(command, [str(bundle)])
    assert done.exit_code == 0, done.output
    assert re.search(r"quantisation +features.tflite .*4.00 times smaller.* 24.0 dB", done.output)
    assert re.search(r"value of a latent +\(latent \+ 128\) x 0.02", done.output)
    assert re.search(r"latent +256 int8, 256 bytes", done.output)
    as_json = json.loads(CliRunner().invoke(command, [str(bundle), "--json"]).output)
    assert as_json["quantisation"]["agreement"] == 0.99
