"""Still images, animations and videos on disk as frames of one size.

Pillow reads images and animations, PyAV videos; each is imported when the first such file is met.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from lrtflite.data.source import Frame
from lrtflite.errors import DataError, MissingExtra
from lrtflite.frames import fit_frame
from lrtflite.image_file import open_image, unreadable, upright_rgb

STILLS = (".jpg", ".jpeg", ".png", ".bmp")
ANIMATIONS = (".gif", ".webp")  # one frame or many
VIDEOS = (".mp4", ".mov", ".m4v", ".3gp", ".avi", ".mkv", ".webm", ".mpg", ".mpeg")
MEDIA = STILLS + ANIMATIONS + VIDEOS


def count_frames(path: Path) -> int:
    """How many frames a file holds; a still is one and is not opened."""
    suffix = path.suffix.lower()
    if suffix in STILLS:
        return 1
    if suffix in ANIMATIONS:
        with open_image(path) as image:
            return int(getattr(image, "n_frames", 1))
    with _open_video(path) as container:
        video = container.streams.video[0]
        if video.codec_context.name == "vp8":
            # VP8 has packets that are never shown, so only decoding tells.
            return sum(1 for _ in container.decode(video))
        return sum(1 for packet in container.demux(video) if packet.size and not packet.is_discard)


def read_frames(path: Path, indices: Sequence[int], size: int) -> Iterator[Frame]:
    """The frames of a file at ascending `indices`, upright, (size, size, 3) uint8 RGB each."""
    if not len(indices):
        return
    if path.suffix.lower() not in VIDEOS:
        with open_image(path) as image:
            for index in indices:
                if index:
                    image.seek(index)
                yield fit_frame(upright_rgb(image), size)
        return
    wanted = iter(indices)
    target = next(wanted)
    count = 0
    with _open_video(path) as container:
        for count, frame in enumerate(container.decode(video=0), start=1):
            if count <= target:
                continue
            # The display matrix of a phone held upright; its angle is counter-clockwise.
            upright = np.rot90(frame.to_ndarray(format="rgb24"), round(frame.rotation / 90))
            yield fit_frame(upright, size)
            following = next(wanted, None)
            if following is None:
                return
            target = following
    raise DataError(
        f"Expected more than {target} frames in {path}, got {count}; "
        "the video is cut short: encode it again or remove it"
    )


@contextmanager
def _open_video(path: Path) -> Iterator[Any]:
    """A PyAV container with a video stream; errors as with `open_image`."""
    try:
        import av
    except ImportError:
        raise MissingExtra("PyAV", "video") from None
    try:
        with av.open(str(path)) as container:
            if not container.streams.video:
                raise DataError(f"Expected a video in {path}, got a file without pictures")
            yield container
    except av.FFmpegError as error:
        raise unreadable("video", path, error) from error
