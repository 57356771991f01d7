"""`lrtflite teach`."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from PIL import Image

from coloured_pictures import draw_pictures
from lrtflite import Learner
from lrtflite.bundle.bundle import Bundle
from lrtflite.data import open_source
from lrtflite_cli.terminal.teaching import taught_as_text

Run = Callable[..., Any]


@pytest.fixture
def things(tmp_path: Path) -> Path:
    """Draw three classes of 12 pictures: 8 to learn from, 4 held out."""
    return draw_pictures(tmp_path / "things", classes=3, images=12)


def test_what_it_writes_knows_the_data_set(
    run_cli: Run, demo: Path, things: Path, tmp_path: Path
) -> None:
    done = run_cli("teach", demo, "--dataset", f"folder:{things}", "--out", "taught")
    assert done.returncode == 0, done.stderr
    first, second, third, last = done.stdout.splitlines()
    assert first.startswith("taught: taught 3 classes from 24 frames in ")
    assert first.endswith("; ships 24 latents")
    assert second == "held-out accuracy 100.0% of 12 frames"
    assert third.startswith("unknown=")
    assert third.endswith("; what it catches is not measured, as every tested class is learned")
    assert last == (
        "next: lrtflite verify taught; with new classes added: "
        f"lrtflite simulate taught --dataset folder:{things}"
    )
    # One line per phase, because stderr is not a terminal.
    assert done.stderr.splitlines() == [
        "extracting frames: 24",
        "training steps: 24",
        "gathering patterns: 1",
        "saving the state: 1",
        "testing held-out frames: 12",
    ]
    with Learner.open(tmp_path / "taught") as device:
        assert device.learned == ("amber", "blue", "green")
        assert len(device.memory) == 24
    assert "knows" in run_cli("inspect", "taught").stdout
    assert "3 classes from 1 session, with 24 latents" in run_cli("inspect", "taught").stdout


def test_the_next_command_is_quoted_for_a_shell(run_cli: Run, demo: Path, things: Path) -> None:
    dataset, out = f"folder:{things}?test=0.5&classes=amber,blue", "my things"
    manifest = demo / "manifest.json"  # stands for the bundle
    done = run_cli("teach", manifest, "--dataset", dataset, "--out", out)
    last = done.stdout.splitlines()[-1]
    verify, _, simulate = last.removeprefix("next: ").partition("; with new classes added: ")
    assert shlex.split(verify) == ["lrtflite", "verify", out]
    assert shlex.split(simulate) == ["lrtflite", "simulate", out, "--dataset", dataset]


def test_all_frames_are_taught_after_the_test(
    run_cli: Run, demo: Path, things: Path, tmp_path: Path
) -> None:
    # Two classes alike, so that the figure is not simply 1.
    for number in range(12):
        twin = things / "green" / f"{number:03d}.png"
        if number % 3:
            twin.write_bytes((things / "blue" / f"{number:03d}.png").read_bytes())
    words = ["teach", demo, "--dataset", "folder:things", "--json"]
    plain = json.loads(run_cli(*words, "--out", "plain").stdout)
    done = run_cli(*words, "--out", "whole", "--all")
    assert done.returncode == 0, done.stderr
    whole = json.loads(done.stdout)
    # The figure is that of a learner which was taught the training frames only.
    for name in ("held_out_accuracy", "held_out_frames", "by_class", "unknown"):
        assert whole[name] == plain[name]
    assert 0.5 < whole["held_out_accuracy"] < 1
    assert [plain["frames"], whole["frames"], whole["replay_patterns"]] == [24, 36, 36]
    assert [plain["taught_held_out_frames"], whole["taught_held_out_frames"]] == [False, True]
    assert [line for line in done.stderr.splitlines() if "extracting" in line] == [
        "extracting frames: 24",
        "everything: extracting frames: 36",
    ]
    with Learner.open(tmp_path / "whole") as device:
        history = device.committed.history
        assert (history.sessions, set(history.patterns.values())) == (1, {12})


def test_the_split_has_a_seed_of_its_own(run_cli: Run, demo: Path, things: Path) -> None:
    held_out = [
        {clip.name for clip in open_source(f"folder:{things}", seed=seed).test_clips()}
        for seed in (0, 1)
    ]
    wrong = sorted(name for name in held_out[0] - held_out[1] if name.startswith("amber"))[0]
    (things / wrong).write_bytes((things / "blue" / "001.png").read_bytes())
    words = ["teach", demo, "--dataset", "folder:things", "--json", "--out", "out"]
    found = json.loads(run_cli(*words, "--seed", "1", "--split-seed", "0").stdout)
    assert found["held_out_accuracy"] == pytest.approx(11 / 12)


def test_extra_steps_are_announced_and_counted(run_cli: Run, demo: Path, things: Path) -> None:
    # No loss is below 0, so the session takes every extra step. One step is a pass over 24 frames.
    words = ["--rate", "extra_steps=7", "--rate", "enough_loss=0", "--json"]
    done = run_cli("teach", demo, "--dataset", f"folder:{things}", "--out", "taught", *words)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["steps"] == 24 + 7
    assert "training steps, at least: 24" in done.stderr.splitlines()


def test_it_goes_on_from_what_a_bundle_knows(
    run_cli: Run, demo: Path, things: Path, tmp_path: Path
) -> None:
    more = draw_pictures(tmp_path / "more", classes=4, images=12)
    run_cli("teach", demo, "--dataset", f"folder:{things}", "--out", "taught")
    words = ["--out", "again", "--json", "--batch-frames", "4", "--replay-size", "30"]
    done = run_cli("teach", "taught", "--dataset", f"folder:{more}", *words)
    found = json.loads(done.stdout)
    assert found["classes"] == ["amber", "blue", "green", "red"]
    assert (found["frames"], found["replay_patterns"]) == (16, 30)
    assert set(found["by_class"]) == {"amber", "blue", "green", "red"}
    assert Bundle.open(tmp_path / "again").manifest.labels[:5] == (*found["classes"], None)


def test_what_it_knew_and_was_not_tested_is_counted(
    run_cli: Run, demo: Path, things: Path, tmp_path: Path
) -> None:
    spec = f"folder:{things}?classes="
    run_cli("teach", demo, "--dataset", f"{spec}amber,blue", "--out", "taught")
    done = run_cli("teach", "taught", "--dataset", f"{spec}green,", "--out", "again")
    assert done.stdout.startswith("again: taught 1 class from 8 frames in ")
    assert f"not tested: 2 classes learned before, which {spec}green, lacks" in done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--dataset", "folder:nowhere", "--out", "x"], "nowhere"),
        (["--dataset", "folder:things", "--out", "things"], "choose another --out"),
        (["--dataset", "folder:things", "--out", "x", "--lr", "nan"], "Expected lr as a number"),
        (["--dataset", "synthetic?frames=1", "--out", "/dev/null/x"], "Cannot write a bundle"),
    ],
)
def test_bad_input_is_one_line(
    run_cli: Run, demo: Path, things: Path, tmp_path: Path, words: list[str], said: str
) -> None:
    before = sorted(path.name for path in tmp_path.iterdir())
    done = run_cli("teach", demo, *words)
    assert (done.returncode, done.stdout) == (1, "")
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_unreadable_files_are_left_out_on_request(
    run_cli: Run, demo: Path, things: Path, tmp_path: Path
) -> None:
    (things / "blue" / "003.png").write_bytes(b"")
    words = ["teach", demo, "--dataset", "folder:things", "--out", "taught", "--json"]
    refused = run_cli(*words)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "got 1 of 36 that cannot be read: blue/003.png (empty)" in refused.stderr
    done = run_cli(*words, "--skip-unreadable")
    assert done.returncode == 0, done.stderr
    assert "1 unreadable file was left out: blue/003.png (empty)." in done.stderr
    assert json.loads(done.stdout)["skipped_files"] == ["blue/003.png (empty)"]


def test_a_class_with_one_video_is_said(run_cli: Run, demo: Path, things: Path) -> None:
    (things / "toy").mkdir()
    first, *rest = [Image.new("L", (4, 4), i) for i in range(60)]
    first.save(things / "toy" / "a.gif", save_all=True, append_images=rest, duration=100)
    words = ["--dataset", "folder:things?classes=red,toy,green", "--out", "taught"]
    done = run_cli("teach", demo, *words)
    assert done.returncode == 1  # there are only three colours
    assert "Expected classes of folder:things, got 'red'" in done.stderr
    words[1] = "folder:things?classes=toy,green"
    done = run_cli("teach", demo, *words, "--json")
    assert done.stderr.startswith("toy: one video only; its last third, after a gap, is the test")
    assert set(json.loads(done.stdout)["by_class"]) == {"green", "toy"}
    assert json.loads(done.stdout)["frames"] == 8 + 30


def test_interrupted(demo: Path, things: Path, tmp_path: Path) -> None:
    words = ["teach", str(demo), "--dataset", "folder:things", "--out", "taught"]
    with subprocess.Popen(
        [sys.executable, "-m", "lrtflite_cli.main", *words, "--epochs", "100000"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        while not process.stderr.readline().startswith("training steps"):
            assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    assert err == "Error: Interrupted; nothing is left half-written\n"
    assert list(tmp_path.iterdir()) == [things]


def test_a_class_that_is_hard_is_named(run_cli: Run, demo: Path, tmp_path: Path) -> None:
    """Two folders of the same colour cannot both be recognised."""
    things = draw_pictures(tmp_path / "things", classes=1, images=12)
    twin = draw_pictures(tmp_path / "other", classes=1, images=12)
    (twin / "amber").rename(things / "twin")
    done = run_cli("teach", demo, "--dataset", f"folder:{things}", "--out", "taught")
    assert "below 80%: " in done.stdout
    assert "more frames, from more sides, may help" in done.stdout


def test_the_weakest_class_is_named() -> None:
    report = SimpleNamespace(labels=("a", "b"), frames=4, ready_to_committed_ms=20.0)
    taught: Any = SimpleNamespace(
        bundle=SimpleNamespace(path="out"), report=report, latents=4, accuracy=0.95, held_out=20
    )
    taught.everything, taught.evaluation = False, None
    taught.by_class = {"a": 1.0, "b": 0.9}
    assert "weakest: b 90%" in taught_as_text(taught, "folder:x", untested=())
    taught.by_class = {"a": 1.0, "b": 1.0}
    assert "weakest" not in taught_as_text(taught, "folder:x", untested=())
    assert "before" not in taught_as_text(taught, "folder:x", untested=())
    taught.everything = True
    said = taught_as_text(taught, "folder:x", untested=()).splitlines()[1]
    assert said == "held-out accuracy 95.0% of 20 frames, before it was taught these too"


def test_too_many_classes_are_refused_before_the_work(
    run_cli: Run, demo: Path, tmp_path: Path
) -> None:
    many = tmp_path / "many"
    for number in range(51):
        folder = draw_pictures(many / f"{number}", classes=1, images=2)
        (folder / "amber").rename(many / f"class {number}")
        folder.rmdir()
    done = run_cli("teach", demo, "--dataset", f"folder:{many}", "--out", "x")
    assert "got 50 slots, 50 of them free; convert one with --classes 51" in done.stderr


def test_options_without_effect_say_so(
    run_cli: Run, closed_form_bundles: Path, things: Path
) -> None:
    lda = closed_form_bundles / "lda"
    dataset = ("--dataset", f"folder:{things}", "--epochs", "5")
    done = run_cli("teach", lda, *dataset, "--out", "taught", "--replay-size", "0")
    warned = [line for line in done.stderr.splitlines() if line.startswith("Warning: ")]
    assert len(warned) == 1  # a head of sums forgets nothing without a memory
    assert warned[0].startswith("Warning: epochs has no effect: a head of the strategy lda ")
    done = run_cli("simulate", lda, *dataset, "--sessions", "1")
    assert "note: epochs has no effect: " in done.stdout
    assert "note: epochs has no effect: " in done.stderr
