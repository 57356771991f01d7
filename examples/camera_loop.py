"""A camera that learns: it names what it sees; type a name and press Enter to teach a new thing.

    python camera_loop.py bundle --camera /dev/video0 --state state

The default camera is /dev/video0, or else a Raspberry Pi camera; `--camera` may also be picamera2,
the address of a stream, or synthetic. camera_console.py has the screen and the keyboard. Without a
terminal, the loop prints plain lines and reads commands, one per line, from its standard input or
from the FIFO `--commands`. `quit`, Ctrl-C and SIGTERM end it; the state folder keeps all finished
sessions.

Answers go on while a thing is recorded and learned. A line that is typed meanwhile waits until the
thing is learned, except `cancel`.
"""

from __future__ import annotations

import argparse
import logging
import signal
import sys
import time
from collections import deque
from contextlib import closing
from difflib import get_close_matches
from pathlib import Path

import numpy as np
from camera_console import Lines, Notes, Screen

from lrtflite import (
    Bundle,
    Camera,
    Consensus,
    Learner,
    Lesson,
    LrtfliteError,
    fit_frame,
    open_camera,
    quiet_stderr,
)

HELP = """\
NAME             look for {seconds:g} s and learn the thing in front of the camera as NAME
learn NAME       the same, also for a NAME that looks like a command
cancel           stop looking at a thing, and do not learn it
undo             take the last change back
rename OLD NEW   give a thing another name
forget NAME      unlearn a thing
help             show these lines
quit             end and keep everything learned so far"""
COMMANDS = {
    "learn": "learn NAME",
    "cancel": "cancel",
    "undo": "undo",
    "rename": "rename OLD NEW",
    "forget": "forget NAME",
    "help": "help",
    "quit": "quit",
}
ANSWERS_PER_SECOND = 10
# Similarity to a command, as difflib counts it, from which a word is taken for a mistyped one.
# Two exchanged letters of `undo` give 0.75.
SIMILAR = 0.75


