"""Fixtures that every test may use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with the ImageNet weights, photographs and NICv2 lists; most clones have none."""
    folder = Path(os.environ.get("LRTFLITE_SHARED", ROOT.parent / "shared"))
    if not folder.is_dir():
        pytest.skip(f"needs the reference weights and photographs in {folder} (LRTFLITE_SHARED)")
    return folder


@pytest.fixture(scope="session")
def demo() -> Path:
    """The bundle that comes with the package."""
    return ROOT / "lrtflite" / "demo_bundle"


# Machines that run several things at once miss any deadline now and then.
settings.register_profile("lrtflite", deadline=None)
settings.load_profile("lrtflite")
