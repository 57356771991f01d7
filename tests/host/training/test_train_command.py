"""`lrtflite train` on a folder of pictures, through its command line."""

from __future__ import annotations

import json
import shutil
import signal
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image

from coloured_source import COLOURS, ColouredSource
from lrtflite.errors import DataError, InputError, LrtfliteError, ModelError, SessionCancelled
from lrtflite.host.model_file import load_model
from lrtflite.host.training import BACKBONE, FIRST_BATCH, loop
from lrtflite.host.training.checkpoint import TrainState, save_checkpoint
from lrtflite.networks.demo import DEMO_NOTE
from lrtflite_cli.commands.train import command, left_out
from lrtflite_cli.group import run
from lrtflite_cli.terminal import interrupts

SMALL = ["--schedule", "backbone", "--input-size", "32", "--batch-size", "8", "--lr", "0.02"]


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make one folder per class, with nine pictures each."""
    root = tmp_path_factory.mktemp("pictures")
    for clip, name in zip(ColouredSource(frames=9).test_clips(), COLOURS):
        (root / name).mkdir()
        for number, frame in enumerate(clip.read()):
            Image.fromarray(frame).save(root / name / f"{number}.png")
    return root


@pytest.mark.usefixtures("shallow", "eager")
def test_ctrl_c_then_resume(
    tmp_path: Path, pictures: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, npz = tmp_path / "model.keras", tmp_path / "weights.npz"
    arguments = ["--dataset", f"folder:{pictures}", "--out", str(out), *SMALL]
    arguments += ["--epochs", "3", "--export-npz", str(npz)]

    def save_and_press_ctrl_c(state: TrainState, path: Path) -> None:
        save_checkpoint(state, path)
        if state.step == 0:
            signal.raise_signal(signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    with monkeypatch.context() as patch:
        patch.setattr(loop, "save_checkpoint", save_and_press_ctrl_c)
        first = CliRunner().invoke(command, arguments)
    assert isinstance(first.exception, SessionCancelled)
    assert "epoch 2 of 3 after step 1 of 3; run the same command with --resume" in str(
        first.exception
    )
    assert "epoch 1/3  loss " in first.stderr
    assert "Stopping after this step" in first.stderr
    assert first.stdout == ""
    assert not out.exists()
    assert signal.getsignal(signal.SIGINT) is before

    second = CliRunner().invoke(command, [*arguments, "--resume", "--json"])
    assert second.exit_code == 0, second.output
    record = json.loads(second.stdout)
    assert len(record["history"]) == 3
    assert record["labels"] == sorted(COLOURS)
    assert load_model(out).get_layer("fc7").labels == tuple(record["labels"])
    with np.load(npz) as file:
        assert file["conv1/kernel"].shape == (3, 3, 3, 8)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.keras", "weights.npz"]


@pytest.mark.usefixtures("shallow", "eager")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_training_has_the_exit_code_of_a_signal(
    tmp_path: Path,
    pictures: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    number: signal.Signals,
) -> None:
    def save_and_signal(state: TrainState, path: Path) -> None:
        save_checkpoint(state, path)
        if state.step == 0:
            signal.raise_signal(number)

    monkeypatch.setattr(loop, "save_checkpoint", save_and_signal)
    interrupts.forget()
    arguments = ["--dataset", f"folder:{pictures}", "--out", str(tmp_path / "m.keras"), *SMALL]
    before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        assert run(["train", *arguments, "--epochs", "3"]) == 130
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
        interrupts.forget()
    assert capfd.readouterr().err.splitlines()[-1] == (
        "Error: Training stopped in epoch 2 of 3 after step 1 of 3; "
        "run the same command with --resume to continue"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["m.keras.checkpoint.npz"]


@pytest.mark.usefixtures("shallow", "eager")
def test_result_says_what_comes_next(tmp_path: Path, pictures: Path) -> None:
    out = tmp_path / "model.keras"
    arguments = ["--dataset", f"folder:{pictures}", "--out", str(out), *SMALL, "--epochs", "1"]
    result = CliRunner().invoke(command, [*arguments, "--patience", "3"])
    assert "4 classes, 20 frames, epoch 1 of 1" in result.stdout  # 6 of 9 train, 1 validates
    assert "held-out accuracy " in result.stdout
    assert f"next: lrtflite convert --model {out}" in result.stdout
    assert "validation " in result.stderr


@pytest.mark.usefixtures("shallow", "eager")
def test_unreadable_files_are_left_out_on_request(tmp_path: Path, pictures: Path) -> None:
    things = Path(shutil.copytree(pictures, tmp_path / "things"))
    damaged = things / sorted(COLOURS)[0] / "3.png"
    damaged.write_bytes(b"")
    out = tmp_path / "model.keras"
    arguments = ["--dataset", f"folder:{things}", "--out", str(out), *SMALL, "--epochs", "1"]
    refused = CliRunner().invoke(command, arguments)
    assert isinstance(refused.exception, DataError)
    assert "got 1 of 36 that cannot be read" in str(refused.exception)
    done = CliRunner().invoke(command, [*arguments, "--skip-unreadable", "--json"])
    assert done.exit_code == 0, done.output
    name = f"{damaged.parent.name}/3.png (empty)"
    assert f"1 unreadable file was left out: {name}." in done.stderr
    assert json.loads(done.stdout)["skipped_files"] == [name]


def test_a_note_says_what_the_first_batch_leaves_out() -> None:
    assert left_out(BACKBONE, 50) is None
    assert left_out(replace(FIRST_BATCH, first_classes=None), 10) is None
    for classes in (3, 12):
        said = left_out(FIRST_BATCH, classes)
        assert said is not None
        assert f"{min(10, classes)} of {classes} classes, visit 1 of 2 each" in said
        assert "--all-classes trains all" in said


@pytest.mark.usefixtures("eager")
def test_photographs_on_demo_weights(tmp_path: Path, pictures: Path) -> None:
    """Train a whole folder with early stopping; a note names the unsuitable weights."""
    out = tmp_path / "model.keras"
    arguments = ["--dataset", f"folder:{pictures}", "--out", str(out), "--input-size", "32"]
    arguments += ["--epochs", "1", "--lr", "0"]
    done = CliRunner().invoke(command, [*arguments, "--json"])
    assert done.exit_code == 0, done.output
    assert done.stderr.count(DEMO_NOTE) == 1
    record = json.loads(done.stdout)
    assert (record["labels"], record["counts"]) == (sorted(COLOURS), [5, 5, 5, 5])
    assert record["freeze_below"] == "conv6/dw"
    assert record["warnings"][0] == DEMO_NOTE
    low = f"Held-out accuracy ({record['held_out_accuracy']:.1%}) is low"
    assert record["warnings"][1].startswith(low)
    assert f"Warning: {low}" in done.stderr
    assert record["next"].startswith("run this again with --weights imagenet --replace; ")

    stream = [*arguments, "--first-classes", "2", "--weights", "none", "--alpha", "0.25"]
    refused = CliRunner().invoke(command, stream)
    assert isinstance(refused.exception, ModelError)
    assert f"got {out}, which exists" in str(refused.exception)
    done = CliRunner().invoke(command, [*stream, "--replace"])
    assert done.exit_code == 0, done.output
    assert DEMO_NOTE not in done.stderr
    assert "2 of 4 classes, visit 1 of 2 each; --all-classes" in done.stderr
    assert f"{out}: 2 of 4 classes, 6 frames" in done.stdout
    assert "; trained above images\n" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("next: ")


def test_bad_input_is_refused(tmp_path: Path, pictures: Path) -> None:
    def run(*arguments: str) -> BaseException | None:
        out = ["--out", str(tmp_path / "model.keras"), *SMALL]
        return CliRunner().invoke(command, [*out, *arguments]).exception

    dataset = ["--dataset", f"folder:{pictures}"]
    assert isinstance(run("--dataset", f"folder:{tmp_path / 'absent'}"), DataError)
    for bad in (
        ["--dataset", "mnist"],
        [*dataset, "--weights", "absent.npz"],
        [*dataset, "--out", "model.bin"],
        [*dataset, "--export-npz", "weights.bin"],
        [*dataset, "--resume"],
        [*dataset, "--all-classes", "--visits", "2"],
        [*dataset, "--visits", "2"],  # a backbone trains all classes
        [*dataset, "--freeze-below", "conv5_4"],
        [*dataset, "--freeze-below", "pool6"],  # a backbone starts from random weights
        [*dataset, "--weights", "demo", "--freeze-below", "pool6", "--lower-lr", "0.1"],
    ):
        error = run(*bad)
        assert isinstance(error, LrtfliteError), bad
        assert "\n" not in str(error)
    assert list(tmp_path.iterdir()) == []


def test_a_backbone_has_no_first_classes(pictures: Path) -> None:
    dataset = ["--dataset", f"folder:{pictures}"]
    refused = CliRunner().invoke(command, [*SMALL, *dataset, "--first-classes", "2"])
    assert isinstance(refused.exception, InputError)
    assert str(refused.exception) == (
        "Expected no --first-classes or --visits with --schedule backbone, which trains all "
        "classes, got --first-classes 2; leave that out, or name the classes in --dataset "
        "(?classes=a,b)"
    )


@pytest.mark.parametrize(
    "bad",
    [["--epochs", "0"], ["--batch-size", "1"], ["--schedule", "other"], ["--lr", "-1"], ["--what"]],
)
def test_usage_errors_exit_with_2(bad: list[str]) -> None:
    assert CliRunner().invoke(command, bad).exit_code == 2


def test_help_names_the_schedules() -> None:
    result = CliRunner().invoke(command, ["--help"])
    assert result.exit_code == 0
    assert "first-batch|backbone" in result.output
    assert "--resume" in result.output


def test_help_has_the_defaults_of_both_schedules() -> None:
    texts = {option.name: str(getattr(option, "show_default", "")) for option in command.params}
    for name in ("epochs", "batch_size", "lr"):
        first, backbone = getattr(FIRST_BATCH, name), getattr(BACKBONE, name)
        assert texts[name] == f"{first}; {backbone} for a backbone"
    assert texts["weight_decay"] == "0.0005; 0.0001 for a backbone"
    assert (FIRST_BATCH.weight_decay, BACKBONE.weight_decay) == (0.0005, 0.0001)
    first = f"{FIRST_BATCH.weights}, or imagenet for another network"
    assert texts["weights"] == f"{first}; {BACKBONE.weights} for a backbone"
    assert texts["frames_per_video"] == f"all; {BACKBONE.frames_per_video} for a backbone"
    assert texts["first_classes"] == f"all of a folder, else {FIRST_BATCH.first_classes}"
    assert texts["visits"] == f"all of a folder, else {FIRST_BATCH.visits}"
    assert texts["lower_lr"] == f"{FIRST_BATCH.lower_lr}; --lr for a backbone"
    assert texts["patience"] == f"{FIRST_BATCH.patience}; 0 for a backbone"
    assert (BACKBONE.lower_lr, BACKBONE.patience) == (None, None)
    layers = f"{FIRST_BATCH.freeze_below} of mobilenet_v1; block_16 of mobilenet_v2"
    layers += "; block_15 of efficientnet_lite0"
    nothing = f"{BACKBONE.freeze_below} for a backbone or --weights none"
    assert texts["freeze_below"] == f"{layers}; {nothing}"
