"""Still images, animations and videos on disk as frames of one size.

Pillow reads images and animations, PyAV videos; each is imported when the first such file is met.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from lrtflite.data.picture_ends import read_ends
from lrtflite.data.source import Frame
from lrtflite.errors import DataError, UnreadableFile
from lrtflite.extras import missing
from lrtflite.frames import fit_frame
from lrtflite.image_file import open_image, unreadable, upright_rgb

STILLS = (".jpg", ".jpeg", ".png", ".bmp")
ANIMATIONS = (".gif", ".webp")  # one frame or many
VIDEOS = (".mp4", ".mov", ".m4v", ".3gp", ".avi", ".mkv", ".webm", ".mpg", ".mpeg")
MEDIA = STILLS + ANIMATIONS + VIDEOS


def count_frames(path: Path) -> int:
    """Return how many frames a file holds; raise UnreadableFile if it cannot be read.

    Of a picture, the header and the end are looked at. Only one that does not end as it should is
    decoded: it may be cut off, or a camera has added bytes of its own.
    """
    if path.suffix.lower() in VIDEOS:
        return _count_video(path)
    try:
        ends = read_ends(path)
    except OSError as error:
        raise unreadable("image", path, error) from error
    if ends.is_whole_png:
        return 1
    with open_image(path) as image:
        animated = path.suffix.lower() in ANIMATIONS
        frames = int(getattr(image, "n_frames", 1)) if animated else 1
        for index in range(0 if ends.has_end else frames):
            image.seek(index)
            image.load()
        return frames


def _count_video(path: Path) -> int:
    with _open_video(path) as container:
        video = container.streams.video[0]
        if video.codec_context.name == "vp8":
            # VP8 has packets that are never shown, so only decoding tells.
            return sum(1 for _ in container.decode(video))
        return sum(1 for packet in container.demux(video) if packet.size and not packet.is_discard)


def frame_rate(path: Path) -> float | None:
    """Return the frames per second of a video or an animation; None if the file does not say."""
    if path.suffix.lower() in VIDEOS:
        with _open_video(path) as container:
            rate = container.streams.video[0].average_rate
            return float(rate) if rate else None
    with open_image(path) as image:
        image.load()  # WebP knows the time of a frame only once it is decoded
        duration = image.info.get("duration")
        return 1000 / duration if duration else None


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
        raise missing("av") from None
    try:
        with av.open(str(path)) as container:
            if not container.streams.video:
                raise UnreadableFile(
                    f"Expected a video in {path}, got a file without pictures", "no pictures in it"
                )
            yield container
    except av.FFmpegError as error:
        raise unreadable("video", path, error) from error
