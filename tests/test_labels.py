"""Labels: what a new class may be called, and what bundles and states may have."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image

from learning import TRAINING, latents_of
from lrtflite import Learner
from lrtflite.bundle.bundle import MANIFEST_FILE, Bundle
from lrtflite.data import open_source
from lrtflite.errors import BundleError, DataError, InputError
from lrtflite.labels import appearance, label_warnings, new_label, new_labels
from lrtflite.state.folder import read_state
from lrtflite.state.reading import State, write_state
from lrtflite.state.slots import Slots
from lrtflite.workbench.teaching import check_room
from lrtflite_cli.group import cli
from lrtflite_converters.request.options import Conversion
from lrtflite_converters.request.source import read_labels


def write_pictures(folder: Path) -> None:
    folder.mkdir()
    for number in range(3):
        Image.new("RGB", (8, 8), (number, 0, 0)).save(folder / f"{number}.png")


FILLER, ZERO_WIDTH, OVERRIDE, NO_BREAK = "\u3164", "\u200b", "\u202e", "\u00a0"
EMOJI = "\u2615\ufe0f"
# Labels that nobody may give to a new class, next to a class `red mug`.
REFUSED = [
    FILLER,
    "\u2800",
    f"{FILLER} {FILLER}",
    f"mug{ZERO_WIDTH}",
    f"mug{OVERRIDE}",
    "mug\x1b[31m",
]
REFUSED += ["unknown", " unknown ", f"unknown{FILLER}", "red  mug", " red mug", f"red mug{FILLER}"]


@pytest.mark.parametrize("label", REFUSED)
def test_such_a_label_is_refused_when_it_is_given(label: str) -> None:
    slots = Slots(("red mug", "cup", None))
    for give in (
        lambda: slots.place(label),
        lambda: slots.place_all([label, label]),
        lambda: slots.rename("cup", label),
        lambda: new_label(label, slots.labels),
        lambda: Conversion(labels=("red mug", label)),
    ):
        with pytest.raises(InputError, match=r"Expected a label .*, got .*; ") as caught:
            give()
        assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    "label", [EMOJI, "Unknown mug", "Red mug", "redmug", "r\u00e9d mug", "3", 3]
)
def test_labels_that_can_be_seen_and_told_apart_are_taken(label: str | int) -> None:
    number, slots = Slots(("red mug", "cup", None)).place(label)
    assert (number, slots.labels[2]) == (2, str(label))


def test_labels_for_convert_may_have_spaces_around_them() -> None:
    assert read_labels("red mug, hat ,3") == ("red mug", "hat", "3")
    for text in ("red mug,red  mug", "cup,unknown", f"cup,{FILLER}", f"cup,mug{ZERO_WIDTH}"):
        with pytest.raises(InputError, match="Expected a label"):
            read_labels(text)


def test_a_label_may_be_respaced() -> None:
    slots = Slots((" red  mug", "unknown", FILLER, "cup"))
    assert slots.rename(" red  mug", "red mug").labels[0] == "red mug"
    assert slots.rename("unknown", "hat").labels[1] == "hat"
    assert slots.rename(new="hat", slot=2).labels[2] == "hat"
    assert slots.place(FILLER) == (2, slots)  # more of a class that is there


def test_appearance() -> None:
    assert appearance(f"  a{NO_BREAK} b{ZERO_WIDTH}\t") == "a b"
    assert appearance("n\u0303") == "\u00f1"
    assert appearance(EMOJI) == "\u2615"
    assert not appearance(FILLER + OVERRIDE + " ")


def test_several_new_labels_are_compared_with_each_other() -> None:
    assert new_labels(["a", "b", 3]) == ("a", "b", "3")
    with pytest.raises(InputError, match="looks unlike 'a b', got 'a  b', which differs in white"):
        new_labels(["a b", "c", "a  b"])


def test_folders_of_a_data_set(tmp_path: Path) -> None:
    write_pictures(tmp_path / "mug")
    for name, problem in (("unknown", "label other than"), ("mug ", "unlike 'mug', got 'mug '"),
                          (FILLER, "label that is visible, got '.u3164'")):  # fmt: skip
        write_pictures(tmp_path / name)
        with pytest.raises(DataError, match=f"{problem}.*, the name of a folder in .*; rename"):
            open_source(f"folder:{tmp_path}")
        shutil.rmtree(tmp_path / name)


def test_classes_of_a_data_set_next_to_those_of_a_bundle(tmp_path: Path) -> None:
    write_pictures(tmp_path / "red mug")
    source = open_source(f"folder:{tmp_path}")
    check_room(source, ("red mug",))
    check_room(source, ("cup", None))
    with pytest.raises(InputError, match="unlike ' red mug', got 'red mug'"):
        check_room(source, (" red mug", None))


ODD = ["mug", "mug ", FILLER, f"cup{ZERO_WIDTH}{OVERRIDE}", "unknown"]
WARNINGS = [
    "class slot 1 has the label 'mug ', which looks like 'mug' of class slot 0; rename one",
    "class slot 2 has the label '\\u3164', which is invisible; rename it by its slot",
    "class slot 4 has the label 'unknown', which is also the answer for frames unlike everything "
    "taught; rename it",
]


def test_a_state_with_such_labels_opens_with_warnings(
    open_learner: Callable[..., Learner], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "state"
    learner = open_learner(folder)
    for kind in range(len(ODD)):
        learner.learn_latents(latents_of(kind, 20), f"class {kind}", training=TRAINING)
    latents = np.concatenate([latents_of(kind, 5) for kind in range(len(ODD))])
    expected = learner.probabilities(latents)
    learner.close()
    state = read_state(folder)
    meta = replace(state.meta, labels=(*ODD, *state.meta.labels[len(ODD) :]))
    [newest] = [path for path in folder.glob("state-*") if path.name.endswith("5.safetensors")]
    write_state(newest, State(state.arrays, state.memory, meta))
    with caplog.at_level(logging.WARNING, "lrtflite"):
        learner = open_learner(folder)
    assert [record.getMessage() for record in caplog.records] == WARNINGS
    assert learner.labels[: len(ODD)] == tuple(ODD)
    np.testing.assert_array_equal(learner.probabilities(latents), expected)
    learner.learn_latents(latents_of(4, 20), "unknown", training=TRAINING)
    learner.rename("unknown", "hat")
    learner.forget(FILLER)
    learner.close()
    said = CliRunner().invoke(cli, ["state", str(folder)]).output
    assert WARNINGS[0] in said
    assert "hat" in said
    assert "cup\\u200b\\u202e" in said
    assert not set(said) & {ZERO_WIDTH, OVERRIDE}
    assert (
        json.loads(CliRunner().invoke(cli, ["state", str(folder), "--json"]).output)["warnings"]
        == WARNINGS[:1]
    )


def test_a_bundle_with_such_labels_opens_and_inspect_says_so(demo: Path, tmp_path: Path) -> None:
    shutil.copytree(demo, tmp_path / "bundle")
    path = tmp_path / "bundle" / MANIFEST_FILE
    manifest = json.loads(path.read_text())
    manifest["labels"][: len(ODD)] = ODD
    path.write_text(json.dumps(manifest))
    opened = Bundle.open(path.parent)
    assert opened.manifest.labels[: len(ODD)] == tuple(ODD)
    assert list(label_warnings(opened.manifest.labels)) == WARNINGS
    said = CliRunner().invoke(cli, ["inspect", str(path.parent)])
    assert said.exit_code == 0
    assert all(warning in said.output for warning in WARNINGS)
    assert not set(said.output) & {ZERO_WIDTH, OVERRIDE}


@pytest.mark.parametrize("label", ["", "mug\n", "mug\x1b[31m", "\u2028", "\ud800", "\x9b31m"])
def test_a_bundle_with_control_characters_in_a_label_is_refused(
    label: str, demo: Path, tmp_path: Path
) -> None:
    shutil.copytree(demo, tmp_path / "bundle")
    path = tmp_path / "bundle" / MANIFEST_FILE
    manifest = json.loads(path.read_text())
    manifest["labels"][0] = label
    path.write_text(json.dumps(manifest))
    with pytest.raises(BundleError, match="Damaged field") as caught:
        Bundle.open(path.parent)
    assert str(caught.value).isprintable()
