"""Heads that crash or fill RAM, given to every command that runs models: one line, nothing written.

Without a trial, each of these ends the process of the test.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from hostile_models import edit, fills_ram, hostile, without_operand
from lrtflite import Learner
from lrtflite.bundle.bundle import Bundle
from lrtflite.errors import BundleError
from lrtflite.files.digest import digest
from lrtflite.fleet.merge import merge
from lrtflite.runtime.model import LITERT, installed_runtimes
from lrtflite.verification import trial
from lrtflite.verification.trial import try_models
from lrtflite_cli.group import run

pytestmark = pytest.mark.slow

# A signature of the head, and an op in it that loses an operand.
BROKEN = {"save": "ADD", "begin": "MUL", "consolidate": "SUB", "infer": "MUL"}
# The runtime reads the operand from a place before its array: it crashes, or finds it missing.
CRASH = r"a trial of .*: a crash \(SIGSEGV\)|Tensor at index 1 was optional"


@pytest.fixture(autouse=True)
def only_litert() -> None:
    if LITERT not in installed_runtimes():
        pytest.skip("these heads crash ai-edge-litert; the older runtime refuses them")


@pytest.fixture(autouse=True)
def untried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "passed", set())


def check_refused(capfd: pytest.CaptureFixture[str], *words: object) -> None:
    """Run a command that must fail with one line."""
    assert run([str(word) for word in words]) == 1
    said = capfd.readouterr()
    assert said.out == ""
    [*notes, line] = said.err.splitlines()
    assert line.startswith("Error: ")
    assert re.search(CRASH, line), said.err
    assert not any("Traceback" in note for note in notes)


@pytest.mark.parametrize("signature", BROKEN)
def test_a_head_that_crashes(
    demo: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], signature: str
) -> None:
    bad = hostile(demo, tmp_path / "bad", without_operand(signature, BROKEN[signature]))
    check_refused(capfd, "verify", bad)
    for state in (None, tmp_path / "state"):
        with pytest.raises(BundleError, match=CRASH):
            Learner.open(bad, state)
    # It is never remembered as passed, and leaves no folder; the path takes another bundle.
    assert trial.passed == set()
    assert not (tmp_path / "state").exists()
    Learner.open(demo, tmp_path / "state").close()


@pytest.mark.parametrize("signature", ["save", "consolidate", "forget"])
def test_merge_survives_a_head_that_crashes(
    closed_form_bundles: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], signature: str
) -> None:
    whole = closed_form_bundles / "ncm"
    kind = {"save": "ADD", "consolidate": "MUL", "forget": "MUL"}[signature]
    bad = hostile(whole, tmp_path / "bad", without_operand(signature, kind))
    states = []
    for name in ("a", "b"):
        states.append(tmp_path / name)
        with Learner.open(whole, states[-1]) as learner:
            shape = learner.bundle.manifest.latent_shape
            learner.learn_latents(np.random.default_rng(0).random((4, *shape), np.float32), name)
    out = tmp_path / "deep" / "merged"
    check_refused(capfd, "merge", bad, *states, "--out", out)
    with pytest.raises(BundleError, match=CRASH):
        merge(Bundle.open(bad), states, out)
    assert not out.parent.exists()


def test_teach_and_simulate_survive_a_head_that_crashes(
    demo: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    bad = hostile(demo, tmp_path / "bad", without_operand("infer", "MUL"))
    taught, before = tmp_path / "taught", set(tmp_path.iterdir())
    dataset = ("--dataset", "synthetic?classes=4&frames=2")
    check_refused(capfd, "teach", bad, *dataset, "--out", taught)
    check_refused(capfd, "simulate", bad, *dataset, "--sessions", 1)
    assert set(tmp_path.iterdir()) == before


@pytest.mark.parametrize("tensors", [1, 40])
def test_a_head_that_fills_ram(demo: Path, tmp_path: Path, tensors: int) -> None:
    """64 GB at once, or 256 MB forty times: the limit is 376 MB, whatever the runtime says."""
    shape = (1 << 14, 1 << 20) if tensors == 1 else (1 << 13, 1 << 13)
    bad = hostile(demo, tmp_path / "bad", fills_ram(tensors, shape))
    costs = dict.fromkeys(("extract_ms", "step_ms", "session_s", "ram_mb", "memory_mb"), 60)
    edit(bad, measured={"machine": "", "runtime": "", "threads": 1, "steps": 1, **costs})
    for name in installed_runtimes():
        with pytest.raises(BundleError, match=r"within 376 MB of RAM; .*LRTFLITE_TRIAL_MB"):
            Learner.open(bad, tmp_path / "state", runtime=name)
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize("lie", [-1, 1e30, "1e999", None])
def test_a_manifest_that_lies_about_its_peak(demo: Path, tmp_path: Path, lie: object) -> None:
    bad = hostile(demo, tmp_path / "bad", fills_ram(1, (1 << 14, 1 << 20)))
    costs = dict.fromkeys(("extract_ms", "step_ms", "session_s", "memory_mb"), 60)
    measured = {"machine": "", "runtime": "", "threads": 1, "steps": 1, "ram_mb": lie, **costs}
    edit(bad, measured=measured)
    with pytest.raises(BundleError, match=r"ram_mb|MB of RAM"):
        Learner.open(bad)


def test_a_trial_that_ends_early_is_not_remembered(demo: Path, tmp_path: Path) -> None:
    """The models pass; the manifest of the copy does not fit them, so nothing was tried."""
    copy = hostile(demo, tmp_path / "bad", without_operand("infer", "MUL"))
    edit(copy, latent_shape=[7])
    state = tmp_path / "state"
    with pytest.raises(BundleError, match="does not fit its"):
        Learner.open(copy, state)
    assert not state.exists()
    edit(copy, latent_shape=[256])
    with pytest.raises(BundleError, match=CRASH):
        Learner.open(copy, state)


def test_what_the_golden_session_leaves_out_is_tried_too(demo: Path, tmp_path: Path) -> None:
    bad = hostile(demo, tmp_path / "bad", without_operand("train", "ADD"))
    with np.load(bad / "golden.npz") as archive:
        golden = dict(archive)
    golden["rows"] = golden["rows"][:, :0]  # no step
    np.savez(bad / "golden.npz", **golden)
    edit(bad, files={"golden.npz": vars(digest(bad / "golden.npz"))})
    with pytest.raises(BundleError, match=CRASH):
        try_models(Bundle.open(bad), LITERT)
