"""A disk that is really full while a session is saved."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from coloured_pictures import draw_pictures
from lrtflite import Learner
from lrtflite.errors import StateError
from lrtflite.state.folder import read_state

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a file system of one megabyte."""
    if os.geteuid() != 0:
        pytest.skip("only root may mount a small disk to fill")
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"cannot mount a small disk to fill: {done.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(disk: Path) -> Path:
    """Use up every byte that is left."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))
    return filler


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_session_that_finds_no_room_never_was(demo: Path, small_disk: Path) -> None:
    state = small_disk / "state"
    rng = np.random.default_rng(0)
    with Learner.open(demo, state) as learner:
        shape = learner.bundle.manifest.latent_shape
        mug, hat = (rng.random((40, *shape), np.float32) for _ in range(2))
        learner.learn_latents(mug, "mug")
        answer = learner.probabilities(mug)
        files = contents(state)

        filler = fill(small_disk)
        changes = (
            lambda: learner.learn_latents(hat, "hat"),
            lambda: learner.rename("mug", "cup"),
        )
        for change in changes:
            with pytest.raises(StateError, match="the state before is intact: No space left"):
                change()
            assert [label for label in learner.labels if label] == ["mug"]
            np.testing.assert_array_equal(learner.probabilities(mug), answer)
            np.testing.assert_array_equal(learner.memory.codes, read_state(state).memory.rows.all())
        assert contents(state) == files

        filler.unlink()
        learner.learn_latents(hat, "hat")
    with Learner.open(demo, state) as learner:
        assert [label for label in learner.labels if label] == ["mug", "hat"]
        assert learner.sessions == 2


@pytest.mark.parametrize("renamed", [False, True])
def test_forgetting_finds_room_on_a_full_disk(demo: Path, small_disk: Path, renamed: bool) -> None:
    """The generations for undo make room, also when the last change wrote no tensors."""
    rng = np.random.default_rng(0)
    with Learner.open(demo, small_disk / "state") as learner:
        shape = learner.bundle.manifest.latent_shape
        for label in ("mug", "hat"):
            learner.learn_latents(rng.random((40, *shape), np.float32), label)
        if renamed:
            learner.rename("hat", "cap")
        fill(small_disk)
        learner.forget("mug")
        kept = learner.learned
    assert kept == (("cap",) if renamed else ("hat",))
    with Learner.open(demo, small_disk / "state", read_only=True) as learner:
        assert learner.learned == kept


def test_a_new_state_needs_room_too(demo: Path, small_disk: Path) -> None:
    fill(small_disk)
    with pytest.raises(StateError, match=r"Cannot save to .*, no state was made: No space left"):
        Learner.open(demo, small_disk / "states" / "new")
    assert {path.name for path in small_disk.iterdir()} == {"filler"}
    (small_disk / "empty").mkdir()
    with pytest.raises(StateError, match="no state was made: No space left"):
        Learner.open(demo, small_disk / "empty")
    assert {path.name for path in small_disk.iterdir()} == {"filler", "empty"}


def test_the_command_learn_says_that_nothing_was_lost(
    run_cli: Callable[..., subprocess.CompletedProcess[str]], demo: Path, small_disk: Path
) -> None:
    things = draw_pictures(small_disk.parent / "things", classes=2, images=3)
    state = small_disk / "state"
    assert run_cli("learn", demo, state, "--label", "amber", things / "amber").returncode == 0
    files = contents(state)
    fill(small_disk)
    done = run_cli("learn", demo, state, "--label", "blue", things / "blue")
    assert (done.returncode, done.stdout) == (1, "")
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"Error: Cannot save to {state}, the state before is intact: No space")
    assert contents(state) == files
    done = run_cli("predict", demo, state, things / "amber" / "001.png")
    assert done.stdout.startswith(f"{things / 'amber' / '001.png'}: amber ")


def test_keys_are_whole_or_not_there(small_disk: Path, run_cli: Run) -> None:
    pytest.importorskip("cryptography")
    filler = fill(small_disk)
    key = small_disk / "key"
    line = "Error: Cannot write"
    done = run_cli("keygen", key)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert done.stderr.startswith(line)
    assert {path.name for path in small_disk.iterdir()} == {"filler"}
    # Room for one of the two: a page for the private key, none for the public one.
    os.truncate(filler, filler.stat().st_size - 4096)
    done = run_cli("keygen", key)
    assert done.returncode == 1
    assert {path.name for path in small_disk.iterdir()} == {"filler"}
    filler.unlink()
    assert run_cli("keygen", key).returncode == 0
    assert (key.stat().st_mode & 0o777, key.stat().st_size > 100) == (0o600, True)


def test_a_conversion_without_room_for_temporary_files(
    small_disk: Path, run_cli: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("tensorflow")
    filler = fill(small_disk)
    os.truncate(filler, filler.stat().st_size - 200_000)
    monkeypatch.setenv("TMPDIR", str(small_disk))
    done = run_cli("convert", "--replay-layer", "pool6", "--out", tmp_path / "out")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    [last] = done.stderr.splitlines()[-1:]
    assert last == (
        f"Error: Cannot write temporary files in {small_disk}: No space left on device; free some "
        "space, or set TMPDIR to a folder with more"
    )
    assert not (tmp_path / "out").exists()
    assert {path.name for path in small_disk.iterdir()} == {"filler"}


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    "words",
    [
        "--version",
        "--help",
        "inspect --help",
        "inspect BUNDLE",
        "inspect BUNDLE --json",
        "layers --help",
    ],
)
def test_a_full_stdout_is_one_line(demo: Path, words: str, unbuffered: str) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")
    command = [sys.executable, "-m", "lrtflite_cli.main", *words.split()]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [str(demo) if word == "BUNDLE" else word for word in command],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        )
    assert (done.returncode, done.stderr) == (
        1,
        "Error: Cannot write to stdout: No space left on device; what the command changed stays "
        "changed\n",
    )
