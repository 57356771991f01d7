"""Strategies: a head with its regulariser, its rates and its feeding, under the name a user types.

To add one, register a `Strategy` in `STRATEGIES`. Nothing here needs TensorFlow: what a user typed
is checked before that is loaded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lrtflite.errors import ModelError
from lrtflite.feeding import Feeding
from lrtflite.table import Table
from lrtflite.training import Rate, Training
from lrtflite_converters.defaults import (
    LDA_TEMPERATURE,
    NCM_TEMPERATURE,
    REPLAY_SIZE,
    Place,
    gathering,
    renorm_rates,
    sgd_feeding,
    sgd_rates,
    temperature,
)


@dataclass(frozen=True)
class Strategy:
    """How a bundle learns.

    `head` and `regulariser` are names in HEADS and REGULARISERS. `trunk` says whether the strategy
    needs layers that train below the last one (True), cannot have them (False), or takes both.
    """

    summary: str
    head: str
    rates: Callable[[Place], dict[str, Rate]] = sgd_rates
    feeding: Callable[[Place], Feeding] = sgd_feeding
    regulariser: str = "none"
    trunk: bool | None = None
    replay_size: int = REPLAY_SIZE

    def training(self, place: Place) -> Training:
        """Return how a session trains by default at a place."""
        return Training(self.feeding(place), {**self.rates(place), **renorm_rates(place)})

    def check(self, name: str, place: Place) -> None:
        """Raise ModelError where the strategy does not fit the replay layer."""
        if self.trunk is None or self.trunk == place.trains_trunk:
            return
        layers = place.architecture.resting_layers
        where = f"at {' or '.join(layers)}" if not self.trunk else f"below {layers[0]}"
        raise ModelError(
            f"Expected the strategy {name!r} {where}, got the replay layer {place.replay_layer!r}; "
            f"choose such a layer, or leave --strategy out ({default_strategy(place)})"
        )


STRATEGIES: Table[Strategy] = Table(
    "strategy",
    {
        "cwr": Strategy("the last layer alone, as CWR*", "cwr", trunk=False),
        "ar1free": Strategy("all above the replay layer, the last one as CWR*", "cwr", trunk=True),
        "lda": Strategy(
            "a last layer in closed form, from sums that no session can overwrite",
            "lda",
            rates=lambda place: temperature(LDA_TEMPERATURE),
            feeding=gathering,
            trunk=False,
            replay_size=0,
        ),
        "ncm": Strategy(
            "the nearest class mean, from sums as well",
            "ncm",
            rates=lambda place: temperature(NCM_TEMPERATURE),
            feeding=gathering,
            trunk=False,
            replay_size=0,
        ),
    },
)


def default_strategy(place: Place) -> str:
    """Return the name of the strategy at a place where the user chose none."""
    return "ar1free" if place.trains_trunk else "cwr"
