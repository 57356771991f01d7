"""New instances: all classes in the first session, then other frames of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

from lrtflite.bundle.bundle import Bundle, demo_bundle
from lrtflite.bundle.manifest import Manifest
from lrtflite.data.openloris.layout import FACTORS
from lrtflite_firmware_sim import SimulateOptions, simulate
from lrtflite_firmware_sim.plan import make_plan


@pytest.fixture(scope="module")
def manifest() -> Manifest:
    with demo_bundle() as path:
        return replace(Bundle.open(path).manifest, labels=(None,) * 50)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return OpenLORIS-object with two objects of one picture in each segment."""
    root = tmp_path_factory.mktemp("openloris")
    for side in ("train", "test"):
        for factor in FACTORS:
            for segment in range(1, 10):
                for thing, colour in (("cup_01", (200, 30, 30)), ("toy_01", (30, 30, 200))):
                    file = root / side / factor / f"segment{segment}" / thing / "1.jpg"
                    file.parent.mkdir(parents=True)
                    Image.new("RGB", (32, 32), colour).save(file)
    return root


def test_every_session_has_all_classes(manifest: Manifest) -> None:
    plan = make_plan(manifest, SimulateOptions(protocol="ni"))
    # The drawn world has eight training videos of each object, fewer than the paper's twelve.
    assert len(plan.batches) == 8
    assert {len(batch.classes) for batch in plan.batches} == {50}
    assert plan.stream["protocol"] == "ni"
    assert plan.stream["first_classes"] == 50
    assert not any("--first-classes" in note for note in plan.notes)
    fewer = make_plan(manifest, SimulateOptions(protocol="ni", visits=3, batch_frames=5))
    assert [len(batch) for batch in fewer.batches] == [250] * 3


@pytest.mark.parametrize("protocol", ["nic", "ni"])
def test_openloris_keeps_its_published_batches(
    manifest: Manifest, tree: Path, protocol: str
) -> None:
    options = SimulateOptions(dataset=f"openloris:{tree}", protocol=protocol)
    plan = make_plan(manifest, options)
    assert [len(batch) for batch in plan.batches] == [6] * 12
    assert plan.stream["protocol"] == "ni"
    assert not any("--first-classes" in note for note in plan.notes)


def test_openloris_is_learned(tree: Path) -> None:
    options = SimulateOptions(dataset=f"openloris:{tree}?stride=3", sessions=2)
    result = simulate(None, options)
    assert (result.protocol, result.sessions, result.sessions_in_stream) == ("ni", 2, 12)
    assert result.per_session[-1].classes_seen == 2
    assert result.per_session[-1].accuracy == 1.0
