"""Bundles that somebody else made: no hang, nothing read outside, no crash of this process."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from lrtflite import Learner
from lrtflite.bundle.bundle import Bundle
from lrtflite.errors import BundleError
from lrtflite.files.digest import digest
from lrtflite.verification import trial
from lrtflite.verification.trial import try_models
from lrtflite.verification.verify import verify_bundle
from lrtflite_cli.group import cli


@pytest.fixture
def copy(demo: Path, tmp_path: Path) -> Path:
    return shutil.copytree(demo, tmp_path / "bundle")


def edit(folder: Path, **changes: Any) -> None:
    path = folder / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def files_of(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "manifest.json").read_text())["files"]
    return found


@pytest.mark.parametrize("name", ["manifest.json", "head.tflite", "golden.npz"])
@pytest.mark.parametrize("kind", ["fifo", "device", "link", "folder"])
def test_only_regular_files_are_read(copy: Path, tmp_path: Path, name: str, kind: str) -> None:
    path = copy / name
    outside = path.rename(tmp_path / "outside")
    make: dict[str, Callable[[], object]] = {
        "fifo": lambda: os.mkfifo(path),
        "device": lambda: path.symlink_to("/dev/zero"),
        "link": lambda: path.symlink_to(outside),
        "folder": path.mkdir,
    }
    make[kind]()
    with pytest.raises(BundleError, match=r"regular file|Is a directory|no_such"):
        Bundle.open(copy)


@pytest.mark.parametrize("name", ["../outside", "/etc/hostname", "notes.txt", "a\nb"])
def test_only_known_names_are_read(copy: Path, name: str) -> None:
    edit(copy, files={**files_of(copy), name: {"sha256": "0" * 64, "bytes": 5}})
    with pytest.raises(BundleError, match=r"Expected only features\.tflite") as caught:
        Bundle.open(copy)
    assert "\n" not in str(caught.value)


def test_a_file_of_another_size_is_not_read(copy: Path) -> None:
    with (copy / "head.tflite").open("ab") as file:
        file.truncate(1 << 40)  # sparse: reading it would take hours
    with pytest.raises(BundleError, match="Expected 100080 bytes"):
        Bundle.open(copy)


def test_an_initial_state_of_an_earlier_format_is_refused_by_number(copy: Path) -> None:
    (copy / "initial-state.npz").write_bytes(b"PK")
    stamp = vars(digest(copy / "initial-state.npz"))
    edit(copy, files={**files_of(copy), "initial-state.npz": stamp})
    with pytest.raises(BundleError, match=r"of format 5 in .*, got format 4; teach"):
        Bundle.open(copy)


def test_control_characters_do_not_reach_the_terminal(copy: Path) -> None:
    edit(copy, backbone="\x1b[2Jgone\r\x07", tools={"\x1b[31m": "red"})
    said = CliRunner().invoke(cli, ["inspect", str(copy)])
    assert said.exit_code == 0
    assert "\\x1b[2Jgone\\r\\x07" in said.output
    assert not set(said.output) & set("\x1b\r\x07")


def test_a_crash_ends_neither_verify_nor_the_first_opening(
    copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a child, loading a model ends the process, as a hostile model can."""
    (tmp_path / "sitecustomize.py").write_text(
        "import os, signal, sys\n"
        "import lrtflite.runtime.model\n"
        "def load(*_, **__): os.kill(os.getpid(), signal.SIGSEGV)\n"
        "lrtflite.runtime.model.Model.__init__ = load\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(BundleError, match="SIGSEGV"):
        verify_bundle(copy)
    head = bytearray((copy / "head.tflite").read_bytes())
    head += bytes(4)  # another digest, so these models were never tried
    (copy / "head.tflite").write_bytes(head)
    edit(copy, files={**files_of(copy), "head.tflite": vars(digest(copy / "head.tflite"))})
    with pytest.raises(BundleError, match="SIGSEGV"):
        Learner.open(copy, tmp_path / "state")


def test_what_was_tried_is_remembered_next_to_the_state(
    demo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs: list[tuple[Any, ...]] = []
    monkeypatch.setattr(trial, "run_child", lambda *words, **_: runs.append(words))
    monkeypatch.setattr(trial, "passed", set())
    bundle = Bundle.open(demo)
    for folder, count in ((tmp_path, 1), (tmp_path, 1), (None, 2)):
        trial.passed.clear()  # as in a new process
        try_models(bundle, "auto", folder)
        assert len(runs) == count
    for odd in (b"", b"{", b"[1]", b"[" * 10_000, bytes(1 << 20)):
        (tmp_path / "checked.json").write_bytes(odd)
        trial.passed.clear()
        try_models(bundle, "auto", tmp_path)
    assert len(runs) == 2 + 5


@pytest.mark.parametrize("wrong", ["missing", "shape", "text"])
def test_golden_vectors_that_do_not_fit(copy: Path, wrong: str) -> None:
    with np.load(copy / "golden.npz") as archive:
        golden = dict(archive)
    if wrong == "missing":
        del golden["classes"]
    elif wrong == "shape":
        golden["frames"] = golden["frames"][:, :5]
    else:
        golden["counts"] = np.array("many")
    np.savez(copy / "golden.npz", **golden)
    edit(copy, files={**files_of(copy), "golden.npz": vars(digest(copy / "golden.npz"))})
    if wrong == "shape":  # the runtime takes them, and computes something else
        assert not all(check.passed for check in verify_bundle(copy))
        return
    with pytest.raises(BundleError, match=r"golden vectors|copy the bundle again"):
        verify_bundle(copy)
