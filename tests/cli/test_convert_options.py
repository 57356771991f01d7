"""Options of `lrtflite convert` reach the converter."""

from __future__ import annotations

import re
import shutil
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from click.testing import CliRunner

from lrtflite.bundle.bundle import Bundle, write_manifest
from lrtflite.bundle.destination import Destination
from lrtflite.errors import LrtfliteError
from lrtflite.networks.demo import DEMO_NOTE
from lrtflite_cli.commands.convert import command
from lrtflite_converters.conversion.convert import Converted
from lrtflite_converters.request.source import Source


@pytest.fixture
def converted(monkeypatch: pytest.MonkeyPatch, demo: Path, tmp_path: Path) -> list[dict[str, Any]]:
    """Record every call of `make`, which needs TensorFlow and is not tested here."""
    calls: list[dict[str, Any]] = []

    def make(
        out: Destination, source: Source, options: Any, *, calibration: object, **__: object
    ) -> Converted:
        shutil.copytree(demo, out.path)
        calls.append({**vars(source), **vars(options), "calibration": calibration})
        return Converted(out.path)

    module = ModuleType("lrtflite_converters.conversion.making")
    vars(module)["make"] = make
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.chdir(tmp_path)
    return calls


def test_what_is_not_given_is_left_to_the_replay_layer(converted: list[dict[str, Any]]) -> None:
    done = CliRunner().invoke(command, [])
    assert done.exit_code == 0, done.output
    [options] = converted
    for name in (
        "replay_layer",
        "strategy",
        "batch_size",
        "new_per_batch",
        "replay_size",
        "policy",
        "codec",
    ):
        assert options[name] is None
    assert options["rates"] == {}
    assert (options["train_depthwise"], options["adapt_moments"]) == (True, False)


def test_what_is_given_arrives(converted: list[dict[str, Any]]) -> None:
    words = "--batch-size 64 --new-per-batch 8 --epochs 3 --lr 0.5 --rate trunk_lr=0 "
    words += "--replay-layer conv5_4/dw --freeze-depthwise --adapt-moments "
    words += "--replay-size 9 --policy balanced --strategy ar1free --codec raw "
    words += "--network mobilenet_v1 --rate moment_rate=0.125"
    done = CliRunner().invoke(command, words.split())
    assert done.exit_code == 0, done.output
    [options] = converted
    assert (options["batch_size"], options["new_per_batch"]) == (64, 8)
    assert options["rates"] == {"epochs": 3, "lr": 0.5, "trunk_lr": 0, "moment_rate": 0.125}
    assert (options["network"], options["replay_layer"]) == ("mobilenet_v1", "conv5_4/dw")
    assert (options["strategy"], options["codec"]) == ("ar1free", "raw")
    assert (options["replay_size"], options["policy"]) == (9, "balanced")
    assert (options["train_depthwise"], options["adapt_moments"]) == (False, True)


@pytest.mark.parametrize(
    ("words", "cost"),
    [
        ("--replay-size 0", "--replay-size 0 keeps no latents to replay, so .* forgets old"),
        ("--batch-size 1", "--batch-size 1 leaves no room for a replayed latent .* forgets old"),
        ("--replay-size 1 --batch-size 2", None),
    ],
)
def test_what_lets_a_learner_forget_is_said(
    converted: list[dict[str, Any]], words: str, cost: str | None
) -> None:
    done = CliRunner().invoke(command, words.split())
    assert done.exit_code == 0, done.output
    assert len(converted) == 1
    warnings = [line for line in done.stderr.splitlines() if line.startswith("Warning: ")]
    assert len(warnings) == (cost is not None)
    assert cost is None or re.search(cost, warnings[0])


def test_a_bundle_that_replays_nothing_needs_no_memory(
    monkeypatch: pytest.MonkeyPatch, converted: list[dict[str, Any]]
) -> None:
    module = sys.modules["lrtflite_converters.conversion.making"]
    make = vars(module)["make"]

    def make_sums(*args: Any, **named: Any) -> Converted:
        made: Converted = make(*args, **named)
        manifest = made.path / "manifest.json"
        text = manifest.read_text()
        manifest.write_text(text.replace('"replays": true', '"replays": false'))
        return made

    monkeypatch.setattr(module, "make", make_sums)
    done = CliRunner().invoke(command, ["--replay-size", "0"])
    assert done.exit_code == 0, done.output
    assert len(converted) == 1
    assert "Warning" not in done.stderr


