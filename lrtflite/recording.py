"""Record a session: check frames as they arrive, and extract them in a second thread."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrtflite.bundle.manifest import Manifest
from lrtflite.errors import InputError
from lrtflite.extraction import extract_while_arriving
from lrtflite.frames.checks import check_frame, check_no_path
from lrtflite.session import Phase, Session

Frame = NDArray[np.uint8]


def record(
    frames: Iterable[Frame],
    session: Session,
    *,
    extract: Callable[[Frame], NDArray[Any]],
    manifest: Manifest,
) -> tuple[list[NDArray[Any]], list[Frame]]:
    """Return the latents of all frames, and the frames if moments adapt to them.

    `frames` is one frame (H, W, 3), several, or an iterator that is still recording.
    """
    if isinstance(frames, np.ndarray) and frames.ndim == 3:
        frames = frames[np.newaxis]
    check_no_path(frames)
    single = isinstance(frames, np.ndarray) and frames.ndim == 0
    if single or not isinstance(frames, Iterable):
        raise InputError(
            f"Expected frames or an iterator of them, got {frames!r}; give arrays (H, W, 3)"
        )
    total = len(frames) if isinstance(frames, (Sequence, np.ndarray)) else None
    kept: list[Frame] = []

    def extract_one(frame: Frame) -> NDArray[Any]:
        if manifest.adapt_moments:
            kept.append(frame)
        with session.clock(Phase.EXTRACT):
            return extract(frame)

    latents = extract_while_arriving(
        (check_frame(frame, manifest.input_size) for frame in frames),
        extract_one,
        on_frame=lambda count: session.report(Phase.EXTRACT, count, total),
    )
    return latents, kept
