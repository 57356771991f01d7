"""Compare the pictures of a data set with the frames that a model takes."""

from __future__ import annotations

from statistics import median_low

from lrtflite.data.media import shorter_side
from lrtflite.data.source import FrameSource
from lrtflite.evenly import evenly

# Number of files whose headers are read, spread evenly over the data set.
MAX_FILES = 60
# Ratio of sides above which a picture is much larger than a frame. Photographs of 1.75 times the
# frames' side were recognised better in larger frames (docs/studies/frame-sizes.md).
MUCH_LARGER = 1.5


def lost_detail_note(source: FrameSource) -> str | None:
    """Return a remark if the pictures are much larger than the frames; else None."""
    clips = (*source.train_clips(), *source.test_clips())
    files = list(dict.fromkeys(clip.path for clip in clips if clip.path is not None))
    if not files:
        return None
    looked_at = [files[index] for index in evenly(len(files), MAX_FILES)]
    side = median_low(map(shorter_side, looked_at))
    if side < MUCH_LARGER * source.size:
        return None
    return (
        f"the shorter side of the pictures has {side:,} pixels (median), that of the frames "
        f"{source.size}: small details are lost. Let things fill the picture, or convert with a "
        "larger --input-size (docs/studies/frame-sizes.md)."
    )
