"""Record a session: check frames as they arrive, and extract them in a second thread."""

from __future__ import annotations

import _thread
import queue
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrtflite.bundle.manifest import Manifest
from lrtflite.errors import InputError
from lrtflite.frames.checks import check_frame, check_no_path
from lrtflite.progress import Phase
from lrtflite.session.session import Session

# Maximum number of frames waiting for extraction. A faster camera has to wait, to limit RAM use.
WAITING_FRAMES = 32


def extract_while_arriving(
    frames: Iterable[NDArray[np.uint8]],
    extract: Callable[[NDArray[np.uint8]], NDArray[Any]],
    *,
    on_frame: Callable[[int], None],
) -> list[NDArray[Any]]:
    """Return the latents of all frames, in their order.

    The calling thread reads `frames` and calls `on_frame(frames so far)`, which may raise to stop.
    The other thread runs `extract`. An error in either thread ends both and is raised here.
    """
    worker = _Worker(extract)
    try:
        for count, frame in enumerate(frames, start=1):
            if worker.failures:
                break
            # A camera may reuse one buffer for every frame.
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
    """Extraction in a thread that exists only while frames wait.

    Ctrl-C raises KeyboardInterrupt between any two instructions of the main thread, including in
    code that starts or ends a thread. INVARIANT: the thread never waits for its owner, so it ends
    wherever an interrupt stops the owner. Owner and thread share simple queues and a plain lock,
    which are written in C and never left half-changed. `start` and `join` of `threading.Thread` are
    Python and can be.
    """

    def __init__(self, extract: Callable[[NDArray[np.uint8]], NDArray[Any]]) -> None:
        self.latents: list[NDArray[Any]] = []
        self.failures: list[BaseException] = []
        self._extract = extract
        self._waiting: queue.SimpleQueue[NDArray[np.uint8]] = queue.SimpleQueue()
        # One token per free place; all tokens are back at the end.
        self._room: queue.SimpleQueue[None] = queue.SimpleQueue()
        for _ in range(WAITING_FRAMES):
            self._room.put(None)
        self._stopped = False
        self._working = _thread.allocate_lock()

    def take(self, frame: NDArray[np.uint8]) -> None:
        """Hand over a frame; wait while WAITING_FRAMES frames are still to be extracted."""
        self._room.get()
        self._waiting.put(frame)
        if not self._working.locked():
            _thread.start_new_thread(self._work, ())

    def finish(self) -> None:
        """Wait until every frame is extracted."""
        for _ in range(WAITING_FRAMES):
            self._room.get()

    def stop(self) -> None:
        """Drop the waiting frames, then wait for the frame that is being extracted."""
        self._stopped = True
        with self._working:
            pass

    def _work(self) -> None:
        # A frame can arrive between the last look at the queue and the release of the lock. `take`
        # then starts no thread, so look at the queue again.
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


Frame = NDArray[np.uint8]


def record(
    frames: Iterable[Frame],
    session: Session,
    *,
    extract: Callable[[Frame], NDArray[Any]],
    manifest: Manifest,
    on_latent: Callable[[NDArray[Any]], None] | None = None,
) -> tuple[list[NDArray[Any]], list[Frame]]:
    """Return the latents of all frames, and the frames if moments adapt to them.

    `frames` is one frame (H, W, 3), several, or an iterator that is still recording. `on_latent`
    is called in the thread that extracts.
    """
    if isinstance(frames, np.ndarray) and frames.ndim == 3:
        frames = frames[np.newaxis]
    check_no_path(frames)
    single = isinstance(frames, np.ndarray) and frames.ndim == 0
    if single or not isinstance(frames, Iterable):
        raise InputError(
            f"Expected frames or an iterator of them, got {frames!r}", "give arrays (H, W, 3)"
        )
    total = len(frames) if isinstance(frames, (Sequence, np.ndarray)) else None
    kept: list[Frame] = []

    def extract_one(frame: Frame) -> NDArray[Any]:
        if manifest.adapt_moments:
            kept.append(frame)
        with session.clock(Phase.EXTRACT):
            latent = extract(frame)
        if on_latent is not None:
            on_latent(_read_only(latent))
        return latent

    latents = extract_while_arriving(
        (check_frame(frame, manifest.input_size) for frame in frames),
        extract_one,
        on_frame=lambda count: session.report(Phase.EXTRACT, count, total),
    )
    return latents, kept


def _read_only(latent: NDArray[Any]) -> NDArray[Any]:
    view = latent.view()
    view.flags.writeable = False
    return view
