"""The device process: it holds a learner and nothing else, and answers requests over a pipe.

It imports only numpy, lrtflite and the TFLite runtime, so its RAM and its timings are those of a
real device. `DeviceProcess` starts it as `python -m lrtflite_firmware_sim.device.device`.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Iterator
from typing import IO, Any, Union

import numpy as np
from numpy.typing import NDArray

from lrtflite.errors import LrtfliteError
from lrtflite.learner import Learner
from lrtflite.progress import Phase, Progress
from lrtflite.runtime.model import describe_runtime
from lrtflite.system.machine import peak_ram_mb
from lrtflite_firmware_sim.device.messages import (
    Acknowledged,
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
from lrtflite_firmware_sim.rivals.learner import RivalLearner

AnyLearner = Union[Learner, RivalLearner]


class HungUp(Exception):
    """Raised when the simulator has closed the pipe."""


# Prefix of the head's tensors in a state.
HEAD = "head/"


class Device:
    """A learner that answers requests until the simulator closes the pipe."""

    def __init__(self, requests: IO[bytes], replies: IO[bytes]) -> None:
        self._requests = requests
        self._replies = replies
        self._learner: AnyLearner | None = None
        self._parameter_bytes: int | None = None

    def serve(self) -> None:
        """Answer requests until the simulator closes the pipe, then close the learner."""
        try:
            while True:
                request = self._receive()
                send(self._replies, self._answer_or_fail(request))
        except (HungUp, BrokenPipeError):
            pass
        finally:
            if self._learner is not None:
                self._learner.close()

    def _answer_or_fail(self, request: Any) -> Any:
        try:
            return self._answer(request)
        except LrtfliteError as error:
            return Failed(type(error).__name__, str(error))
        except (HungUp, BrokenPipeError):
            raise
        except Exception as error:
            return Failed("", f"{type(error).__name__}: {error}", traceback.format_exc())

    def _answer(self, request: Any) -> Any:
        if isinstance(request, Open):
            return self._open(request)
        learner = self._learner
        if learner is None:
            raise TypeError(f"Expected Open as the first request, got {request!r}; send Open first")
        if isinstance(request, Learn):
            return learner.learn(
                self._arriving(),
                request.labels,
                training=request.training,
                diagnose=request.diagnose,
                on_progress=self._report,
            )
        if isinstance(request, LearnStored):
            # The file is mapped, and only these rows are read into RAM.
            return learner.learn_latents(
                np.load(request.file, mmap_mode="r", allow_pickle=False)[request.rows],
                request.labels,
                training=request.training,
                diagnose=request.diagnose,
                on_progress=self._report,
            )
        if isinstance(request, Extract):
            return learner.extract(request.pixels)
        if isinstance(request, Answer):
            return learner.answers(request.latents)
        if isinstance(request, Recognise):
            return learner.answers(learner.extract(request.pixels))
        if isinstance(request, Predict):
            started = time.perf_counter()
            [top] = learner.predict(request.pixels)
            return Predicted(1e3 * (time.perf_counter() - started), tuple(top))
        if isinstance(request, Ask):
            return self._vitals(learner)
        raise TypeError(f"Expected a request, got {request!r}; send one of `messages`")

    def _open(self, request: Open) -> Vitals:
        where = request.bundle, request.state, request.options
        if request.rival is None:
            self._learner = Learner.open_with(*where)
            tensors = self._learner.snapshot().arrays
            self._parameter_bytes = sum(
                values.nbytes for name, values in tensors.items() if name.startswith(HEAD)
            )
        else:
            self._learner = RivalLearner(*where, rival=request.rival)
        return self._vitals(self._learner)

    def _arriving(self) -> Iterator[NDArray[np.uint8]]:
        """Yield the frames of a session.

        INVARIANT: whenever this yields or ends, exactly one message is waiting for its reply, so an
        error anywhere in the session can be sent as that reply.
        """
        while True:
            send(self._replies, Acknowledged())
            message = self._receive()
            if isinstance(message, EndOfFrames):
                return
            if not isinstance(message, NextFrame):
                raise TypeError(
                    f"Expected NextFrame or EndOfFrames, got {message!r}; finish the session first"
                )
            yield message.pixels

    def _report(self, progress: Progress) -> None:
        # The simulator sends the frames, so it counts them itself.
        if progress.phase != Phase.EXTRACT:
            send(self._replies, progress)

    def _vitals(self, learner: AnyLearner) -> Vitals:
        return Vitals(
            runtime=learner.runtime,
            runtime_version=describe_runtime(learner.runtime),
            labels=learner.labels,
            learned=learner.learned,
            replay_patterns=len(learner.memory),
            replay_capacity=learner.memory.capacity,
            replay_bytes=learner.memory.nbytes,
            parameter_bytes=self._parameter_bytes,
            policy=learner.memory.policy,
            peak_ram_mb=peak_ram_mb(),
            modules=frozenset(name.partition(".")[0] for name in sys.modules),
        )

    def _receive(self) -> Any:
        try:
            return receive(self._requests)
        except EOFError:
            raise HungUp from None


def main(folder: str) -> None:
    """Serve over stdin and stdout, then remove `folder`, which holds the state and the log."""
    # The simulator handles signals, and closes the pipe when the device must end.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    # A runtime that prints to stdout must not print into the replies.
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    Device(sys.stdin.buffer, replies).serve()
    # The simulator removes the folder, too, unless it was killed.
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[1])
