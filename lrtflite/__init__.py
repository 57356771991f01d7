"""Continual learning on the device, with the algorithm inside the model file.

Names are imported on first use, so that a program loads only what it uses.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lrtflite.answers.consensus import Consensus, Settled
    from lrtflite.answers.prediction import Prediction
    from lrtflite.bundle.bundle import Bundle
    from lrtflite.bundle.training import Training
    from lrtflite.camera.camera import Camera
    from lrtflite.camera.lesson import Lesson
    from lrtflite.camera.sources import open_camera
    from lrtflite.errors import CameraError, InputError, LrtfliteError
    from lrtflite.fleet.merge import Merged, merge
    from lrtflite.frames.fit import fit_frame
    from lrtflite.frames.hints import FrameHints
    from lrtflite.frames.image_file import read_image
    from lrtflite.learner import Learner
    from lrtflite.progress import Progress
    from lrtflite.session.enough import EnoughFrames
    from lrtflite.session.session import SessionReport
    from lrtflite.state.folder import read_state
    from lrtflite.state.reading import State
    from lrtflite.system.quiet import quiet_stderr
    from lrtflite.workbench.evaluation import Evaluation, evaluate

__version__ = "0.2.0"
__all__ = [
    "Bundle",
    "Camera",
    "CameraError",
    "Consensus",
    "EnoughFrames",
    "Evaluation",
    "FrameHints",
    "InputError",
    "Learner",
    "Lesson",
    "LrtfliteError",
    "Merged",
    "Prediction",
    "Progress",
    "SessionReport",
    "Settled",
    "State",
    "Training",
    "evaluate",
    "fit_frame",
    "merge",
    "open_camera",
    "quiet_stderr",
    "read_image",
    "read_state",
]
# Modules of the public names.
_HOMES = {
    "Bundle": "bundle.bundle",
    "Camera": "camera.camera",
    "CameraError": "errors",
    "Consensus": "answers.consensus",
    "EnoughFrames": "session.enough",
    "Evaluation": "workbench.evaluation",
    "FrameHints": "frames.hints",
    "InputError": "errors",
    "Learner": "learner",
    "Lesson": "camera.lesson",
    "LrtfliteError": "errors",
    "Merged": "fleet.merge",
    "Prediction": "answers.prediction",
    "Progress": "progress",
    "SessionReport": "session.session",
    "Settled": "answers.consensus",
    "State": "state.reading",
    "Training": "bundle.training",
    "evaluate": "workbench.evaluation",
    "fit_frame": "frames.fit",
    "merge": "fleet.merge",
    "open_camera": "camera.sources",
    "quiet_stderr": "system.quiet",
    "read_image": "frames.image_file",
    "read_state": "state.folder",
}


def __getattr__(name: str) -> Any:
    """Import the module of a public name on first use."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
