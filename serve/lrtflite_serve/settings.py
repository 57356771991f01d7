"""The settings of a service, in one value."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from lrtflite.arguments import real_number
from lrtflite.errors import InputError
from lrtflite.options import LearnerOptions
from lrtflite_serve.mqtt.broker import Broker

LOOPBACK = "127.0.0.1"
PORT = 8765
# A lesson of the paper: frames for 20 seconds, 5 of them per second.
SECONDS, FPS = 20.0, 5.0
# Most frames of one lesson.
MAX_FRAMES = 1000


@dataclass(frozen=True)
class Settings:
    """Settings of `serve`.

    `bundle` is the path or name of a bundle, `names` the host names under which browsers may ask
    for the page, in addition to addresses. `notes` are shown on the page.
    """

    bundle: Path | str
    state: Path
    options: LearnerOptions = field(default_factory=LearnerOptions)
    host: str = LOOPBACK
    port: int = PORT
    names: tuple[str, ...] = ()
    camera: str | None = None
    seconds: float = SECONDS
    fps: float = FPS
    keep_pictures: bool = False
    tls: bool = False
    certificate: Path | None = None
    key: Path | None = None
    notes: tuple[str, ...] = ()
    mqtt: Broker | None = None

    def __post_init__(self) -> None:
        check_lesson(self.seconds, self.fps)

    def beside(self, suffix: str) -> Path:
        """Return the path of something that belongs to the state, next to its folder."""
        whole = Path(self.state).absolute()
        return whole.with_name(f"{whole.name}.{suffix}")


def check_lesson(seconds: float, fps: float) -> None:
    """Raise InputError for the settings of a lesson that cannot be."""
    real_number("seconds", seconds, least=0.1, most=600)
    real_number("fps", fps, least=0.1, most=60)
    if seconds * fps > MAX_FRAMES:
        raise InputError(
            f"Expected a lesson of at most {MAX_FRAMES:,} frames, got {seconds:g} s of {fps:g} "
            "frames per second",
            "choose fewer seconds, or fewer frames per second",
        )
