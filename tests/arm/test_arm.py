"""Bundles verify and learn on 64-bit ARM as they do here, on both runtimes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from agreement import compare
from arm_frames import draw_frames
from emulated import ROOT, arm_session, missing, native_session

from lrtflite import Bundle
from lrtflite.runtime.model import RUNTIMES, installed_runtimes

Runs = dict[tuple[str, str], "Future[dict[str, Any]]"]


def lacks(what: str) -> None:
    """Skip the test and name what is missing; fail instead if CI requires it."""
    if os.environ.get("LRTFLITE_REQUIRE_ARM"):
        pytest.fail(what, pytrace=False)
    pytest.skip(what)


@pytest.fixture(scope="module", params=["given", "lda"])
def bundle(
    request: pytest.FixtureRequest, demo: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The demo bundle, or the one that is given by hand; and the demo backbone in closed form."""
    if what := missing():
        lacks(what)
    # `make test-arm BUNDLE=...`
    given = os.environ.get("LRTFLITE_ARM_BUNDLE")
    if request.param == "given":
        return ROOT / (given or demo)
    if given:
        pytest.skip(f"only {given} was asked for")
    out = tmp_path_factory.mktemp("lda") / "bundle"
    convert = [sys.executable, "-m", "lrtflite_cli.main", "convert", "--strategy", "lda"]
    done = subprocess.run([*convert, "--out", str(out)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return out


@pytest.fixture(scope="module")
def runs(bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    """Sessions of each runtime on each machine, two at a time."""
    states = tmp_path_factory.mktemp("states")
    frames = states / "frames.npz"
    draw_frames(frames, size=Bundle.open(bundle).manifest.input_size)
    with ThreadPoolExecutor(max_workers=2) as pool:
        yield {
            (machine, runtime): pool.submit(
                session, bundle, runtime, frames, states / f"{machine}-{runtime}"
            )
            for machine, session in (("arm", arm_session), ("here", native_session))
            for runtime in RUNTIMES
        }


@pytest.fixture(params=list(RUNTIMES))
def name(request: pytest.FixtureRequest) -> str:
    runtime: str = request.param
    if runtime not in installed_runtimes():
        lacks(f"the runtime {runtime} is not installed here, so there is nothing to compare with")
    return runtime


def test_arm_verifies_and_learns_as_this_computer_does(
    runs: Runs, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arm, here = (runs[machine, name].result() for machine in ("arm", "here"))
    assert arm["machine"] == "aarch64"
    assert arm["runtime"].startswith(RUNTIMES[name][0])
    agreement = compare(arm, here)
    with capsys.disabled():
        golden = next(seen for check, _, seen in arm["checks"] if check.startswith("losses"))
        print(f"\n{arm['runtime']} on {arm['machine']}: golden losses: {golden}")
        print(
            f"  beside {here['runtime']} on {here['machine']}: losses differ by "
            f"{agreement.loss:.1e}, probabilities by {agreement.probability:.1e} at most; "
            f"verify {arm['verify_seconds']} s, sessions {arm['learn_seconds']} s emulated"
        )
    for result in (arm, here):
        assert [check for check in result["checks"] if not check[1]] == []
        assert result["reopened_unchanged"], "a state that was closed and opened again"
        assert result["undone_unchanged"], "a session that was undone"
    assert agreement.faults == ()
