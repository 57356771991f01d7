"""Feeding: how the patterns of a session and of the memory reach a head's `train` and `gather`."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace

from lrtflite.arguments import whole_number
from lrtflite.errors import InputError

# Greatest number of each kind: more would never end.
MOST_EPOCHS, MOST_STEPS = 100_000, 1_000_000
# Patterns that `gather` sees after the last `train`, each once.
NOTHING, SESSION, SESSION_AND_MEMORY = "nothing", "session", "session and memory"
GATHERED = (NOTHING, SESSION, SESSION_AND_MEMORY)


@dataclass(frozen=True)
class Composition:
    """Places of a mini-batch for new patterns and for replayed ones."""

    new: int
    replayed: int


@dataclass(frozen=True)
class Feeding:
    """How patterns reach a head; a value of the bundle's manifest.

    A mini-batch has `batch_size` places, at most `new_per_batch` of them for new patterns while
    anything is replayed. `train` runs for `epochs` passes over the session, and for at least
    `least_steps` mini-batches: a few pictures are few steps an epoch. With `replays`, stored
    patterns share the mini-batches. With `repeats`, a mini-batch is always full and patterns come
    again to fill it; without, each comes once an epoch, and a row of zeros in the targets is an
    empty place. `gathers` is one of GATHERED.
    """

    batch_size: int
    new_per_batch: int
    epochs: int
    least_steps: int
    replays: bool = True
    repeats: bool = True
    gathers: str = NOTHING

    def __post_init__(self) -> None:
        # numpy's numbers become Python's, which JSON can hold.
        limits = {
            "batch_size": None,
            "new_per_batch": self.batch_size,
            "epochs": MOST_EPOCHS,
            "least_steps": MOST_STEPS,
        }
        for name, most in limits.items():
            count = whole_number(name, getattr(self, name), least=1, most=most)
            object.__setattr__(self, name, count)
        if self.gathers not in GATHERED:
            raise InputError(
                f"Expected gathers as one of {', '.join(GATHERED)}, got {self.gathers!r}"
            )
        for field in fields(self):
            if field.type == "bool" and not isinstance(getattr(self, field.name), bool):
                raise InputError(
                    f"Expected {field.name} as true or false, got {getattr(self, field.name)!r}"
                )

    def with_numbers(self, **numbers: int) -> Feeding:
        """Return a copy with other `epochs` or `least_steps`."""
        return replace(self, **numbers)  # type: ignore[arg-type]

    def composition(self, *, new: int, stored: int) -> Composition:
        """Share out the places of a mini-batch between `new` patterns and `stored` ones.

        In proportion, every pattern is seen as often as any other: the paper's 300 new and 1500
        stored are 21 + 107. Given more room, a short session would teach the head that hardly
        anything but its class exists; hence the limit, too, while the memory is small. Something is
        replayed unless the memory is empty, or a mini-batch has one place only.
        """
        if not stored or not self.replays:
            return Composition(self.batch_size, 0)
        share = round(self.batch_size * new / (new + stored))
        taken = min(max(share, 1), self.new_per_batch, max(self.batch_size - 1, 1))
        return Composition(taken, self.batch_size - taken)

    def steps_per_epoch(self, *, new: int, stored: int) -> int:
        """Return how many mini-batches one pass over `new` patterns takes."""
        return math.ceil(new / self.composition(new=new, stored=stored).new)

    def steps(self, *, new: int, stored: int) -> int:
        """Return how many mini-batches a session of `new` patterns takes."""
        passes = self.steps_per_epoch(new=new, stored=stored) * self.epochs
        return max(passes, self.least_steps) if self.repeats else passes
