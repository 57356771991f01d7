"""The device's own camera: answers for every page, pictures to look at, and lessons."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from lrtflite import fit_frame, open_camera
from lrtflite.errors import CameraError, LrtfliteError
from lrtflite_serve.service.pixels import Frame, as_jpeg, shown_picture
from lrtflite_serve.service.recording import MAX_WAITING, Recording

# Answers per second while somebody listens.
ANSWERS = 10.0
# Seconds until a lost camera is opened again.
AGAIN = 3.0
_log = logging.getLogger("lrtflite")


# A lesson that the camera feeds: seconds, frames per second, and what to call at its end.
_Feeding = tuple[Recording, float, float, Callable[[Recording], None]]


class DeviceCamera:
    """Read a camera in a thread: publish answers, offer the newest picture, feed a lesson."""

    def __init__(self, source: str) -> None:
        """Open the camera and wait for its first picture; raise CameraError if there is none."""
        self.source = source
        self._lock = threading.Lock()
        self._picture: Frame | None = None
        self._shown: bytes | None = None
        self.number = 0
        self.problem: str | None = None
        self._lesson: _Feeding | None = None
        self._ends = threading.Event()
        self._thread: threading.Thread | None = None
        self._camera = open_camera(source)
        try:
            self._keep(self._camera.next())
        except BaseException:
            self._camera.close()
            raise

    def start(
        self, size: int, *, answer: Callable[[Frame], None], publish: Callable[[str, Any], None]
    ) -> None:
        """Begin to answer and to publish, in a thread."""
        self._size, self._answer, self._publish = size, answer, publish
        self._thread = threading.Thread(target=self._run, name="camera", daemon=True)
        self._thread.start()

    def shown(self) -> tuple[int, bytes]:
        """Return the number of the newest picture, and a JPEG of it."""
        with self._lock:
            if self.problem is not None or self._picture is None:
                raise CameraError(
                    self.problem or "Expected a picture of the camera, got none yet",
                    "check the camera and its cable",
                )
            if self._shown is None:
                self._shown = as_jpeg(shown_picture(self._picture))
            return self.number, self._shown

    def teach(
        self, recording: Recording, seconds: float, fps: float, done: Callable[[Recording], None]
    ) -> None:
        """Record frames for a lesson, `fps` per second; call `done` once it has them all."""
        with self._lock:
            if self.problem is not None:
                raise CameraError(self.problem, "check the camera and its cable")
            self._lesson = (recording, seconds, fps, done)

    def close(self) -> None:
        self._ends.set()
        if self._thread is None:
            self._camera.close()
        else:
            self._thread.join(2.0)

    def _run(self) -> None:
        next_answer = 0.0
        while not self._ends.is_set():
            try:
                picture = self._camera.next()
                if picture is None:  # the end of a file: from its start again
                    self._reopen()
                    continue
                self._keep(picture)
                now = time.monotonic()
                if self._lesson is None and now < next_answer:
                    continue
                frame = fit_frame(picture, self._size)
            except Exception as error:  # drivers raise errors of any kind
                self._lost(_camera_error(error))
                continue
            self._feed(frame)
            if now >= next_answer:
                next_answer = now + 1 / ANSWERS
                self._tell(frame)
        self._camera.close()

    def _tell(self, frame: Frame) -> None:
        try:
            self._answer(frame)
        except LrtfliteError:  # the last class was forgotten meanwhile
            pass
        except Exception:
            _log.exception("Cannot answer a picture of the camera")

    def _keep(self, picture: Frame | None) -> None:
        if picture is None:
            raise CameraError(
                f"Expected pictures of {self.source}, got none", "give another camera or file"
            )
        with self._lock:
            self._picture, self._shown = picture, None
            self.number += 1

    def _feed(self, frame: Frame) -> None:
        lesson = self._lesson
        if lesson is None:
            return
        recording, seconds, fps, _ = lesson
        try:
            if recording.seconds >= seconds or recording.is_over:
                self._end(lesson)
            elif recording.seconds >= recording.frames / fps and recording.waiting < MAX_WAITING:
                recording.add(frame)
        except Exception as error:  # it was ended by somebody else, or cannot go on
            recording.failure = _camera_error(error)
            self._end(lesson)

    def _end(self, lesson: _Feeding) -> None:
        """Feed a lesson no longer, and say so; another one may have begun meanwhile."""
        with self._lock:
            if self._lesson is lesson:
                self._lesson = None
        recording, _, _, done = lesson
        done(recording)

    def _lost(self, error: LrtfliteError) -> None:
        """Say that the camera is lost, and open it again until it is back."""
        with self._lock:
            self.problem = error.problem
            lesson = self._lesson
        self._publish("camera", {"state": "lost", "problem": error.problem})
        if lesson is not None:
            lesson[0].failure = error
            self._end(lesson)
        self._camera.close()
        while not self._ends.wait(AGAIN):
            try:
                self._reopen()
                self._keep(self._camera.next())
            except Exception as again:
                self.problem = _camera_error(again).problem
                continue
            self.problem = None
            self._publish("camera", {"state": "found"})
            return

    def _reopen(self) -> None:
        self._camera.close()
        self._camera = open_camera(self.source)


def _camera_error(error: Exception) -> LrtfliteError:
    if isinstance(error, LrtfliteError):
        return error
    return CameraError(
        f"Cannot use the camera: {type(error).__name__}: {error}", "check the camera and its cable"
    )
