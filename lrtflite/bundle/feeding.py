"""Feeding: the way patterns from a session and from the memory reach `train` and `gather`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

from lrtflite.arguments import LARGEST_FLOAT32, real_number, whole_number
from lrtflite.errors import InputError

# Maximum number of epochs and of steps; a session with more would never end.
MAX_EPOCHS, MAX_STEPS = 100_000, 1_000_000
# Choices of the patterns that `gather` sees after the last `train`, each once.
NOTHING, SESSION, SESSION_AND_MEMORY = "nothing", "session", "session and memory"
GATHERED = (NOTHING, SESSION, SESSION_AND_MEMORY)
# Numbers of extra passes; a bundle whose sessions have a fixed number of steps lacks both.
EXTRA = ("extra_steps", "enough_loss")


@dataclass(frozen=True)
class Composition:
    """Number of places in a mini-batch for new patterns and for replayed ones."""

    new: int
    replayed: int


@dataclass(frozen=True)
class Feeding:
    """The way patterns reach a head; a value of the bundle's manifest.

    A mini-batch has `batch_size` places, at most `new_per_batch` of them for new patterns while
    anything is replayed. `train` runs for `epochs` passes over the session, and for at least
    `least_steps` mini-batches, because a few pictures make few steps per epoch. It never runs for
    more than `most_steps`, even if some patterns of the session are left out then. With `replays`,
    mini-batches contain stored patterns too. With `repeats`, patterns are repeated until every
    mini-batch is full. Without it, each pattern comes once per epoch, and a row of zeros in the
    targets is an empty place. `gathers` is one of GATHERED.

    After these steps, a session takes up to `extra_steps` more, in whole passes, while the mean
    loss of its last pass is not below `enough_loss`.
    """

    batch_size: int
    new_per_batch: int
    epochs: int
    least_steps: int
    replays: bool = True
    repeats: bool = True
    gathers: str = NOTHING
    most_steps: int = MAX_STEPS
    extra_steps: int = 0
    enough_loss: float = 0.0

    def __post_init__(self) -> None:
        # Convert numpy numbers to Python ones, which JSON can hold.
        limits = {
            "batch_size": None,
            "new_per_batch": self.batch_size,
            "epochs": MAX_EPOCHS,
            "least_steps": MAX_STEPS,
            "most_steps": MAX_STEPS,
        }
        for name, most in limits.items():
            count = whole_number(name, getattr(self, name), least=1, most=most)
            object.__setattr__(self, name, count)
        extra = whole_number("extra_steps", self.extra_steps, least=0, most=MAX_STEPS)
        object.__setattr__(self, "extra_steps", extra)
        loss = real_number("enough_loss", self.enough_loss, least=0.0, most=LARGEST_FLOAT32)
        object.__setattr__(self, "enough_loss", loss)
        if self.least_steps > self.most_steps:
            raise InputError(
                f"Expected least_steps of at most most_steps, got {self.least_steps} and "
                f"{self.most_steps}",
                "change both",
            )
        if self.gathers not in GATHERED:
            raise InputError(
                f"Expected gathers as one of {', '.join(GATHERED)}, got {self.gathers!r}",
                "choose one of these",
            )
        for field in fields(self):
            if field.type == "bool" and not isinstance(getattr(self, field.name), bool):
                raise InputError(
                    f"Expected {field.name} as true or false, got {getattr(self, field.name)!r}",
                    "give one of the two",
                )

    def with_numbers(self, **numbers: float) -> Feeding:
        """Return a copy with these numbers of `Training.names`.

        A caller who chooses `epochs` gets that many passes, and no extra steps unless a number of
        EXTRA is given too.
        """
        if "epochs" in numbers and not set(EXTRA).intersection(numbers):
            numbers = {**numbers, "extra_steps": 0}
        return replace(self, **numbers)  # type: ignore[arg-type]

    def composition(self, *, new: int, stored: int) -> Composition:
        """Divide the places of a mini-batch between `new` patterns and `stored` ones.

        The division is proportional, so that every pattern is seen equally often: the paper's 300
        new and 1500 stored patterns get 21 + 107 places. With more places, a short session would
        teach the head that hardly any class but its own exists. `new_per_batch` prevents the same
        while the memory is small. At least one pattern is replayed unless the memory is empty or a
        mini-batch has a single place.
        """
        if not stored or not self.replays:
            return Composition(self.batch_size, 0)
        share = round(self.batch_size * new / (new + stored))
        taken = min(max(share, 1), self.new_per_batch, max(self.batch_size - 1, 1))
        return Composition(taken, self.batch_size - taken)

    def steps_per_epoch(self, *, new: int, stored: int) -> int:
        """Return the number of mini-batches in one pass over `new` patterns."""
        return math.ceil(new / self.composition(new=new, stored=stored).new)

    def steps(self, *, new: int, stored: int) -> int:
        """Return the number of mini-batches in a session of `new` patterns, without extra steps."""
        passes = self.steps_per_epoch(new=new, stored=stored) * self.epochs
        wanted = max(passes, self.least_steps) if self.repeats else passes
        return min(wanted, self.most_steps)

    def longest(self, *, new: int, stored: int) -> int:
        """Return the greatest number of mini-batches in a session: `steps` and extra passes."""
        steps = self.steps(new=new, stored=stored)
        each = self.steps_per_epoch(new=new, stored=stored)
        return steps + min(self.extra_steps, self.most_steps - steps) // each * each

    def goes_on(self, losses: Sequence[float], *, new: int, stored: int) -> bool:
        """Return whether a session takes an extra pass after steps with these `losses`.

        Ask after `steps` mini-batches, and again after each extra pass. The session ends if the
        mean loss of the last `steps_per_epoch` mini-batches (of all, if they are fewer) is below
        `enough_loss`, or if another pass would exceed `longest`.
        """
        each = self.steps_per_epoch(new=new, stored=stored)
        if len(losses) + each > self.longest(new=new, stored=stored):
            return False
        last = [float(loss) for loss in losses[-each:]]
        return sum(last) / len(last) >= self.enough_loss
