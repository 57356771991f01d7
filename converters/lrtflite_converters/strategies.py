"""Strategies: a head with its regulariser, its rates and its feeding, under the name a user types.

To add one, register a `Strategy` in `STRATEGIES`. This module does not import TensorFlow, because
options are checked before TensorFlow is loaded.
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
    """A head with its regulariser, rates and feeding.

    `head` and `regulariser` are names in HEADS and REGULARISERS. `trunk` is True for a strategy
    that needs layers that train below the last one, False for one that cannot have them, None for
    one that works with both.
    """

    summary: str
    head: str
    rates: Callable[[Place], dict[str, Rate]] = sgd_rates
    feeding: Callable[[Place], Feeding] = sgd_feeding
    regulariser: str = "none"
    trunk: bool | None = None
    replay_size: int = REPLAY_SIZE

    def training(self, place: Place) -> Training:
        """Return the default training at a place."""
        return Training(self.feeding(place), {**self.rates(place), **renorm_rates(place)})

    def check(self, name: str, place: Place) -> None:
        """Raise ModelError if the strategy does not fit the replay layer."""
        if self.trunk is None or self.trunk == place.trains_trunk:
            return
        layers = place.architecture.resting_layers
        where = f"at {' or '.join(layers)}" if not self.trunk else f"below {layers[0]}"
        raise ModelError(
            f"Expected the strategy {name!r} {where}, got the replay layer {place.replay_layer!r}; "
            f"choose such a layer, or leave --strategy out, which uses {default_strategy(place)!r}"
        )


STRATEGIES: Table[Strategy] = Table(
    "strategy",
    {
        "cwr": Strategy("trains the last layer alone, by CWR*", "cwr", trunk=False),
        "ar1free": Strategy(
            "trains all layers above the replay layer, the last one by CWR*", "cwr", trunk=True
        ),
        "lda": Strategy(
            "solves the last layer in closed form, from sums that no session overwrites",
            "lda",
            rates=lambda place: temperature(LDA_TEMPERATURE),
            feeding=gathering,
            trunk=False,
            replay_size=0,
        ),
        "ncm": Strategy(
            "answers with the nearest class mean, also from sums",
            "ncm",
            rates=lambda place: temperature(NCM_TEMPERATURE),
            feeding=gathering,
            trunk=False,
            replay_size=0,
        ),
    },
)


def default_strategy(place: Place) -> str:
    """Return the name of the default strategy at a place."""
    return "ar1free" if place.trains_trunk else "cwr"
