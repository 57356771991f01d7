"""Train a network on the host: the first batch of a stream, or a backbone from random weights."""

from __future__ import annotations

from lrtflite.host.training.options import BACKBONE, FIRST_BATCH, TrainOptions
from lrtflite.host.training.result import TrainResult
from lrtflite.host.training.run import train

__all__ = ["BACKBONE", "FIRST_BATCH", "TrainOptions", "TrainResult", "train"]
