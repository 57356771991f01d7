"""Feeding, rates, merging and latents in a manifest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lrtflite.bundle.bundle import Bundle
from lrtflite.bundle.manifest import REQUIRED, Manifest
from lrtflite.bundle.manifest_json import read_manifest
from lrtflite.errors import BundleError


@pytest.fixture
def fields(demo: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((demo / "manifest.json").read_text())
    return found


def read(fields: dict[str, Any], **changes: Any) -> Manifest:
    return read_manifest(json.dumps({**fields, **changes}), where="here")


def test_bytes_of_a_latent_follow_its_dtype(fields: dict[str, Any]) -> None:
    # The paper's 1500 latents at conv5_4/dw are 196.6 MB in float32.
    deep = read(fields, latent_shape=[8, 8, 512], replay_layer="conv5_4/dw", trains_trunk=True)
    assert 1500 * deep.latent_bytes == 196_608_000
    images = read(fields, latent_shape=[128, 128, 3], latent_dtype="uint8", replay_layer="images")
    assert images.latent_bytes == 49_152
    assert deep.trains_trunk
    assert not read(fields).trains_trunk


def test_moments_stay_unless_said(demo: Path, fields: dict[str, Any]) -> None:
    assert Bundle.open(demo).manifest.adapt_moments is False
    assert read(fields, adapt_moments=True).adapt_moments is True


def test_the_training_is_made_of_feeding_and_rates(fields: dict[str, Any]) -> None:
    rate = {"value": 0.25, "least": 0.125, "most": 0.5, "meaning": "as a test"}
    found = read(fields, rates={"pace": rate}, merging={"cw": "sum by class", "past": "refuse"})
    assert found.training.values == {
        "epochs": 4,
        "least_steps": 24,
        "most_steps": 1_000_000,
        "extra_steps": 0,
        "enough_loss": 0.0,
        "pace": 0.25,
    }
    assert found.training.rates["pace"].meaning == "as a test"
    assert found.merging == {"cw": "sum by class", "past": "refuse"}
    assert read_manifest(found.to_json(), where="here") == found


def test_format_5_is_refused_by_its_number(fields: dict[str, Any]) -> None:
    with pytest.raises(
        BundleError, match=r"^Expected a bundle of format 6 or 7, got format 5 in here; "
    ):
        read(fields, format=5)


def without(fields: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if key != name}


def test_invalid_fields(fields: dict[str, Any]) -> None:
    feeding, rates = fields["feeding"], fields["rates"]
    lr = rates["lr"]
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"latent_dtype": "float16"}, "latent_dtype is 'float16'"),
        ({"latent_dtype": 4}, "latent_dtype is 4"),
        ({"train_dtype": "float64"}, "train_dtype is 'float64'"),
        ({"adapt_moments": "no"}, "adapt_moments is 'no'"),
        ({"codec": None}, "codec is None"),
        ({"feeding": without(feeding, "epochs")}, "feeding lacks epochs"),
        ({"feeding": [1, 2]}, "feeding is "),
        ({"feeding": {**feeding, "epochs": 0}}, "epochs as a whole number from 1"),
        ({"feeding": {**feeding, "new_per_batch": 0}}, "new_per_batch .* got 0"),
        ({"feeding": {**feeding, "new_per_batch": 500}}, "new_per_batch .* to 120, got 500"),
        ({"feeding": {**feeding, "batch_size": "x"}}, "batch_size .* got 'x'"),
        ({"feeding": {**feeding, "gathers": "all"}}, "gathers as one of .*, got 'all'"),
        ({"feeding": {**feeding, "gathers": []}}, "gathers as one of"),
        ({"feeding": {**feeding, "repeats": 1}}, "repeats as true or false, got 1"),
        ({"rates": 3}, ""),
        ({"rates": {**rates, "lr": 0.1}}, "rate lr is 0.1"),
        ({"rates": {**rates, "lr": without(lr, "most")}}, "rate lr lacks most"),
        ({"rates": {**rates, "lr": {**lr, "value": -1}}}, "lr as a number of at least 0, got -1"),
        ({"rates": {**rates, "lr": {**lr, "value": "x"}}}, "lr as a number .* got 'x'"),
        ({"rates": {**rates, "lr": {**lr, "least": 2, "most": 1}}}, "rate lr is "),
        ({"rates": {**rates, "lr": {**lr, "least": "a"}}}, ""),
        ({"rates": {**rates, "lr": {**lr, "meaning": 5}}}, "rate lr is "),
        ({"merging": {"cw": "average"}}, "merging of cw is 'average'"),
        ({"merging": {"cw": ["sum"]}}, "merging of cw is "),
        ({"merging": "sum"}, ""),
        ({"requires": "feeding.enough"}, "requires is 'feeding.enough'"),
        ({"requires": {"a": 1}}, "requires is "),
        ({"requires": [None]}, "requires has None"),
        ({"requires": [["a"]]}, "requires has "),
        ({"requires": [""]}, "requires has ''"),
        ({"requires": ["a\x1b[2J"]}, "requires has "),
        ({"requires": ["a" * 101]}, "requires has 'aaa"),
        ({"requires": ["a"] * 65}, "requires is "),
        ({"name": 3}, "name is 3"),
        ({"version": ["1"]}, "version is "),
        ({"created": ""}, "created is ''"),
        ({"replaces": "a\nb"}, "replaces is "),
        ({"name": "a" * 201}, "name is 'aaa"),
        ({"unknown": 1.5}, "unknown as a number from 0 to 1, got 1.5"),
        ({"unknown": -0.1}, "unknown as a number from 0 to 1, got -0.1"),
        ({"unknown": True}, "unknown as a number from 0 to 1, got True"),
        ({"unknown": "0.1"}, "unknown as a number from 0 to 1, got '0.1'"),
    ]
    for changes, said in wrong:
        with pytest.raises(BundleError, match=f"^Damaged field in here: .*{said}") as caught:
            read(fields, **changes)
        assert "\n" not in str(caught.value)


def test_a_missing_base_field(fields: dict[str, Any]) -> None:
    for name in set(fields) - {"format", "quantisation"}:
        with pytest.raises(BundleError, match=f"the manifest lacks {name}; copy"):
            read(without(fields, name))


def test_unknown_fields_are_ignored_and_dropped_at_the_next_write(fields: dict[str, Any]) -> None:
    odd: dict[str, Any] = {"hue": [{"deep": None}]}
    changed = {
        "feeding": {**fields["feeding"], **odd},
        "rates": {name: {**rate, **odd} for name, rate in fields["rates"].items()},
        "files": {name: {**file, **odd} for name, file in fields["files"].items()},
        "requires": [],
        **odd,
    }
    found = read(fields, **changed)
    assert found == read(fields)
    assert "hue" not in found.to_json()


@pytest.mark.parametrize("known", [[], ["feeding.enough"]])
def test_an_unknown_requirement_is_refused_by_name(
    fields: dict[str, Any], known: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in known:
        monkeypatch.setitem(REQUIRED, name, lambda _: False)
    # Its other fields may mean something else in the version that made it.
    changes = {"requires": [*known, "feeding.mood"], "feeding": {"mood": 1}}
    with pytest.raises(
        BundleError, match=r"here, which requires 'feeding.mood'; install a newer version"
    ):
        read(fields, **changes)


def test_a_known_requirement_is_read_and_written(
    fields: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "requires" not in json.loads(read(fields).to_json())
    monkeypatch.setitem(REQUIRED, "version", lambda manifest: manifest.version == "2")
    found = read(fields, requires=["version"], version="2")
    assert json.loads(found.to_json())["requires"] == ["version"]
    assert "requires" not in json.loads(read(fields, version="1").to_json())


def test_texts_about_a_bundle_are_optional(fields: dict[str, Any]) -> None:
    about = {"name": "shop", "version": "2.1", "created": "2026-11-18", "replaces": "2.0"}
    found = read(fields, **about)
    assert {name: getattr(found, name) for name in about} == about
    assert read_manifest(found.to_json(), where="here") == found
    plain = read(fields, **dict.fromkeys(about, None))
    assert plain == read(fields)
    assert not set(about) & set(json.loads(plain.to_json()))


def test_the_threshold_of_unknown_things_is_optional(fields: dict[str, Any]) -> None:
    found = read(fields, unknown=0.05)
    assert found.unknown == 0.05
    assert read_manifest(found.to_json(), where="here") == found
    assert json.loads(found.to_json())["unknown"] == 0.05
    assert found.requires == []
    for plain in (read(fields), read(fields, unknown=None)):
        assert plain.unknown is None
        assert "unknown" not in json.loads(plain.to_json())


def test_layers_in_words(fields: dict[str, Any]) -> None:
    plain = read(fields)
    assert plain.layers == plain.replay_layer
    # Bundles of one layer and one view are as they were.
    assert not {"second_layer", "crop"}.intersection(json.loads(plain.to_json()))
    both = read(fields, replay_layer="pool6", second_layer="conv5_6/sep", crop=0.8)
    words = "pool6 and conv5_6/sep, pooled; mean of whole frames and their centres (0.8)"
    assert both.layers == words
    assert read_manifest(both.to_json(), where="here") == both
    assert not both.requires


@pytest.mark.parametrize(
    ("name", "value"),
    [("second_layer", 7), ("second_layer", "a\nb"), ("crop", 1.5), ("crop", "x"), ("crop", True)],
)
def test_a_damaged_view_is_refused(fields: dict[str, Any], name: str, value: object) -> None:
    with pytest.raises(BundleError, match=name):
        read(fields, **{name: value})