class Loop:
    """Name what the camera sees, and carry out commands."""

    def __init__(
        self, learner: Learner, camera: Camera, screen: Screen, *, seconds: float, fps: float
    ) -> None:
        self._learner, self._camera, self._screen = learner, camera, screen
        self._size = learner.bundle.manifest.input_size
        self._seconds, self._fps = seconds, fps
        self._lesson: Lesson | None = None
        self._consensus = Consensus.of(learner)
        self._waiting: deque[str] = deque()

    def run(self, lines: Lines) -> None:
        """Answer and carry out commands until `quit` or the end of the video."""
        if self._screen.is_terminal:
            print("Show a thing to the camera, type its name and press Enter.")
            print(f"{HELP.format(seconds=self._seconds)}\n{self._known()}")
            self._screen.prompt()
        try:
            while (picture := self._camera.next()) is not None:
                rate = max(ANSWERS_PER_SECOND, self._fps if self._lesson else 0)
                due = time.monotonic() + 1 / rate
                frame = fit_frame(picture, self._size)
                self._answer(frame)
                self._go_on(frame)
                if not self._obey_lines(lines, due):
                    return
            if self._lesson:
                self._lesson.finish()
                self._lesson.wait()
                self._end_lesson(self._lesson)
            self._screen.say("The video has ended.")
        finally:
            if self._lesson:
                self._lesson.cancel()
                self._lesson.wait(2.0)

    def _answer(self, frame: np.ndarray) -> None:
        status = status_of(self._lesson) if self._lesson else ""
        if not self._learner.learned:
            self._screen.answer("nothing learned yet", "", status)
            return
        [top] = self._learner.predict(frame)
        settled = self._consensus.add(top)
        guesses = ", ".join(f"{guess.label} {guess.probability:.0%}" for guess in top)
        winner = None if settled.kind == "unsure" else settled.label or settled.kind
        self._screen.answer(f"{winner or settled.kind} ({guesses})", winner, status)

    def _go_on(self, frame: np.ndarray) -> None:
        """Give the lesson a frame, if it is not over."""
        if self._lesson and self._lesson.is_over:
            self._end_lesson(self._lesson)
        elif self._lesson:
            self._lesson.offer(frame)

    def _end_lesson(self, lesson: Lesson) -> None:
        """Say how a lesson ended, or raise its error if that is a bug."""
        self._lesson = None
        if lesson.report is not None:
            self._consensus.clear()
            frames, took = lesson.report.frames, lesson.report.ready_to_committed_ms
            self._screen.say(f"Learned {lesson.label} from {frames} frames in {took:.0f} ms.")
        elif lesson.is_cancelled:
            self._screen.say(f"Did not learn {lesson.label}.")
        elif isinstance(lesson.error, LrtfliteError):
            self._screen.say(f"{lesson.error}")
        elif lesson.error is not None:
            raise lesson.error

    def _obey_lines(self, lines: Lines, due: float) -> bool:
        """Carry out what is typed until `due`; return False after `quit`."""
        while True:
            while self._waiting and not self._lesson:
                line = self._waiting.popleft()
                if line == "quit":
                    return False
                try:
                    self._obey(line)
                except LrtfliteError as error:
                    self._screen.say(f"{error}")
            typed = lines.next(due - time.monotonic())
            if typed is None:
                return True
            self._screen.prompt()
            if typed == "cancel" and self._lesson:
                self._lesson.cancel()
            elif typed:
                self._waiting.append(typed)

    def _obey(self, line: str) -> None:
        self._consensus.clear()
        command, *names = line.split(" ")
        if line == "undo":
            self._learner.undo()
            self._screen.say(f"Took the last change back. {self._known()}")
        elif line == "help":
            self._screen.say(f"{HELP.format(seconds=self._seconds)}\n{self._known()}")
        elif line == "cancel":
            self._screen.say("Nothing to cancel: no thing is being learned.")
        elif command == "learn" and names:
            self._teach(" ".join(names))
        elif command == "forget" and names:
            self._learner.forget(" ".join(names))
            self._screen.say(f"Forgot {' '.join(names)}. {self._known()}")
        elif command == "rename" and len(names) > 1:
            old, new = self._split(names)
            self._learner.rename(old, new)
            self._screen.say(f"Renamed {old} to {new}.")
        elif command in COMMANDS:
            self._screen.say(f"Expected `{COMMANDS[command]}`, got {line!r}; type it again")
        elif line not in self._learner.labels and (meant := similar_command(command)):
            self._screen.say(
                f"Expected a command or a name, got {line!r}; type `{' '.join([meant, *names])}`, "
                f"or `learn {line}` to teach a thing of that name"
            )
        else:
            self._teach(line)

    def _teach(self, name: str) -> None:
        self._lesson = Lesson(self._learner, name, seconds=self._seconds, fps=self._fps)

    def _split(self, names: list[str]) -> tuple[str, str]:
        """Return the old and the new name; each may have several words."""
        for count in range(len(names) - 1, 0, -1):
            if " ".join(names[:count]) in self._learner.labels:
                return " ".join(names[:count]), " ".join(names[count:])
        return names[0], " ".join(names[1:])

    def _known(self) -> str:
        return f"It knows {', '.join(self._learner.learned) or 'nothing yet'}."


def status_of(lesson: Lesson) -> str:
    """Return what a lesson is doing, in a few words."""
    if lesson.progress is not None and lesson.progress.phase == "train":
        done, total = lesson.progress.done, lesson.progress.total
        return f"learning {lesson.label}, step {done} of {total}"
    if lesson.frames == 0:
        return ""
    elapsed = min(lesson.elapsed, lesson.seconds or lesson.elapsed)
    return f"looking at {lesson.label}, {elapsed:.0f} of {lesson.seconds:g} s"


def similar_command(word: str) -> str | None:
    """Return the command that a word looks like, if any."""
    found = get_close_matches(word.lower(), COMMANDS, n=1, cutoff=SIMILAR)
    return found[0] if found else None


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
    parser.add_argument(
        "--unknown",
        type=float,
        help="familiarity below which a thing is unknown; `lrtflite inspect` shows the bundle's",
    )
    options = parser.parse_args()

    bundle, lines = Bundle.open(options.bundle), Lines(options.commands)
    source = options.video or options.camera
    with closing(Screen()) as screen, closing(open_camera(source, speed=options.speed)) as camera:
        logging.getLogger("lrtflite").addHandler(Notes(screen))
        camera.next()  # fail before a state folder is created
        with quiet_stderr():  # the runtime prints a line about its delegate
            learner = Learner.open(bundle, options.state, unknown=options.unknown)
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