@pytest.mark.usefixtures("converted")
@pytest.mark.parametrize(
    ("words", "notes"),
    [("", 1), ("--weights demo", 1), ("--weights imagenet", 0), ("--model m.keras", 0)],
)
def test_what_the_demo_weights_know_is_said_once(words: str, notes: int) -> None:
    with zipfile.ZipFile("m.keras", "w") as archive:  # of `lrtflite train`, by its last layer
        archive.writestr("config.json", '{"registered_name": "lrtflite>ClassSlots"}')
    done = CliRunner().invoke(command, words.split())
    assert done.exit_code == 0, done.output
    assert done.stderr.splitlines().count(DEMO_NOTE) == notes
    assert DEMO_NOTE not in done.stdout


@pytest.mark.parametrize("words", ["--batch-size 0", "--lr -1", "--epochs 0", "--lr x", "--rate"])
def test_wrong_usage(converted: list[dict[str, Any]], words: str) -> None:
    done = CliRunner().invoke(command, words.split())
    assert done.exit_code == 2
    assert words.split()[0] in done.output
    assert converted == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--replay-layer conv5_6dw", "got 'conv5_6dw'; did you mean 'conv5_6/dw'?"),
        ("--replay-layer conv_pw_6_relu", "got 'conv_pw_6_relu'; choose 'conv4_2/sep'"),
        ("--replay-layer conv_pw_6_bn", "inside one; choose 'conv4_2/sep'"),
        ("--lr nan", "Expected lr as a number of at least 0, got nan"),
        ("--activation swish", "Expected an activation of relu6, relu, got 'swish'; choose one"),
        ("--activation relu8", "got 'relu8'; did you mean 'relu'?"),
        ("--model a.keras --activation relu", "got relu; leave --activation out"),
        ("--features a.tflite --activation relu", "--alpha or --activation too; leave them out"),
        ("--alpha nan", "Expected an alpha from 0.03125 to 4, got nan"),
        ("--alpha 99999", "Expected an alpha from 0.03125 to 4, got 99999"),
        ("--input-size 99999", "Expected an input size from 32 to 1024, got 99999"),
        ("--input-size 0", "Expected an input size from 32 to 1024, got 0"),
        ("--labels a,,b", "Expected labels as a,b,c"),
        ("--labels lables.txt", "got lables.txt, which is not a file"),
        ("--model none.keras", "Expected a saved model, got none.keras, which is not a file"),
        ("--model demo", "Expected a saved model, got demo, which is not a file"),
        ("--weights mobilenet.npz", "demo, imagenet, none or a file, got mobilenet.npz"),
        ("--model a.keras --alpha 1", "leave --weights and --alpha out"),
        ("--replay-layer conv5_4/dw --batch-size 1", "a mini-batch of at least 2"),
        ("--rate trunk_lr=0.1", "got 'trunk_lr'"),
        ("--replay-layer conv5_4/dw --rate trunk_lr=-1", "trunk_lr as a number of at least 0"),
        ("--strategy ar1free", "the strategy 'ar1free' below conv6/sep, got the replay layer"),
        ("--strategy cwr --replay-layer conv5_4/dw", "the strategy 'cwr' at"),
        ("--labels a,b,c --classes 2", "at least 3 classes for the labels, got 2"),
        ("--out .", "Expected a new or empty folder"),
        (
            "--quantize int9 --calibrate synthetic",
            "Expected a quantisation of int8, qat, got 'int9'; did you mean 'int8'?",
        ),
        ("--quantize int8", "Expected --calibrate DATASET with --quantize int8, got none"),
        ("--quantize qat", "Expected --calibrate DATASET with --quantize qat, got none"),
        ("--calibrate synthetic", "--calibrate alone; add --quantize int8, or leave it out"),
        ("--calibration-frames 9", "--calibration-frames alone; add --quantize int8"),
        ("--skip-unreadable", "--skip-unreadable alone; add --quantize int8"),
        ("--qat-epochs 9", "--qat-epochs alone; add --quantize qat, or leave it out"),
        (
            "--quantize int8 --calibrate synthetic --qat-epochs 9",
            "Expected --qat-epochs with --quantize qat, got 'int8'; leave --qat-epochs out",
        ),
        (
            "--quantize int8 --calibrate synthetic --calibration-frames 99999",
            "calibration_frames as a whole number from 1 to 10,000, got 99999",
        ),
        (
            "--quantize int8 --calibrate synthetic --adapt-moments",
            "Expected --quantize int8 without --adapt-moments, got both; leave one out",
        ),
        (
            "--quantize int8 --calibrate synthetic --replay-layer images",
            "whose latents are the frames; choose conv1 or a higher layer",
        ),
        ("--quantize int8 --calibrate sinthetic", "did you mean 'synthetic'?"),
        ("--quantize int8 --calibrate folder:none", "folder"),
        ("--quantize int8 --calibrate folder:grey", "got 8 frames of one colour each; give"),
    ],
)
def test_bad_input_needs_no_tensorflow(
    words: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.txt").touch()
    if "grey" in words:
        one_colour(tmp_path / "grey")
    # Importing it fails.
    monkeypatch.setitem(sys.modules, "lrtflite_converters.conversion.making", None)
    with pytest.raises(LrtfliteError, match=re.escape(message)):
        CliRunner().invoke(command, words.split(), catch_exceptions=False)
    assert "tensorflow" not in sys.modules
    assert {path.name for path in tmp_path.iterdir()} - {"grey"} == {"notes.txt"}


def one_colour(folder: Path) -> None:
    """Write six pictures of each of two classes, of which a third is held out."""
    from PIL import Image

    for name in ("mug", "hat"):
        (folder / name).mkdir(parents=True)
        for number in range(6):
            Image.new("RGB", (40, 40), (9, 9, 9)).save(folder / name / f"{number}.png")


def test_calibration_frames_are_read_before_the_conversion(
    converted: list[dict[str, Any]], tmp_path: Path
) -> None:
    words = "--quantize qat --calibrate synthetic?classes=3 --calibration-frames 6 --qat-epochs 2"
    done = CliRunner().invoke(command, [*words.split(), "--input-size", "32"])
    assert done.exit_code == 0, done.output
    [options] = converted
    found = options["quantise"]
    assert (found.mode, found.calibrate) == ("qat", "synthetic?classes=3")
    assert (found.frame_count, found.epoch_count) == (6, 2)
    calibration = options["calibration"]
    assert calibration.frames.shape == (6, 32, 32, 3)
    assert sorted(calibration.labels.tolist()) == [0, 0, 1, 1, 2, 2]


@pytest.mark.parametrize(
    ("trunk", "gathers", "slots", "advised"),
    [
        (True, "nothing", 50, True),
        (True, "session and memory", 50, False),  # a closed form is refitted
        (False, "session", 50, False),
        (True, "nothing", 5, False),  # a bundle for a few classes has no other choice
    ],
)
def test_a_trunk_that_bends_is_advised_against(
    trunk: bool,
    gathers: str,
    slots: int,
    advised: bool,
    demo: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    manifest = Bundle.open(demo).manifest
    bent = replace(
        manifest,
        trains_trunk=trunk,
        strategy="ar1free",
        replay_layer="conv5_4/dw",
        labels=(None,) * slots,
        feeding=replace(manifest.feeding, gathers=gathers),
    )
    module = ModuleType("lrtflite_converters.conversion.making")

    def make(out: Destination, *_: object, **__: object) -> Converted:
        shutil.copytree(demo, out.path)
        write_manifest(out.path, bent)
        return Converted(out.path)

    vars(module)["make"] = make
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(command, ["--replay-layer", "conv5_4/dw"])
    assert done.exit_code == 0, done.output
    said = [line for line in done.stderr.splitlines() if line.startswith("Advice: ")]
    assert len(said) == advised
    if advised:
        assert "ar1free at conv5_4/dw loses accuracy if things are taught one by one" in said[0]
        assert "convert with --strategy lda" in said[0]


def test_two_layers_and_crops_reach_the_converter(converted: list[dict[str, Any]]) -> None:
    done = CliRunner().invoke(command, ["--and", "conv5_6/sep", "--crops"])
    assert done.exit_code == 0, done.output
    [options] = converted
    assert (options["and_layer"], options["crops"]) == ("conv5_6/sep", True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--and", "conv5_66/sep"], "did you mean 'conv5_6/sep'"),
        (["--and", "pool6"], "between images and pool6 with --and, got 'pool6'"),
        (["--and", "conv5_6/sep", "--strategy", "cwr"], "the strategy lda with --and, got 'cwr'"),
        (["--crops", "--replay-layer", "conv5_4/dw"], "--crops, got 'conv5_4/dw'"),
    ],
)
def test_layers_that_cannot_be_used_are_one_line_and_leave_nothing(
    words: list[str], said: str, run_cli: Any, tmp_path: Path
) -> None:
    done = run_cli("convert", *words, "--out", str(tmp_path / "out"))
    assert done.returncode == 1
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "out").exists()
