"""A small data set of pictures, and one simulation on it that several tests share."""

from __future__ import annotations

from pathlib import Path

import pytest

from coloured_pictures import draw_pictures
from lrtflite.options import LearnerOptions
from lrtflite_firmware_sim import SimulateOptions, Simulation, simulate


@pytest.fixture(scope="session")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Draw four classes of 12 pictures: 8 of each for training, 4 for testing."""
    return draw_pictures(tmp_path_factory.mktemp("pictures"), classes=4, images=12)


@pytest.fixture(scope="session")
def options(pictures: Path) -> SimulateOptions:
    return SimulateOptions(
        dataset=f"folder:{pictures}",
        first_classes=2,
        learner=LearnerOptions(replay_size=20, seed=3),
    )


@pytest.fixture(scope="session")
def simulated(options: SimulateOptions) -> Simulation:
    """Simulate the demo bundle: a first session of two classes, then six of one class."""
    return simulate(None, options)
