"""Continual learning on the device, with the algorithm inside the model file."""

from lrtflite.bundle.bundle import Bundle
from lrtflite.bundle.training import Training
from lrtflite.errors import LrtfliteError
from lrtflite.frames.fit import fit_frame
from lrtflite.frames.image_file import read_image
from lrtflite.learner import Learner
from lrtflite.prediction import Prediction
from lrtflite.session.session import Progress, SessionReport
from lrtflite.workbench.evaluation import Evaluation, evaluate

__version__ = "0.2.0"
__all__ = [
    "Bundle",
    "Evaluation",
    "Learner",
    "LrtfliteError",
    "Prediction",
    "Progress",
    "SessionReport",
    "Training",
    "evaluate",
    "fit_frame",
    "read_image",
]
