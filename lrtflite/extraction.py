"""Turn frames into latents in a second thread, while frames still arrive."""

from __future__ import annotations

import queue
import threading
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
    """Latents of all frames, in their order.

    `frames` is read in the calling thread, where `on_frame(frames so far)` is called too and may
    raise to stop; `extract` runs in the other. An error of either side ends both and is raised.
    """
    waiting: queue.Queue[NDArray[np.uint8] | None] = queue.Queue(WAITING_FRAMES)
    latents: list[NDArray[Any]] = []
    failures: list[BaseException] = []
    stop = threading.Event()

    def work() -> None:
        while (frame := waiting.get()) is not None:
            if stop.is_set():
                continue
            try:
                latents.append(extract(frame))
            except BaseException as error:
                failures.append(error)
                stop.set()

    worker = threading.Thread(target=work, name="lrtflite-extract", daemon=True)
    worker.start()
    try:
        for count, frame in enumerate(frames, start=1):
            if stop.is_set():
                break
            # A camera may give the same buffer again and again.
            waiting.put(frame.copy())
            on_frame(count)
    except BaseException:
        stop.set()
        raise
    finally:
        waiting.put(None)
        worker.join()
    if failures:
        raise failures[0]
    return latents
