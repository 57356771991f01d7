"""The findings of a diagnosis as values; `diagnose --json` prints `Findings.to_json`."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

# Kinds of actions, the most urgent first.
REMOVE, SEPARATE, ADD, VARY, CONTRAST, TEACH, THIN_OUT, REPLACE = (
    "remove",
    "separate",
    "add",
    "vary",
    "contrast",
    "teach",
    "thin out",
    "replace",
)
KINDS = (REMOVE, SEPARATE, ADD, VARY, CONTRAST, TEACH, THIN_OUT, REPLACE)
# Flaws of a picture besides those of `lrtflite.frames.hints`.
UNREADABLE = "unreadable"


@dataclass(frozen=True)
class ClassFacts:
    """A class: patterns taught in all sessions, latents stored, pictures that were looked at."""

    label: str
    slot: int
    learned: bool
    taught: int
    stored: int
    pictures: int


@dataclass(frozen=True)
class Confused:
    """Frames of a class that are answered as another one, out of `of`.

    `pictures` names them; it is empty for stored latents, of which no picture exists.
    """

    label: str
    answer: str
    frames: int
    of: int
    pictures: tuple[str, ...] = ()


@dataclass(frozen=True)
class Mislabelled:
    """Frames of a class that look like another one and unlike their own, out of `of`."""

    label: str
    looks_like: str
    frames: int
    of: int
    pictures: tuple[str, ...] = ()


@dataclass(frozen=True)
class Repeat:
    """A picture that is almost identical to an earlier one, of the same class or of another."""

    label: str
    picture: str
    first_label: str
    first: str


@dataclass(frozen=True)
class Flawed:
    """Pictures of a class that are blurred, dark or unreadable."""

    label: str
    flaw: str
    pictures: tuple[str, ...]


@dataclass(frozen=True)
class Thin:
    """A class with few pictures, or with few `different` ones among them."""

    label: str
    pictures: int
    different: int


@dataclass(frozen=True)
class Action:
    """One thing to do, as a line of text; `pictures` are those that it is about.

    `summary` is the text without the names of pictures, for a page that shows them.
    """

    kind: str
    label: str
    text: str
    pictures: tuple[str, ...] = ()
    summary: str = ""


@dataclass(frozen=True)
class Findings:
    """The result of a diagnosis.

    `looked_at` says in words what was looked at, `actions` what to do, the most urgent first.
    `notes` say what could not be seen.
    """

    looked_at: str
    classes: tuple[ClassFacts, ...]
    confused: tuple[Confused, ...] = ()
    mislabelled: tuple[Mislabelled, ...] = ()
    repeats: tuple[Repeat, ...] = ()
    flawed: tuple[Flawed, ...] = ()
    thin: tuple[Thin, ...] = ()
    actions: tuple[Action, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def lines(self) -> tuple[str, ...]:
        """Return one line for each action; none if there is nothing to improve."""
        return tuple(action.text for action in self.actions)

    def to_json(self) -> str:
        """Return the text that `diagnose --json` prints."""
        return json.dumps(asdict(self), indent=2, allow_nan=False) + "\n"
