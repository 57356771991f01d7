"""Thumbnails: a small picture of each class, in RAM, or from the pictures that are kept."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from lrtflite.errors import Missing
from lrtflite_serve.service.pixels import Frame, as_jpeg


class Thumbnails:
    """A JPEG of each label, now and before the last change."""

    def __init__(self) -> None:
        self._now: Mapping[str, bytes] = {}
        self._before: Mapping[str, bytes] = {}

    def version(self, label: str) -> str | None:
        """Return a text that changes with the thumbnail; None if there is none."""
        content = self._now.get(label)
        return None if content is None else hashlib.sha256(content).hexdigest()[:12]

    def content(self, label: str) -> bytes:
        if label not in self._now:
            raise Missing(f"Expected a class with a picture, got {label}", "teach it once more")
        return self._now[label]

    def set(self, label: str, frame: Frame) -> None:
        self._change({**self._now, label: as_jpeg(frame)})

    def fill(self, label: str, frame: Frame) -> None:
        """Set a thumbnail at the start, which is not a change."""
        self._now = self._before = {**self._now, label: as_jpeg(frame)}

    def rename(self, label: str, new: str | None) -> None:
        """Follow a class to its new label; None stands for a class that was forgotten."""
        now = dict(self._now)
        content = now.pop(label, None)
        if new is not None and content is not None:
            now[new] = content
        self._change(now)

    def unchanged(self) -> None:
        self._before = self._now

    def undo(self) -> None:
        self._now = self._before

    def clear(self) -> None:
        self._now = self._before = {}

    def _change(self, now: Mapping[str, bytes]) -> None:
        self._now, self._before = now, self._now
