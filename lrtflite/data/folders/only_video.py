"""Divide the only video of a class by time: train on its first part, test on its last part.

Neighbouring frames look almost the same, so test frames right after the training frames would
measure memory. Neither part uses the gap between them.
"""

from __future__ import annotations

from collections.abc import Sequence

from lrtflite.data.listing import first_few

# Share of the video in the gap.
GAP = 0.1
# Minimum length of the gap in seconds, if the frame rate is known.
GAP_SECONDS = 1.0
# Minimum length of the gap in frames, if the frame rate is unknown.
GAP_FRAMES = 5


def held_out(count: int, fraction: float) -> int:
    """Return the number of files or frames to hold out of `count` >= 2; both sides keep some."""
    return min(max(int(count * fraction + 0.5), 1), count - 1)


def divide(frames: int, fraction: float, fps: float | None) -> tuple[int, int]:
    """Return the end of a video's training frames and the start of its test frames.

    The test is the last `fraction` of the `frames` >= 2. The gap before it is a tenth of the video
    or a second, whichever is longer, and at most half of the frames before the test. `fps` is the
    frame rate, None if unknown.
    """
    start = frames - held_out(frames, fraction)
    least = GAP_FRAMES if fps is None else GAP_SECONDS * fps
    gap = int(max(frames * GAP, least) + 0.5)
    return start - min(gap, start // 2), start


def only_video_note(classes: Sequence[str], fraction: float) -> str:
    """Return the remark on classes whose test frames come from their training video."""
    share = "third" if abs(fraction - 1 / 3) < 0.005 else f"{100 * fraction:.3g} %"
    if len(classes) == 1:
        which = f"{classes[0]}: one video only; its last {share}"
    else:
        which = f"{first_few(classes)}: one video each; the last {share} of each"
    return f"{which}, after a gap, is the test: expect figures to be optimistic."
