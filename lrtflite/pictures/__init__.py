"""Pictures of classes that are kept beside a state, if the user asked for it."""

from __future__ import annotations

from lrtflite.pictures.kept import KeptPicture, KeptPictures

__all__ = ["KeptPicture", "KeptPictures"]
