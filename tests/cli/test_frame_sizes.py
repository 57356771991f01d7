"""`convert` tells what other frame sizes cost, and what the study of them found."""

from __future__ import annotations

import re
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from lrtflite import Bundle
from lrtflite.bundle.costs import Costs
from lrtflite.bundle.destination import Destination
from lrtflite.bundle.manifest import Manifest
from lrtflite_cli.commands.convert import command
from lrtflite_converters.conversion.convert import Converted
from lrtflite_converters.request.frame_sizes import STUDIED, other_frame_sizes
from lrtflite_converters.request.source import Source

COSTS = Costs("a board", "litert 9", 1, 2.0, 0.0, 0, 0.02, 98.5, 0.0)
PUBLISHED = (
    "MobileNetV1 alpha 1, ImageNet, keras.applications MobileNet alpha 1 at 128 (Apache-2.0)"
)
PAGE = Path(__file__).parents[2] / "docs" / "studies" / "frame-sizes.md"


@pytest.fixture
def studied(demo: Path) -> Manifest:
    """Return the manifest of a bundle that the study has."""
    manifest = Bundle.open(demo).manifest
    return replace(manifest, backbone=PUBLISHED, strategy="lda", measured=COSTS)


def test_the_time_grows_with_the_pixels(studied: Manifest) -> None:
    times, _ = other_frame_sizes(studied)
    # 2 ms at 128 px, times 9/16, 25/16, 36/16 and 49/16.
    assert times.endswith("pixels: 96 px 1.1 ms, 160 px 3.1 ms, 192 px 4.5 ms, 224 px 6.1 ms")
    times, _ = other_frame_sizes(replace(studied, input_size=224))
    assert times.endswith("pixels: 96 px 0.4 ms, 128 px 0.7 ms, 160 px 1.0 ms, 192 px 1.5 ms")


def test_the_files_of_the_study_are_known_by_their_digest(studied: Manifest) -> None:
    backbone = "MobileNetV1 alpha 1, any.npz (sha256 42d7259fd444)"
    assert len(list(other_frame_sizes(replace(studied, backbone=backbone)))) == 2


@pytest.mark.parametrize(
    "other",
    [
        {"backbone": "MobileNetV1 alpha 0.25, demo backbone (sha256 8b1a9953c461)"},
        {"backbone": PUBLISHED.replace("alpha 1", "alpha 0.5")},
        {"backbone": PUBLISHED.replace("V1", "V2")},
        {"backbone": "my.keras, MobileNetV1 alpha 1, ImageNet, keras.applications MobileNet"},
        {"replay_layer": "conv5_6/sep"},
        {"strategy": "ncm"},
        {"measured": None},
    ],
    ids=str,
)
def test_nothing_is_said_without_a_study(studied: Manifest, other: dict[str, str | None]) -> None:
    assert list(other_frame_sizes(replace(studied, **other))) == []  # type: ignore[arg-type]


def test_the_figures_are_those_of_the_page() -> None:
    [network] = STUDIED
    rows = re.findall(r"^\| (\d+), `(\w+)` \| (0\.\d{3}) \|", PAGE.read_text("utf-8"), re.M)
    found = {(strategy, int(size)): float(share) for size, strategy, share in rows}
    assert found == {
        (strategy, size): share
        for strategy, shares in network.accuracy.items()
        for size, share in shares.items()
    }


def test_convert_ends_with_both_lines(
    studied: Manifest, demo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def make(destination: Destination, *_: object, **__: object) -> Converted:
        shutil.copytree(demo, destination.path)
        (destination.path / "manifest.json").write_text(studied.to_json(), "utf-8")
        return Converted(destination.path)

    monkeypatch.setattr("lrtflite.system.extras.require", lambda *names: None)
    # The real module imports TensorFlow.
    monkeypatch.setitem(
        sys.modules, "lrtflite_converters.conversion.making", SimpleNamespace(make=make)
    )
    done = CliRunner().invoke(command, ["--out", str(tmp_path / "bundle")])
    assert done.exit_code == 0, done.output
    lines = done.output.splitlines()
    costs = next(number for number, line in enumerate(lines) if line.startswith("Costs: "))
    assert lines[costs + 1 : -1] == list(other_frame_sizes(studied))
    assert "study" in lines[-2]


def test_the_default_is_the_papers_size() -> None:
    said = " ".join(CliRunner().invoke(command, ["--help"]).output.split())
    assert "[default: (128; 192 with --preset best)]" in said
    assert Source().side == 128
