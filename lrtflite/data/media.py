"""Read still images, animations and videos on disk as frames of one size.

Pillow reads images and animations, PyAV reads videos. Each is imported when the first such file is
read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from lrtflite.data.picture_ends import ends_of, read_ends
from lrtflite.data.source import Frame
from lrtflite.errors import DataError, LrtfliteError, UnreadableFile
from lrtflite.frames.fit import fit_frame
from lrtflite.frames.image_file import check_pixels, open_image, unreadable, upright_rgb
from lrtflite.system.extras import missing

STILLS = (".jpg", ".jpeg", ".png", ".bmp")
ANIMATIONS = (".gif", ".webp")  # one frame or many
VIDEOS = (".mp4", ".mov", ".m4v", ".3gp", ".avi", ".mkv", ".webm", ".mpg", ".mpeg")
MEDIA = STILLS + ANIMATIONS + VIDEOS


def count_frames(path: Path) -> int:
    """Return the number of frames in a file; raise UnreadableFile if it cannot be read.

    A picture's header and end are checked. A picture with an unexpected end is decoded as well: it
    may be truncated, or its camera may have appended bytes.
    """
    if path.suffix.lower() in VIDEOS:
        return _count_video(path)
    return _count_pictures(path, None)


def count_in_ram(path: Path, content: bytes) -> int:
    """Like `count_frames`, for the content of a picture; `path` names it and gives its kind."""
    return _count_pictures(path, content)


def _count_pictures(path: Path, content: bytes | None) -> int:
    try:
        ends = read_ends(path) if content is None else ends_of(content)
        if ends.whole_png is not None:
            check_pixels(*ends.whole_png)
            return 1
    except (OSError, ValueError) as error:
        raise unreadable("image", path, error) from error
    with open_image(path, content) as image:
        animated = path.suffix.lower() in ANIMATIONS
        frames = int(getattr(image, "n_frames", 1)) if animated else 1
        for index in range(0 if ends.has_end else frames):
            image.seek(index)
            check_pixels(*image.size)
            image.load()
        return frames


def _count_video(path: Path) -> int:
    with _open_video(path) as container:
        video = container.streams.video[0]
        if video.codec_context.name == "vp8":
            # Some VP8 packets are never shown, so the frames must be decoded to count them.
            return sum(1 for _ in container.decode(video))
        return sum(1 for packet in container.demux(video) if packet.size and not packet.is_discard)


def frames_per_second(path: Path) -> float | None:
    """Return the frame rate of a video or an animation; None if the file lacks it."""
    if path.suffix.lower() in VIDEOS:
        with _open_video(path) as container:
            rate = container.streams.video[0].average_rate
            return float(rate) if rate else None
    with open_image(path) as image:
        image.load()  # Pillow knows the duration of a WebP frame only after decoding
        duration = image.info.get("duration")
        return 1000 / duration if duration else None


def shorter_side(path: Path) -> int:
    """Return the shorter side of a file's frames in pixels, from its header."""
    if path.suffix.lower() in VIDEOS:
        with _open_video(path) as container:
            video = container.streams.video[0]
            return int(min(video.width, video.height))
    with open_image(path) as image:
        return min(image.size)


def read_frames(path: Path, indices: Sequence[int], size: int) -> Iterator[Frame]:
    """Yield the frames of a file at ascending `indices`, upright, (size, size, 3) uint8 RGB."""
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
            # A phone held upright stores a rotation, counter-clockwise in degrees.
            upright = np.rot90(frame.to_ndarray(format="rgb24"), round(frame.rotation / 90))
            yield fit_frame(upright, size)
            following = next(wanted, None)
            if following is None:
                return
            target = following
    raise DataError(
        f"Expected more than {target} frames in {path}, got {count}",
        "the video is truncated: encode it again or remove it",
    )


@contextmanager
def _open_video(path: Path) -> Iterator[Any]:
    """Open a PyAV container with a video stream; raise UnreadableFile as `open_image` does."""
    try:
        import av
    except ImportError:
        raise missing("av") from None
    try:
        with av.open(str(path)) as container:
            if not container.streams.video:
                raise UnreadableFile(
                    f"Expected a video in {path}, got a file without a video stream",
                    "remove it",
                    reason="no video stream",
                )
            stream = container.streams.video[0]
            check_pixels(stream.width, stream.height)
            yield container
    except LrtfliteError:
        raise
    except Exception as error:  # mostly av.FFmpegError, but a damaged file raises others as well
        raise unreadable("video", path, error) from error
