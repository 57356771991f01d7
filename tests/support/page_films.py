"""Films of drawn objects, as the fake camera of Chromium plays them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from lrtflite.data.choice import ClassChoice
from lrtflite.data.synthetic import draw_world

# Frames of a film; Chromium plays it in a loop.
FRAMES = 30
FPS = 10
SIDE = 360
# A camera's shape: the drawn square is its centre.
WIDTH, HEIGHT = 480, SIDE


def draw_clip(thing: str, scene: int) -> list[NDArray[np.uint8]]:
    """Return the frames of a thing in one of the eight training scenes."""
    world = draw_world("synthetic", size=SIDE, frames=FRAMES, choice=ClassChoice.parse(thing))
    return list(world.train_clips()[scene].read())


def draw_things(folder: Path) -> None:
    """Write a folder of pictures for each of two things."""
    for thing, label in (("cup-1", "cup"), ("phone-2", "phone")):
        (folder / label).mkdir()
        for number, frame in enumerate(draw_clip(thing, 0)[::5]):
            Image.fromarray(frame).save(folder / label / f"{number}.jpg")


def write_film(path: Path, frames: list[NDArray[np.uint8]]) -> Path:
    """Write frames (SIDE, SIDE, 3) as Motion JPEG, with something blurred at both sides."""
    sides = f"[a]scale={WIDTH}:{HEIGHT},boxblur=24[sides]"
    pad = f"split[a][b];{sides};[sides][b]overlay=(W-w)/2:0,format=yuvj420p"
    out = ["-vf", pad, "-c:v", "mjpeg", "-q:v", "3", "-f", "mjpeg"]
    words = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{SIDE}x{SIDE}", "-framerate", str(FPS)]
    subprocess.run(
        ["ffmpeg", "-loglevel", "error", "-y", *words, "-i", "-", *out, str(path)],
        input=b"".join(frame.tobytes() for frame in frames),
        check=True,
    )
    return path
