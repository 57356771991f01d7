"""Read a camera in a second thread, and hand out its newest picture."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import closing

import numpy as np
from numpy.typing import NDArray

from lrtflite.errors import CameraError

Picture = NDArray[np.uint8]  # (H, W, 3) RGB
Pictures = Generator[Picture, None, None]
# Seconds without a picture after which a camera counts as lost.
PATIENCE = 10.0


class Camera:
    """Read pictures in a second thread and hand out the newest.

    A driver queues unread pictures. Without the thread, a loop that is slower than its camera would
    see pictures that are a second old.
    """

    def __init__(self, pictures: Pictures) -> None:
        self._pictures = pictures
        self._changed = threading.Condition()
        self._newest: Picture | None = None
        self._ended = False
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def next(self) -> Picture | None:
        """Wait for a new picture (H, W, 3) uint8 RGB; return None at the end of a video.

        Raise CameraError for a camera that is missing, stops or hangs.
        """
        with self._changed:
            if not self._changed.wait_for(
                lambda: self._newest is not None or self._ended, PATIENCE
            ):
                raise CameraError(
                    f"Expected a picture, got none for {PATIENCE:g} s",
                    "check the camera and its cable",
                )
            picture, self._newest = self._newest, None
            if picture is None and self._error is not None:
                raise self._error
            return picture

    def close(self) -> None:
        """Stop reading and release the camera."""
        self._ended = True
        self._thread.join(2.0)  # a camera that hangs must not keep the program alive

    def _read(self) -> None:
        try:
            with closing(self._pictures):
                for picture in self._pictures:
                    with self._changed:
                        if self._ended:
                            return
                        self._newest = picture
                        self._changed.notify()
        except Exception as error:
            self._error = error
        finally:
            with self._changed:
                self._ended = True
                self._changed.notify()
