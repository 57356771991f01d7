"""The camera loop with a video file and with a Raspberry Pi camera."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

import av
import numpy as np

from camera_process import QUICK, Start, labels, wait_for
from striped_pictures import picture

# A camera that shows bricks until a file named "unplugged" exists.
FAKE_PICAMERA2 = """
import numpy as np, os, time
class Picamera2:
    @staticmethod
    def global_camera_info(): return [{"Model": "imx708", "Num": 0}]
    def __enter__(self): return self
    def __exit__(self, *_): print("closed", flush=True)
    def create_video_configuration(self, main): return main
    def configure(self, main): self.main = main
    def start(self): assert self.main["size"] == (640, 480)
    def capture_array(self):
        time.sleep(0.02)
        if os.path.exists("unplugged"): raise RuntimeError("Camera frontend has timed out!")
        return np.load("bricks.npy")
"""


def test_videos_are_learned_and_told_apart(start: Start, tmp_path: Path) -> None:
    for kind in range(2):
        with av.open(str(tmp_path / f"{kind}.mp4"), "w") as container:
            stream = container.add_stream("mpeg4", rate=10)
            stream.height, stream.width = picture(kind, 0).shape[:2]
            for k in range(30):
                frame = av.VideoFrame.from_ndarray(picture(kind, k), format="rgb24")
                container.mux(stream.encode(frame))
            container.mux(stream.encode())

    for kind, name in enumerate(("bricks", "tiles")):
        out, err = start("--video", f"{kind}.mp4", *QUICK).communicate(f"{name}\nquit\n")
        assert err == ""
        [count] = re.findall(rf"^Learned {name} from (\d+) frames", out, re.M)
        assert 1 <= int(count) <= 5, "0.4 s of 10 frames a second"
    # The answer settles after a few frames.
    out, _ = start("--video", "1.mp4").communicate("")
    assert re.fullmatch(r"tiles \(tiles \d+%, bricks \d+%\)\nThe video has ended\.\n", out)

    # A recording longer than the video ends with the video.
    begun = time.monotonic()
    process = start("--video", "0.mp4", "--speed", "1.5", "--seconds", "60", "--fps", "100")
    out, err = process.communicate("bricks\n")
    assert time.monotonic() - begun > 2.9 / 1.5, "a video plays at its own speed"
    assert (process.returncode, err) == (0, "")
    first, learned, last = out.splitlines()
    assert re.fullmatch(r"bricks \(bricks \d+%, tiles \d+%\)", first)
    assert re.match(r"Learned bricks from \d+ frames", learned)
    assert last == "The video has ended."


def test_a_broken_video_is_one_line(start: Start, tmp_path: Path) -> None:
    (tmp_path / "broken.mp4").write_bytes(b"not a video")
    process = start("--video", "broken.mp4")
    _, err = process.communicate()
    assert process.returncode == 1
    assert re.fullmatch(
        r"Error: Expected a readable video or camera, got broken\.mp4 \(Invalid data[^\n]*\); "
        r"check the file or the camera\n",
        err,
    )
    assert not (tmp_path / "state").exists()


def test_a_raspberry_pi_camera_until_it_is_unplugged(start: Start, tmp_path: Path) -> None:
    np.save(tmp_path / "bricks.npy", picture(0, 0))
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "picamera2.py").write_text(FAKE_PICAMERA2)
    path = os.pathsep.join([str(tmp_path / "site"), os.environ.get("PYTHONPATH", "")])
    process = start("--camera", "picamera2", *QUICK, env={**os.environ, "PYTHONPATH": path})
    assert process.stdin is not None
    process.stdin.write("bricks\n")
    process.stdin.flush()
    wait_for(process, "Learned bricks from ")
    wait_for(process, "bricks 100%")
    (tmp_path / "unplugged").touch()
    out, err = process.communicate()
    assert process.returncode == 1
    assert err == (
        "Error: Expected pictures of the Raspberry Pi camera, got an error "
        "(Camera frontend has timed out!); check its cable\n"
    )
    assert out == "closed\n"
    assert labels(tmp_path / "state") == ["bricks"]
