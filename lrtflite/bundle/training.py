"""The training of a session: a feeding, and the rates that signatures take by name."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches

import numpy as np
from numpy.typing import NDArray

from lrtflite.arguments import LARGEST_FLOAT32, real_number
from lrtflite.bundle.feeding import EXTRA, Feeding
from lrtflite.errors import InputError

Scalars = dict[str, NDArray[np.float32]]
# Numbers of the feeding that a session may change; a signature may take them by name, as rates.
NUMBERS = ("epochs", "least_steps", "most_steps", *EXTRA)


@dataclass(frozen=True)
class Rate:
    """A number that signatures take by its name, and its limits."""

    value: float
    least: float = 0.0
    most: float = LARGEST_FLOAT32
    meaning: str = ""

    def with_value(self, name: str, value: object) -> Rate:
        """Return the rate with another value, or raise InputError."""
        return replace(self, value=real_number(name, value, least=self.least, most=self.most))


@dataclass(frozen=True)
class Training:
    """The way one session trains: a feeding and rates. Defaults are in the bundle's manifest.

    To change a number, begin with the bundle's: `learner.training.with_options(epochs=20)`.
    """

    feeding: Feeding
    rates: Mapping[str, Rate] = field(default_factory=dict)

    @property
    def epochs(self) -> int:
        return self.feeding.epochs

    @property
    def least_steps(self) -> int:
        return self.feeding.least_steps

    @property
    def names(self) -> tuple[str, ...]:
        """Return every name that `with_options` takes."""
        return (*NUMBERS, *self.rates)

    @property
    def values(self) -> dict[str, float]:
        """Return every number by its name."""
        numbers = {name: getattr(self.feeding, name) for name in NUMBERS}
        return {**numbers, **{name: rate.value for name, rate in self.rates.items()}}

    def with_options(self, **options: float | None) -> Training:
        """Return a copy with these numbers, passed by name; None keeps the current one."""
        given = {name: value for name, value in options.items() if value is not None}
        for name in given:
            if name not in self.names:
                near = get_close_matches(name, self.names, n=1)
                advice = f"did you mean {near[0]!r}?" if near else "choose one of these"
                raise InputError(
                    f"Expected a rate of {', '.join(self.names)}, got {name!r}", advice
                )
        numbers = {name: given.pop(name) for name in NUMBERS if name in given}
        changed = {name: self.rates[name].with_value(name, value) for name, value in given.items()}
        return Training(
            self.feeding.with_numbers(**numbers),
            {**self.rates, **changed},
        )

    def fits(self, other: Training) -> bool:
        """Return whether this has every rate of `other`, and its feeding except for NUMBERS."""
        numbers = {name: getattr(other.feeding, name) for name in NUMBERS}
        return set(self.rates) >= set(other.rates) and (
            self.feeding.with_numbers(**numbers) == other.feeding
        )

    def scalars(self, inputs: Collection[str]) -> Scalars:
        """Return the inputs of a signature that are rates, each (1,) float32."""
        return {
            name: np.array([value], np.float32)
            for name, value in self.values.items()
            if name in inputs
        }
