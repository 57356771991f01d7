"""A camera that learns: it says what it sees; type a name and press Enter to teach it that.

    python camera_loop.py bundle --camera /dev/video0 --state state

`--camera` is a V4L2 device, a video file or a stream's URL, read by PyAV or else by OpenCV, or
`synthetic`: drawn videos that need no hardware. Ctrl-D ends it; what it learned stays in the state.
"""

from __future__ import annotations

import argparse
import select
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray

from lrtflite import Learner, LrtfliteError, fit_frame

Frames = Iterator[NDArray[np.uint8]]


def camera(source: str) -> Frames:
    """Frames (H, W, 3) uint8 RGB, as fast as they come."""
    if source == "synthetic":
        from lrtflite.data import open_source

        for clip in open_source("synthetic").train_clips():
            yield from clip.read()
    elif find_spec("av"):
        import av

        with av.open(source, format="v4l2" if source.startswith("/dev/") else None) as container:
            for image in container.decode(video=0):
                yield image.to_ndarray(format="rgb24")
    elif not find_spec("cv2"):
        raise LrtfliteError("A camera needs PyAV; run: pip install 'lrtflite[video]'")
    else:
        import cv2

        capture = cv2.VideoCapture(source)
        while (read := capture.read())[0]:
            yield read[1][:, :, ::-1]  # OpenCV gives BGR


def record(frames: Frames, *, seconds: float, fps: float) -> Frames:
    """Some seconds of the camera at a lower rate; the frames in between are dropped."""
    start, count = time.monotonic(), 0
    while count < seconds * fps and (frame := next(frames, None)) is not None:
        if time.monotonic() - start >= count / fps:
            count += 1
            say(f"recording, {count / fps:.0f} s")
            yield frame


def say(text: str) -> None:
    print(f"\r\033[K{text}", end="", flush=True)  # over the line before


def main() -> None:
    parser = argparse.ArgumentParser(description="A camera that learns what you show it.")
    parser.add_argument("bundle", help="what `lrtflite convert` made")
    parser.add_argument("--camera", default="/dev/video0")
    parser.add_argument("--state", default="state", help="where to keep what is learned")
    parser.add_argument("--seconds", type=float, default=20, help="how long to look at a thing")
    parser.add_argument("--fps", type=float, default=5, help="frames to learn from per second")
    options = parser.parse_args()

    with Learner.open(options.bundle, options.state) as learner:
        size = learner.bundle.manifest.input_size
        frames = (fit_frame(image, size) for image in camera(options.camera))
        for frame in frames:
            [top] = learner.predict(frame) if learner.learned else [[]]
            say(", ".join(f"{p.label} {p.probability:.0%}" for p in top) or "nothing learned yet")
            if not select.select([sys.stdin], [], [], 0)[0]:
                continue
            if not (line := sys.stdin.readline()):
                break
            if name := line.strip():
                # Latents are extracted in a second thread, while this one still records.
                video = record(frames, seconds=options.seconds, fps=options.fps)
                done = learner.learn(video, name)
                say(f"learned {name}, {done.frames} frames, {done.ready_to_committed_ms:.0f} ms\n")
    print()


if __name__ == "__main__":
    try:
        main()
    except (LrtfliteError, OSError) as error:
        sys.exit(f"\nError: {error}")
