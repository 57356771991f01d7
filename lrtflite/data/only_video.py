"""Divide the only video of a class by time: the first part to learn from, the last part to test.

Frames next to each other look alike, so a test right after the training frames would be one on
what was taught. A gap lies between them, which neither side has.
"""

from __future__ import annotations

from collections.abc import Sequence

from lrtflite.data.listing import first_few

# The gap, as a share of the video.
GAP = 0.1
# Least seconds of the gap where the frame rate is known.
GAP_SECONDS = 1.0
# Least frames of the gap where it is not.
GAP_FRAMES = 5


def held_out(count: int, fraction: float) -> int:
    """Return how many of `count` >= 2 are held out: rounded, and each side keeps at least one."""
    return min(max(int(count * fraction + 0.5), 1), count - 1)


def divide(frames: int, fraction: float, rate: float | None) -> tuple[int, int]:
    """Return where the training frames of a video end and where its test frames begin.

    The test is the last `fraction` of the `frames` >= 2. The gap before it is a tenth of the video
    or a second, whichever is longer, and at most half of what the test leaves. `rate` is in frames
    per second.
    """
    start = frames - held_out(frames, fraction)
    least = GAP_FRAMES if rate is None else GAP_SECONDS * rate
    gap = int(max(frames * GAP, least) + 0.5)
    return start - min(gap, start // 2), start


def only_video_note(classes: Sequence[str], fraction: float) -> str:
    """Say which classes are tested on a part of the video that taught them."""
    share = "third" if abs(fraction - 1 / 3) < 0.005 else f"{100 * fraction:.3g} %"
    if len(classes) == 1:
        which = f"{classes[0]}: one video only; its last {share}"
    else:
        which = f"{first_few(classes)}: one video each; the last {share} of each"
    return f"{which}, after a gap, is the test: expect figures to be optimistic."
