"""Read a picture file of any kind that Pillow can open as a frame.

Pillow is imported when the first picture is read.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
from numpy.typing import NDArray

from lrtflite.errors import InputError, LrtfliteError, UnreadableFile
from lrtflite.frames.fit import fit_frame
from lrtflite.system.extras import missing

if TYPE_CHECKING:
    from PIL.Image import Image

# Maximum number of pixels in a picture; while it is decoded, each takes up to ten bytes of RAM.
MAX_PIXELS = 1 << 27
# Tag of EXIF that says how to turn a picture; 1 is upright.
ORIENTATION = 0x0112
# Maximum number of scans of a progressive JPEG, and the bytes that begin each. A usual picture has
# ten; each takes the time of a whole picture, and may have 30 bytes.
MAX_SCANS, _SCAN = 100, b"\xff\xda"
CHUNK = 1 << 18
# Formats that Pillow reads by starting another program.
REFUSED = ("EPS",)


def read_image(path: str | PathLike[str], size: int) -> NDArray[np.uint8]:
    """Read the picture `path` as a frame (size, size, 3) uint8 RGB.

    Turn it upright by its EXIF orientation, scale 16-bit grey to 8 bits, replace transparency with
    white, and use the first frame of an animation. `fit_frame` crops and resizes.
    """
    if not isinstance(path, (str, PathLike)):
        raise InputError(
            f"Expected the path of a picture, got {type(path).__name__}",
            "use fit_frame for an array",
        )
    with open_image(Path(path)) as image:
        return fit_frame(upright_rgb(image), size)


def decode_image(
    content: bytes, size: int, *, formats: Sequence[str], most_pixels: int | None = None
) -> NDArray[np.uint8]:
    """Like `read_image`, but from the bytes of a picture in one of Pillow's `formats`."""
    with _readable(io.BytesIO(content), "these bytes", formats, most_pixels) as image:
        return fit_frame(upright_rgb(image), size)


def open_image(path: Path, content: bytes | None = None) -> AbstractContextManager[Image]:
    """Open a Pillow image; turn an error while it is open into UnreadableFile.

    With `content`, the bytes of a picture that is not a file, `path` only names it in errors.
    """
    return _readable(path if content is None else io.BytesIO(content), path)


@contextmanager
def _readable(
    source: Path | io.BytesIO,
    name: Path | str,
    formats: Sequence[str] | None = None,
    most_pixels: int | None = None,
) -> Iterator[Image]:
    try:
        with _opened(source, formats) as image:
            if image.format in REFUSED:
                raise ValueError(f"{image.format} is not a format of pixels")
            check_pixels(*image.size, most=most_pixels)
            if image.info.get("progressive"):
                _check_scans(source)
            yield image
    except LrtfliteError:
        raise
    except Exception as error:  # Pillow's decoders raise errors of any kind for a damaged file
        raise unreadable("image", name, error) from error


def _opened(source: Path | io.BytesIO, formats: Sequence[str] | None) -> Image:
    """Open an image within MAX_PIXELS instead of Pillow's own limits."""
    try:
        from PIL import Image
    except ImportError:
        raise missing("PIL") from None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)
        try:
            return Image.open(source, formats=None if formats is None else tuple(formats))
        except Image.DecompressionBombError:
            raise ValueError(f"more than {MAX_PIXELS / 1e6:.0f} million pixels") from None


def _check_scans(source: Path | io.BytesIO) -> None:
    """Raise ValueError for a JPEG that would take minutes to decode."""
    found, tail = 0, b""
    with _file_of(source) as file:
        while chunk := file.read(CHUNK):
            found += (tail + chunk).count(_SCAN)
            tail = chunk[-1:]
    if found > MAX_SCANS:
        raise ValueError(f"{found} scans, more than {MAX_SCANS}")


def _file_of(source: Path | io.BytesIO) -> BinaryIO:
    return open(source, "rb") if isinstance(source, Path) else io.BytesIO(source.getvalue())


def check_pixels(width: int, height: int, *, most: int | None = None) -> None:
    """Raise ValueError for a picture with more than `most` pixels, MAX_PIXELS by default."""
    most = MAX_PIXELS if most is None else most
    if width * height > most:
        raise ValueError(f"{width} x {height} pixels, more than {most / 1e6:.0f} million in all")


def upright_rgb(image: Image) -> NDArray[np.uint8]:
    """Return the image's current frame, upright, as (H, W, 3) uint8, on a white background."""
    from PIL import Image, ImageOps

    check_pixels(*image.size)  # a later frame of an animation may be larger than the first
    image.load()
    # Avoid copies: one of a large photograph takes more RAM than a learner.
    turned = image.getexif().get(ORIENTATION, 1) != 1
    upright = ImageOps.exif_transpose(image) if turned else image
    if upright.mode.startswith("I"):
        # Pillow's own conversion would clip 16-bit grey to white.
        grey = (np.asarray(upright).astype(np.int64) >> 8).clip(0, 255).astype(np.uint8)
        return np.repeat(grey[:, :, np.newaxis], 3, axis=2)
    if upright.mode in ("RGBA", "LA", "PA") or "transparency" in upright.info:
        rgba = upright.convert("RGBA")
        white = Image.new("RGBA", rgba.size, "white")
        upright = Image.alpha_composite(white, rgba)
    return np.asarray(upright if upright.mode == "RGB" else upright.convert("RGB"))


def unreadable(kind: str, path: Path | str, error: Exception) -> UnreadableFile:
    """Return the error for a file of this `kind` that a library failed to read."""
    text = getattr(error, "strerror", None) or str(error).strip() or type(error).__name__
    reason = "out of memory" if isinstance(error, MemoryError) else text.splitlines()[0]
    if type(error).__name__ == "UnidentifiedImageError":  # its text repeats the path
        reason = "not an image"
    return UnreadableFile(
        f"Expected a readable {kind}, got {path} ({reason})", "replace or remove it", reason=reason
    )
