"""Signatures read from the file are those that a runtime reports."""

from __future__ import annotations

from pathlib import Path

import pytest

from lrtflite.contract.signatures import describe_signatures, read_signatures
from lrtflite.errors import BundleError
from lrtflite.runtime.model import Model

BUNDLE = Path(__file__).parents[1] / "formats" / "bundle-6"


@pytest.mark.parametrize("name", ["features", "head"])
def test_they_are_the_runtimes(name: str, runtime: str) -> None:
    path = BUNDLE / f"{name}.tflite"
    reported = Model(path, runtime=runtime).signatures
    assert read_signatures(path) == {key: tuple(sorted(s.inputs)) for key, s in reported.items()}


def test_they_are_described_in_the_contracts_order() -> None:
    text = describe_signatures("head", BUNDLE / "head.tflite")
    assert text == (
        "infer, begin (head_start), "
        "train (d_max, lr, moment_rate, momentum, r_max, trunk_lr, weight_decay), "
        "train_last (lr, momentum, weight_decay), consolidate, forget, save, restore"
    )


def test_a_damaged_file_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "head.tflite"
    content = (BUNDLE / "head.tflite").read_bytes()
    for damaged in (b"", content[:4] + b"XXXX", b"\xff" * 4 + content[4:]):
        path.write_bytes(damaged)
        with pytest.raises(BundleError, match="copy the bundle again"):
            read_signatures(path)
