"""Start the device in its own process, and send it requests."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrtflite import errors
from lrtflite.answers.prediction import Answers
from lrtflite.bundle.training import Training
from lrtflite.errors import LrtfliteError
from lrtflite.files.deferred_signals import deferred_signals
from lrtflite.files.scratch import Scratch
from lrtflite.options import LearnerOptions
from lrtflite.progress import Progress
from lrtflite.session.session import SessionReport
from lrtflite_firmware_sim.device.messages import (
    Answer,
    Ask,
    EndOfFrames,
    Extract,
    Failed,
    Learn,
    LearnStored,
    NextFrame,
    Open,
    Predict,
    Predicted,
    Recognise,
    Vitals,
    receive,
    send,
)

# Seconds to wait for a device that was told to end.
_PATIENCE = 10.0


class DeviceProcess:
    """The simulator's side of the device; as a context manager it ends the device on exit."""

    def __init__(
        self, bundle: Path, options: LearnerOptions | None = None, *, rival: str | None = None
    ) -> None:
        options = options or LearnerOptions()
        self._scratch = Scratch()
        self._log = self._scratch.path / "log"
        try:
            with deferred_signals(), self._log.open("wb") as log:
                self.process = subprocess.Popen(
                    [
                        sys.executable,
                        "-m",
                        "lrtflite_firmware_sim.device.device",
                        str(self._scratch.path),
                    ],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    env=_environment(options.threads or 1),
                    pass_fds=(self._scratch.lock,),
                    # Keep the terminal's Ctrl-C from the device: the simulator handles it.
                    start_new_session=True,
                )
        except BaseException:
            self._scratch.remove()
            raise
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._requests, self._replies = self.process.stdin, self.process.stdout
        try:
            self.opened: Vitals = self.ask(
                Open(str(bundle.resolve()), str(self.state), options, rival=rival)
            )
        except BaseException:
            self.close(kill=True)
            raise

    @property
    def state(self) -> Path:
        """Return the folder of the device's state, which is removed when the device ends."""
        return self._scratch.path / "state"

    def learn(
        self,
        frames: Iterable[NDArray[np.uint8]],
        labels: Sequence[str],
        *,
        training: Training | None,
        diagnose: bool = False,
        on_frame: Callable[[int], None] | None = None,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> SessionReport:
        """Run one session; the device extracts latents while `frames` is still being read."""
        self.ask(Learn(tuple(labels), training, diagnose))
        for count, frame in enumerate(frames, start=1):
            self.ask(NextFrame(frame))
            if on_frame is not None:
                on_frame(count)
        return self._report(self.ask(EndOfFrames()), on_progress)

    def learn_stored(
        self,
        file: Path,
        rows: NDArray[np.int64],
        labels: Sequence[str],
        *,
        training: Training | None,
        diagnose: bool = False,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> SessionReport:
        """Run one session on rows of a file of latents."""
        request = LearnStored(str(file.resolve()), rows, tuple(labels), training, diagnose)
        return self._report(self.ask(request), on_progress)

    def _report(self, reply: Any, on_progress: Callable[[Progress], None] | None) -> SessionReport:
        """Pass progress on until the report of the session comes."""
        while isinstance(reply, Progress):
            if on_progress is not None:
                on_progress(reply)
            reply = self._reply()
        assert isinstance(reply, SessionReport)
        return reply

    def extract(self, frame: NDArray[np.uint8]) -> NDArray[Any]:
        """Return the latents (1, ...) of one frame."""
        latents: NDArray[Any] = self.ask(Extract(frame))
        return latents

    def answers(self, latents: NDArray[Any]) -> Answers:
        """Return the answers to latents (n, ...)."""
        answers: Answers = self.ask(Answer(latents))
        return answers

    def recognise(self, frame: NDArray[np.uint8]) -> Answers:
        """Return the answer to one frame, which the device extracts."""
        answers: Answers = self.ask(Recognise(frame))
        return answers

    def predict(self, frame: NDArray[np.uint8]) -> Predicted:
        """Return the likeliest labels of one frame, and the milliseconds until the answer."""
        predicted: Predicted = self.ask(Predict(frame))
        return predicted

    def vitals(self) -> Vitals:
        """Return the current state of the device."""
        vitals: Vitals = self.ask(Ask())
        return vitals

    def close(self, *, kill: bool = False) -> None:
        """End the device and remove its state; `kill` does not wait for a running request."""
        with deferred_signals():
            if kill:
                self.process.kill()
            with contextlib.suppress(OSError):
                self._requests.close()
            try:
                self.process.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            finally:
                self._replies.close()
                self._scratch.remove()

    def __enter__(self) -> DeviceProcess:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close(kill=error is not None)

    def ask(self, request: Any) -> Any:
        """Send one request of `messages` and return the reply; raise the device's error here."""
        try:
            send(self._requests, request)
        except OSError as error:
            raise self._exit_error() from error
        return self._reply()

    def _reply(self) -> Any:
        try:
            reply = receive(self._replies)
        except (EOFError, OSError) as error:
            raise self._exit_error() from error
        if isinstance(reply, Failed):
            raise raised_error(reply)
        return reply

    def _exit_error(self) -> LrtfliteError:
        """Return an error that explains in one line why the device ended."""
        try:
            code = self.process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            return LrtfliteError(
                "The device process closed its pipe but did not end", "run it again"
            )
        if code < 0:
            how = f"was killed by {signal.Signals(-code).name}"
            how += " (out of memory?)" if -code == signal.SIGKILL else ""
        else:
            how = f"ended with exit code {code}"
        lines = self._log.read_text(errors="replace").strip().splitlines()
        logged = f", after it printed {lines[-1].strip()!r}" if lines else ""
        fix = "free some RAM and run it again" if code == -signal.SIGKILL else "run it again"
        return LrtfliteError(f"The device process {how}{logged}", fix)


def raised_error(failed: Failed) -> LrtfliteError:
    """Return the device's error as if it had been raised here."""
    if not failed.kind:
        bug = LrtfliteError(
            f"The device process failed: {' '.join(failed.message.split())}",
            "this is a bug, please report it",
        )
        bug.__cause__ = RuntimeError(failed.trace)
        return bug
    kind: type[LrtfliteError] = getattr(errors, failed.kind, LrtfliteError)
    return kind(failed.message)


def _environment(threads: int) -> dict[str, str]:
    """Return an environment with the same packages, and at most `threads` threads for numpy."""
    path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
    blas = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(threads))
    # PYTHONSAFEPATH: do not import a file called numpy.py from the current folder.
    return {**os.environ, **blas, "PYTHONPATH": path, "PYTHONSAFEPATH": "1"}
