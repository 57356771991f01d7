"""Frames from the bytes of a request, and pictures for a browser."""

from __future__ import annotations

import io
import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrtflite.errors import InputError, TooLarge
from lrtflite.frames.image_file import decode_image

Frame = NDArray[np.uint8]
RAW = "application/octet-stream"
# Types of pictures that a client may send, and the formats of Pillow that may read them.
PICTURES = {"image/jpeg": "JPEG", "image/png": "PNG", "image/webp": "WEBP", "image/bmp": "BMP"}
# Most bytes of an encoded picture, and most of its pixels: decoding takes up to ten bytes of each.
MAX_BYTES, MAX_PIXELS = 8_000_000, 1 << 24
# Longest side of the pictures of the device's camera that a page shows.
SHOWN_SIDE = 640
QUALITY = 85

# Large pictures are decoded one at a time, so that ten clients do not take the RAM of ten.
_decoding = threading.Lock()


def frame_of(kind: str, content: bytes, size: int) -> Frame:
    """Return the frame in the body of a request, (size, size, 3) uint8."""
    if kind != RAW:
        if len(content) > MAX_BYTES:
            raise TooLarge(
                f"Expected a picture of at most {MAX_BYTES:,} bytes, got {len(content):,}",
                "send a smaller one",
            )
        with _decoding:
            return decode_image(content, size, formats=(PICTURES[kind],), most_pixels=MAX_PIXELS)
    if len(content) != size * size * 3:
        raise InputError(
            f"Expected {size * size * 3:,} bytes, {size} x {size} pixels of RGB, got "
            f"{len(content):,}",
            "fit the picture first, or send it as image/jpeg or image/png",
        )
    return np.frombuffer(content, np.uint8).reshape(size, size, 3)


def most_bytes(kind: str, size: int) -> int:
    """Return the most bytes that a frame of this kind of body may have."""
    return size * size * 3 if kind == RAW else MAX_BYTES


def as_jpeg(frame: Frame) -> bytes:
    return _encoded(frame, "JPEG", quality=QUALITY)


def as_png(frame: Frame) -> bytes:
    """Return a PNG, from which the same frame is read again."""
    return _encoded(frame, "PNG", compress_level=1)


def frame_of_picture(content: bytes, size: int) -> Frame:
    """Return the frame in a kept picture; a PNG of a frame gives the same frame."""
    return decode_image(content, size, formats=("PNG", "JPEG"), most_pixels=MAX_PIXELS)


def shown_picture(picture: Frame) -> Frame:
    """Return a picture without the rows and columns that a page has no room for."""
    step = -(-max(picture.shape[:2]) // SHOWN_SIDE)
    return np.ascontiguousarray(picture[::step, ::step])


def _encoded(frame: Frame, kind: str, **options: Any) -> bytes:
    from PIL import Image

    out = io.BytesIO()
    Image.fromarray(frame).save(out, kind, **options)
    return out.getvalue()
