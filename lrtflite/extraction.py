"""Turn frames into latents in a second thread, while frames still arrive."""

from __future__ import annotations

import _thread
import queue
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

# A camera that is faster than the network waits for it here, instead of filling the RAM.
WAITING_FRAMES = 32


def extract_while_arriving(
    frames: Iterable[NDArray[np.uint8]],
    extract: Callable[[NDArray[np.uint8]], NDArray[Any]],
    *,
    on_frame: Callable[[int], None],
) -> list[NDArray[Any]]:
    """Return the latents of all frames, in their order.

    `frames` is read in the calling thread, where `on_frame(frames so far)` is called too and may
    raise to stop; `extract` runs in the other. An error of either side ends both and is raised.
    """
    worker = _Worker(extract)
    try:
        for count, frame in enumerate(frames, start=1):
            if worker.failures:
                break
            # A camera may give the same buffer again and again.
            worker.take(frame.copy())
            on_frame(count)
        worker.finish()
    except BaseException:
        worker.stop()
        raise
    if worker.failures:
        raise worker.failures[0]
    return worker.latents


class _Worker:
    """Extracts frames in a thread that exists only while frames wait.

    Ctrl-C raises KeyboardInterrupt between any two instructions of the main thread, also in code
    that starts or ends a thread.
    INVARIANT: the thread never waits for its owner, so it ends even if its owner is cut off
    anywhere. Owner and thread share only what is written in C and cannot be left half-changed:
    simple queues and a plain lock, not `threading.Thread`, whose `start` and `join` can.
    """

    def __init__(self, extract: Callable[[NDArray[np.uint8]], NDArray[Any]]) -> None:
        self.latents: list[NDArray[Any]] = []
        self.failures: list[BaseException] = []
        self._extract = extract
        self._waiting: queue.SimpleQueue[NDArray[np.uint8]] = queue.SimpleQueue()
        # One token per free place; at the end all of them are back.
        self._room: queue.SimpleQueue[None] = queue.SimpleQueue()
        for _ in range(WAITING_FRAMES):
            self._room.put(None)
        self._stopped = False
        self._working = _thread.allocate_lock()

    def take(self, frame: NDArray[np.uint8]) -> None:
        """Hand over a frame; waits while WAITING_FRAMES are not extracted yet."""
        self._room.get()
        self._waiting.put(frame)
        if not self._working.locked():
            _thread.start_new_thread(self._work, ())

    def finish(self) -> None:
        """Wait until every frame is extracted."""
        for _ in range(WAITING_FRAMES):
            self._room.get()

    def stop(self) -> None:
        """Drop the frames that wait, and wait for the one that is being extracted."""
        self._stopped = True
        with self._working:
            pass

    def _work(self) -> None:
        # A frame may come after the last look at the queue and before the lock is released, when
        # `take` still sees a thread at work: look once more.
        while not self._waiting.empty() and self._working.acquire(blocking=False):
            try:
                self._extract_waiting()
            finally:
                self._working.release()

    def _extract_waiting(self) -> None:
        while True:
            try:
                frame = self._waiting.get_nowait()
            except queue.Empty:
                return
            if not (self._stopped or self.failures):
                try:
                    self.latents.append(self._extract(frame))
                except BaseException as error:
                    self.failures.append(error)
            self._room.put(None)
