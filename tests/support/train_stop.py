"""An observer that can stop a training run."""

from __future__ import annotations

import threading

from lrtflite.host.training.checkpoint import Epoch
from lrtflite.progress import Phase, Progress


class Stop:
    """Cancels a training run after some steps, and records the reports it receives."""

    def __init__(self, after: int | None = None) -> None:
        self.cancel = threading.Event()
        self.after = after
        self.steps: list[tuple[int, int, int]] = []
        self.epochs: list[Epoch] = []

    def progress(self, progress: Progress) -> None:
        if self.after == 0 and progress.phase == Phase.READ:
            self.cancel.set()

    def step(self, epoch: int, step: int, steps: int, loss: float, accuracy: float) -> None:
        self.steps.append((epoch, step, steps))
        if len(self.steps) == self.after:
            self.cancel.set()

    def epoch(self, result: Epoch) -> None:
        self.epochs.append(result)
