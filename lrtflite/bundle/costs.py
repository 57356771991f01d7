"""Time and RAM of a bundle on the machine that converted it; a value of the manifest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lrtflite.arguments import real_number, whole_number
from lrtflite.files.compatibility import fields_of

# Frames in the session that `session_s` estimates: five seconds of video.
SESSION_FRAMES = 25


@dataclass(frozen=True)
class Costs:
    """Times, and RAM in 10^6 bytes.

    `steps` is the greatest number of steps in a session of SESSION_FRAMES new frames with a full
    memory. `session_s` is the time of a session of that many steps, from the last latent to the
    state on disk. `ram_mb` is the peak of the process with a full memory.
    """

    machine: str
    runtime: str
    threads: int
    extract_ms: float
    step_ms: float
    steps: int
    session_s: float
    ram_mb: float
    memory_mb: float

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Costs:
        """Return the costs that `asdict` wrote, or raise ValueError or InputError."""
        found = fields_of(found, cls, "measured")
        for name in ("machine", "runtime"):
            if not isinstance(found[name], str):
                raise ValueError(f"{name} is {found[name]!r}")
        for name in ("threads", "steps"):
            whole_number(name, found[name])
        for name in ("extract_ms", "step_ms", "session_s", "ram_mb", "memory_mb"):
            real_number(name, found[name])
        return cls(**found)

    def __str__(self) -> str:
        many = "threads" if self.threads > 1 else "thread"
        # A head that is solved from sums takes no steps.
        step = f"{self.step_ms:.1f} ms per training step, " if self.steps else ""
        steps = f" (up to {self.steps} steps)" if self.steps else ""
        return (
            f"{self.extract_ms:.1f} ms per frame, {step}"
            f"{self.session_s:.2g} s per session of {SESSION_FRAMES} frames{steps}, "
            f"{self.ram_mb:.0f} MB RAM, {self.memory_mb:.1f} MB of replay memory on disk "
            f"({self.runtime}, {self.threads} {many}, {self.machine})"
        )
