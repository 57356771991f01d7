"""Films of drawn objects, as the fake camera of Chromium plays them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from lrtflite.data.choice import ClassChoice
from lrtflite.data.synthetic import draw_world
from lrtflite.data.synthetic.motion import Pose, draw_motion
from lrtflite.data.synthetic.painter import draw_hand, paint_frame

# Frames of a film; Chromium plays it in a loop.
FRAMES = 30
FPS = 10
SIDE = 360
# A camera's shape: the drawn square is its centre.
WIDTH, HEIGHT = 480, SIDE
# Thing of a clip that shows the place alone, and where its object is: out of the picture.
NOTHING, AWAY = "nothing", 9.0


def draw_clip(thing: str, scene: int) -> list[NDArray[np.uint8]]:
    """Return the frames of a thing, or of nothing, in one of the eight training scenes."""
    if thing == NOTHING:
        return draw_place(scene)
    world = draw_world("synthetic", size=SIDE, frames=FRAMES, choice=ClassChoice.parse(thing))
    return list(world.train_clips()[scene].read())


def draw_things(folder: Path) -> None:
    """Write a folder of pictures for each of two things."""
    for thing, label in (("cup-1", "cup"), ("phone-2", "phone")):
        (folder / label).mkdir()
        for number, frame in enumerate(draw_clip(thing, 0)[::5]):
            Image.fromarray(frame).save(folder / label / f"{number}.jpg")


def draw_place(scene: int) -> list[NDArray[np.uint8]]:
    """Return the frames of a training scene without a thing."""
    world = draw_world("synthetic", size=SIDE, frames=FRAMES, choice=ClassChoice.parse("cup-1"))
    number = int(world.train_clips()[scene].name.split("/")[0][1:])
    place, rng = world.scene(number), world.rng("nothing", number)
    motion = draw_motion(rng, shake=place.shake)
    return [
        paint_frame(
            thing=world.object(0),
            scene=place,
            pose=away(motion.at(frame / FPS)),
            hand=draw_hand(),
            lean=0.0,
            grain=rng.standard_normal((3, SIDE, SIDE), np.float32),
            size=SIDE,
        )
        for frame in range(FRAMES)
    ]


def away(pose: Pose) -> Pose:
    """Return a pose whose object is out of the picture."""
    moved = {"x": AWAY, "y": AWAY}
    return Pose(*(moved.get(name, value) for name, value in zip(Pose.__annotations__, pose)))


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
