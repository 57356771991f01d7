"""The device's own camera: answers for every page, pictures to look at, and lessons."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from lrtflite import fit_frame, open_camera
from lrtflite.errors import CameraError, LrtfliteError
from lrtflite_serve.service.pixels import Frame, as_jpeg, shown_picture
from lrtflite_serve.service.recording import Recording

# Answers per second while somebody listens.
ANSWERS = 10.0
# Seconds until a lost camera is opened again.
AGAIN = 3.0


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
        self._lesson: tuple[Recording, float, float, Callable[[Recording], None]] | None = None
        self._ends = threading.Event()
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
        self._thread.join(2.0)

    def _run(self) -> None:
        next_answer = 0.0
        while not self._ends.is_set():
            try:
                picture = self._camera.next()
                if picture is None:  # the end of a file: from its start again
                    self._reopen()
                    continue
            except LrtfliteError as error:
                self._lost(error)
                continue
            self._keep(picture)
            now = time.monotonic()
            if self._lesson is None and now < next_answer:
                continue
            frame = fit_frame(picture, self._size)
            self._feed(frame)
            if now >= next_answer:
                next_answer = now + 1 / ANSWERS
                self._answer(frame)
        self._camera.close()

    def _keep(self, picture: Frame | None) -> None:
        if picture is None:
            raise CameraError(
                f"Expected pictures of {self.source}, got none", "give another camera or file"
            )
        with self._lock:
            self._picture, self._shown = picture, None
            self.number += 1

    def _feed(self, frame: Frame) -> None:
        if self._lesson is None:
            return
        recording, seconds, fps, done = self._lesson
        try:
            if recording.seconds >= seconds or recording.is_over:
                self._lesson = None
                done(recording)
            elif recording.seconds >= recording.frames / fps:
                recording.add(frame)
        except LrtfliteError:  # it was cancelled, or has failed and says so itself
            self._lesson = None

    def _lost(self, error: LrtfliteError) -> None:
        """Say that the camera is lost, and open it again until it is back."""
        with self._lock:
            self.problem = error.problem
            lesson, self._lesson = self._lesson, None
        self._publish("camera", {"state": "lost", "problem": error.problem})
        if lesson is not None:
            lesson[0].failure = error
            lesson[3](lesson[0])
        self._camera.close()
        while not self._ends.wait(AGAIN):
            try:
                self._reopen()
                self._keep(self._camera.next())
            except LrtfliteError as again:
                self.problem = again.problem
                continue
            self.problem = None
            self._publish("camera", {"state": "found"})
            return

    def _reopen(self) -> None:
        self._camera.close()
        self._camera = open_camera(self.source)
