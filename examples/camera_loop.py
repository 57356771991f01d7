"""A camera that learns: it names what it sees; type a name and press Enter to teach a new thing.

    python camera_loop.py bundle --camera /dev/video0 --state state

The default camera is /dev/video0, or else a Raspberry Pi camera. cameras.py lists the other values
of `--camera`; camera_console.py has the screen and the keyboard. Without a terminal, the loop
prints plain lines and reads commands, one per line, from its standard input or from the FIFO
`--commands`. `quit`, Ctrl-C and SIGTERM end it; the state folder keeps all finished sessions.
"""

from __future__ import annotations

import argparse
import logging
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from camera_console import Lines, Notes, Screen
from cameras import Camera, CameraError, Picture, open_camera

from lrtflite import Bundle, Learner, LrtfliteError, Progress, fit_frame
from lrtflite.system.quiet import quiet_stderr

HELP = """\
NAME             look for {seconds:g} s and learn the thing in front of the camera as NAME
undo             take the last change back
rename OLD NEW   give a thing another name
forget NAME      unlearn a thing
help             show these lines
quit             end and keep everything learned so far"""
COMMANDS = {
    "undo": "undo",
    "rename": "rename OLD NEW",
    "forget": "forget NAME",
    "help": "help",
    "quit": "quit",
}
ANSWERS_PER_SECOND = 10


class Loop:
    """Name what the camera sees, and carry out commands."""

    def __init__(
        self, learner: Learner, camera: Camera, screen: Screen, *, seconds: float, fps: float
    ) -> None:
        self._learner, self._camera, self._screen = learner, camera, screen
        self._size = learner.bundle.manifest.input_size
        self._seconds, self._fps = seconds, fps

    def run(self, lines: Lines) -> None:
        """Answer and carry out commands until `quit` or the end of the video."""
        if self._screen.is_terminal:
            print("Show a thing to the camera, type its name and press Enter.")
            print(f"{HELP.format(seconds=self._seconds)}\n{self._known()}")
            self._screen.prompt()
        while (picture := self._camera.next()) is not None:
            due = time.monotonic() + 1 / ANSWERS_PER_SECOND
            self._answer(picture)
            while (line := lines.next(due - time.monotonic())) is not None:
                self._screen.prompt()
                if line == "quit":
                    return
                try:
                    self._obey(line)
                except CameraError:
                    raise
                except LrtfliteError as error:
                    self._screen.say(f"{error}")
        self._screen.say("The video has ended.")

    def _answer(self, picture: Picture) -> None:
        if not self._learner.learned:
            self._screen.answer("nothing learned yet", "")
            return
        [top] = self._learner.predict(fit_frame(picture, self._size))
        text = ", ".join(f"{guess.label} {guess.probability:.0%}" for guess in top)
        self._screen.answer(text, top[0].label)

    def _obey(self, line: str) -> None:
        command, *names = line.split(" ")
        if line == "undo":
            self._learner.undo()
            self._screen.say(f"Took the last change back. {self._known()}")
        elif line == "help":
            self._screen.say(f"{HELP.format(seconds=self._seconds)}\n{self._known()}")
        elif command == "forget" and names:
            self._learner.forget(" ".join(names))
            self._screen.say(f"Forgot {' '.join(names)}. {self._known()}")
        elif command == "rename" and len(names) > 1:
            old, new = self._split(names)
            self._learner.rename(old, new)
            self._screen.say(f"Renamed {old} to {new}.")
        elif command in COMMANDS:
            self._screen.say(f"Expected `{COMMANDS[command]}`, got {line!r}; type it again")
        elif line:
            self._teach(line)

    def _split(self, names: list[str]) -> tuple[str, str]:
        """Return the old and the new name; each may have several words."""
        for count in range(len(names) - 1, 0, -1):
            if " ".join(names[:count]) in self._learner.labels:
                return " ".join(names[:count]), " ".join(names[count:])
        return names[0], " ".join(names[1:])

    def _teach(self, name: str) -> None:
        def progress(at: Progress) -> None:
            if at.phase == "train":
                self._screen.show(f"learning {name}, step {at.done} of {at.total}")

        # A second thread extracts latents (the features that are learned) during recording.
        report = self._learner.learn(self._record(name), name, on_progress=progress)
        self._screen.say(
            f"Learned {name} from {report.frames} frames in {report.ready_to_committed_ms:.0f} ms."
        )

    def _record(self, name: str) -> Iterator[Picture]:
        """Yield frames for `--seconds`, `--fps` of them per second."""
        start, count = time.monotonic(), 0
        while (past := time.monotonic() - start) < self._seconds:
            if (picture := self._camera.next()) is None:
                return
            self._screen.show(f"looking at {name}, {past:.0f} of {self._seconds:g} s")
            yield fit_frame(picture, self._size)
            count += 1
            time.sleep(max(0.0, start + count / self._fps - time.monotonic()))

    def _known(self) -> str:
        return f"It knows {', '.join(self._learner.learned) or 'nothing yet'}."


def positive(text: str) -> float:
    """Return a finite number above 0, for argparse."""
    if not 0 < float(text) < float("inf"):
        raise ValueError
    return float(text)


def main() -> None:
    parser = argparse.ArgumentParser(description="A camera that learns what you show it.")
    parser.add_argument("bundle", type=Path, help="a bundle that `lrtflite convert` wrote")
    sources = parser.add_mutually_exclusive_group()
    sources.add_argument(
        "--camera", help="/dev/video0, picamera2, the URL of a stream, or synthetic (drawn videos)"
    )
    sources.add_argument("--video", help="a video file, instead of a camera")
    parser.add_argument("--speed", type=positive, default=1, help="playback speed of --video")
    parser.add_argument("--state", default="state", help="folder that keeps what is learned")
    parser.add_argument(
        "--commands",
        type=Path,
        metavar="FIFO",
        help="FIFO to read commands from; created if missing",
    )
    parser.add_argument(
        "--seconds", type=positive, default=20, help="seconds of recording per thing"
    )
    parser.add_argument("--fps", type=positive, default=5, help="recorded frames per second")
    options = parser.parse_args()

    bundle, lines = Bundle.open(options.bundle), Lines(options.commands)
    source = options.video or options.camera
    with closing(Screen()) as screen, closing(open_camera(source, speed=options.speed)) as camera:
        logging.getLogger("lrtflite").addHandler(Notes(screen))
        camera.next()  # fail before a state folder is created
        with quiet_stderr():  # the runtime prints a line about its delegate
            learner = Learner.open(bundle, options.state)
        with learner:
            loop = Loop(learner, camera, screen, seconds=options.seconds, fps=options.fps)
            loop.run(lines)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # like Ctrl-C
    try:
        main()
    except (LrtfliteError, OSError) as error:
        sys.exit(f"Error: {error}")
    except KeyboardInterrupt:
        print("Interrupted; finished sessions are kept", file=sys.stderr)
        sys.exit(130)
