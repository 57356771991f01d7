"""The golden session: the order of its calls, and mistakes of a client that it reveals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fake_bundle import BATCH, FEEDING, NEW, SHAPE, SLOTS, TRAINING, FakeModel, make_bundle
from lrtflite.bundle import feeding
from lrtflite.contract.golden import run_golden, sample
from lrtflite.contract.signatures import ZERO
from lrtflite.verification.verify import check_golden

# One class first, then both; two steps a session.
SESSION = ["train", "train", "consolidate"]
ANSWERS = ("probabilities after training", "probabilities after forgetting")
LAST = ["infer", "save", "forget", "infer", "restore", "infer"]


def given(frames: int = 3) -> dict[str, np.ndarray]:
    rows = np.arange(2 * 2 * BATCH).reshape(2, 2, BATCH) % frames
    rows[0] = 0
    gathered = np.full((2, 1, BATCH), -1)
    gathered[0, 0, :1], gathered[1, 0, :frames] = 0, np.arange(frames)
    names = ("lr", "momentum", "weight_decay", "trunk_lr", "moment_rate", "head_start")
    scalars = {f"scalars/{name}": np.array([0.5, 0.25], np.float32) for name in names}
    return {
        "frames": np.arange(1, frames + 1, dtype=np.uint8).repeat(48).reshape(frames, *SHAPE),
        "classes": np.array([1, 3, 3], np.int32),
        "rows": rows.astype(np.int32),
        "gathered": gathered.astype(np.int32),
        "counts": np.array([[0, 1, 0, 0, 0], [0, 1, 0, 2, 0]], np.float32),
        "forgotten": np.eye(SLOTS, dtype=np.float32)[1],
        "group": np.arange(NEW, dtype=np.int32) % frames,
        "scalars/adapt_rate": np.array([0.0, 0.5], np.float32),
        "scalars/epochs": np.array([1, 1], np.float32),
        **scalars,
    }


def models(folder: Path, **changes: Any) -> tuple[FakeModel, FakeModel]:
    make_bundle(folder, **changes)
    return FakeModel(folder / "features.tflite"), FakeModel(folder / "head.tflite")


def names(model: FakeModel) -> list[str]:
    return [name for name, _ in model.calls]


def test_signatures_are_called_in_the_documented_order(tmp_path: Path) -> None:
    features, head = models(tmp_path / "bundle")
    found = run_golden(features, head, given())
    assert names(features) == [*["extract"] * 3, "save", "adapt", "save"]
    assert names(head) == [
        *["infer", "save"],
        *["begin", "train_last", "train_last", "consolidate"],
        *["begin", *SESSION],
        *LAST,
    ]
    assert found["trains"].tolist() == [[0], [1]]
    assert found["losses"].tolist() == [[1, 1], [1, 1]]
    assert found["learned"].tolist() == [[0, 1, 0, 0, 0], [0, 1, 0, 1, 0]]
    assert found["learned_forgotten"].tolist() == [0, 0, 0, 1, 0]
    # What was saved before the first session knew nothing.
    assert found["learned_restored"].tolist() == [0, 0, 0, 0, 0]
    np.testing.assert_array_equal(found["probabilities_restored"], found["probabilities_before"])
    # Two steps of the second session's rate.
    assert found["change/scale"].tolist() == [0.5]
    assert found["change/past"].tolist() == [0, 2, 0, 2, 0]
    # Half the way from 0 to the mean of 1, 2, 3.
    assert found["moved/mean"].tolist() == [1.0]


@pytest.mark.parametrize(
    ("strategy", "steps"), [("gathering", []), ("steps and gathering", ["train", "train"])]
)
def test_a_head_that_gathers(tmp_path: Path, strategy: str, steps: list[str]) -> None:
    training = replace(TRAINING, feeding=replace(FEEDING, gathers=feeding.SESSION))
    options = {"strategy": strategy, "adapt_moments": False, "training": training}
    features, head = models(tmp_path / "bundle", **options)
    found = run_golden(features, head, given())
    assert names(features) == ["extract"] * 3
    second = ["begin", *steps, "gather", "consolidate"]
    first = [name.replace("train", "train_last") for name in second]
    assert names(head) == ["infer", "save", *first, *second, *LAST]
    assert found["losses"].shape == (2, len(steps))
    once = head.inputs_of("gather")
    assert once[0]["targets"].sum(axis=0).tolist() == [0, 1, 0, 0, 0]
    assert once[1]["targets"].sum(axis=0).tolist() == [0, 1, 0, 2, 0]
    assert once[1]["latents"][:, 0, 0, 0].tolist() == [1, 2, 3, 0, 0, 0]


class Wrong(FakeModel):
    """A client that feeds a wrong number."""

    scalar = ""

    def run(self, signature: str, **inputs: Any) -> dict[str, Any]:
        if self.scalar in inputs:
            inputs[self.scalar] = inputs[self.scalar] * np.float32(2)
        return super().run(signature, **inputs)


def failed(golden: Mapping[str, np.ndarray], features: FakeModel, head: FakeModel) -> set[str]:
    checks = check_golden(dict(golden), features, head)
    return {check.name for check in checks if not check.passed}


@pytest.mark.parametrize(
    ("scalar", "failing"),
    [
        ("", set()),
        ("trunk_lr", {"state after training", *ANSWERS}),
        ("moment_rate", {"state after training"}),
        ("lr", {"state after training", *ANSWERS}),
        ("adapt_rate", {"moments after adapting"}),
        ("epochs", {"moments after adapting"}),
    ],
)
def test_a_client_that_feeds_a_wrong_scalar_fails(
    tmp_path: Path, scalar: str, failing: set[str]
) -> None:
    folder = tmp_path / "bundle"
    golden = given()
    golden.update(run_golden(*models(folder), golden))
    features, head = (Wrong(folder / f"{part}.tflite") for part in ("features", "head"))
    features.scalar = head.scalar = scalar
    assert failed(golden, features, head) == failing


def test_saving_needs_its_zero(tmp_path: Path) -> None:
    _, head = models(tmp_path / "bundle")
    with pytest.raises(AssertionError, match="save takes"):
        head.run("save")
    assert set(head.run("save", zero=ZERO)) == {"cw", "past", "scale", "moment"}


@pytest.mark.parametrize("size", [1, 2, 999, 1000, 1001, 1024, 4096, 50 * 1024])
def test_a_sample_is_where_the_page_says(size: int) -> None:
    """As in docs/bundle.md: places floor(i (size - 1) / 999) of more than 1,000 values."""
    found = sample(np.arange(size, dtype=np.int64).reshape(1, size)).tolist()
    expected = [i * (size - 1) // 999 for i in range(1000)] if size > 1000 else list(range(size))
    assert found == expected
