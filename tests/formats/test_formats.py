"""Bundles and states of every past format are read, or refused by number."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from lrtflite import Bundle, Learner
from lrtflite.errors import BundleError, StateError
from lrtflite.manifest import BUNDLE_FORMAT, BUNDLE_FORMATS
from lrtflite.state_meta import STATE_FORMAT, STATE_FORMATS
from lrtflite.verify import verify_bundle

HERE = Path(__file__).parent


def number(path: Path) -> int:
    return int(path.name.rpartition("-")[2])


@pytest.mark.parametrize("path", sorted(HERE.glob("bundle-*")), ids=lambda path: path.name)
def test_a_bundle_verifies_or_is_refused_by_number(path: Path, runtime: str) -> None:
    if number(path) in BUNDLE_FORMATS:
        checks = verify_bundle(path, runtime=runtime)
        assert [check for check in checks if not check.passed] == []
    else:
        with pytest.raises(BundleError, match=f"got format {number(path)} "):
            Bundle.open(path)


@pytest.mark.parametrize("path", sorted(HERE.glob("state-*")), ids=lambda path: path.name)
def test_a_state_opens_or_is_refused_by_number(path: Path, tmp_path: Path) -> None:
    state = shutil.copytree(path, tmp_path / "state")
    bundle = HERE / f"bundle-{BUNDLE_FORMAT}"
    if number(path) not in STATE_FORMATS:
        with pytest.raises(StateError, match=f"got format {number(path)} "):
            Learner.open(bundle, state)
        return
    with Learner.open(bundle, state) as learner:
        assert learner.learned == ("mug", "hat")
        assert (learner.sessions, len(learner.memory), learner.memory.capacity) == (1, 6, 6)
        # The frames that the state has learned, as `make.py` drew them.
        frames = np.random.default_rng(0).integers(0, 256, (2, 5, 32, 32, 3)).astype(np.uint8)
        answers = [[p.label for p in learner.predict(frame, top=1)[0]] for frame in frames[:, 0]]
        assert answers == [["mug"], ["hat"]]


def test_the_present_formats_are_pinned() -> None:
    assert (HERE / f"bundle-{BUNDLE_FORMAT}").is_dir(), "run tests/formats/make.py"
    assert (HERE / f"state-{STATE_FORMAT}").is_dir(), "run tests/formats/make.py"


@pytest.mark.parametrize("old", range(1, BUNDLE_FORMATS[0]))
def test_older_bundles_are_refused_by_number(old: int, tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(json.dumps({"format": old}))
    with pytest.raises(BundleError, match=f"format 6 or 7, got format {old} .*convert"):
        Bundle.open(tmp_path)
