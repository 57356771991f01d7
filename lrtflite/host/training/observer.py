"""Progress reports of a training run, for a progress bar or a test."""

from __future__ import annotations

from typing import Protocol

from lrtflite.host.training.checkpoint import Epoch
from lrtflite.progress import Progress


class TrainObserver(Protocol):
    """Receives the progress of a training run."""

    def progress(self, progress: Progress) -> None:
        """Report frames read into memory (READ), or passed through the frozen layers (EXTRACT)."""

    def step(self, epoch: int, step: int, steps: int, loss: float, accuracy: float) -> None:
        """Report `step` of `steps` in `epoch` (both from 1), with the epoch's means so far."""

    def epoch(self, result: Epoch) -> None:
        """Report a finished epoch."""


class Unobserved:
    """Ignores every report."""

    def progress(self, progress: Progress) -> None:
        pass

    def step(self, epoch: int, step: int, steps: int, loss: float, accuracy: float) -> None:
        pass

    def epoch(self, result: Epoch) -> None:
        pass
