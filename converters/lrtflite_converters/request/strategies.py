"""Strategies: a head with its regulariser, its rates and its feeding, under the name a user types.

To add one, register a `Strategy` in `STRATEGIES`. This module does not import TensorFlow, because
options are checked before TensorFlow is loaded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lrtflite.bundle.feeding import Feeding
from lrtflite.bundle.training import Rate, Training
from lrtflite.errors import ModelError
from lrtflite.tables.table import Table
from lrtflite_converters.request.defaults import (
    NCM_TEMPERATURE,
    POLICY,
    REFIT_POLICY,
    REPLAY_SIZE,
    UNKNOWN,
    SplitPoint,
    ar1_rates,
    cwr_rates,
    dslda_rates,
    ewc_rates,
    gathering,
    lda_feeding,
    lda_rates,
    lwf_rates,
    naive_rates,
    observing,
    plain_feeding,
    renorm_rates,
    sgd_feeding,
    temperature,
)


@dataclass(frozen=True)
class Strategy:
    """A head with its regulariser, rates and feeding.

    `head` and `regulariser` are names in HEADS and REGULARISERS; `trunk_head` is another head for
    places where a trunk trains, solved in closed form on the layer of `refits_at`, and
    `second_head` one for latents of two layers, empty if there is none. `trunk` is True
    for a strategy that needs layers that train below the last one, False for one that cannot have
    them, None for one that works with both. `unknown` is the default threshold of heads that report
    how familiar a frame is.
    """

    summary: str
    head: str
    rates: Callable[[SplitPoint], dict[str, Rate]] = cwr_rates
    feeding: Callable[[SplitPoint], Feeding] = sgd_feeding
    regulariser: str = "none"
    trunk: bool | None = None
    replay_size: int = REPLAY_SIZE
    trunk_head: str = ""
    second_head: str = ""
    unknown: float = UNKNOWN

    def head_at(self, place: SplitPoint) -> str:
        """Return the name of the head at a place."""
        if place.second is not None:
            return self.second_head
        return self.trunk_head if self.trunk_head and place.trains_trunk else self.head

    def top(self, place: SplitPoint) -> str:
        """Return the layer at which the trunk ends."""
        architecture = place.architecture
        if self.trunk_head and place.trains_trunk:
            return architecture.refits_at(place.replay_layer)
        return architecture.pooled

    def memory_at(self, place: SplitPoint) -> tuple[int, str]:
        """Return the default number of latents in the memory, and the default policy."""
        if self.trunk_head and place.trains_trunk:
            return REPLAY_SIZE, REFIT_POLICY
        return self.replay_size, POLICY

    def training(self, place: SplitPoint) -> Training:
        """Return the default training at a place."""
        return Training(self.feeding(place), {**self.rates(place), **renorm_rates(place)})

    def check(self, name: str, place: SplitPoint) -> None:
        """Raise ModelError if the strategy does not fit the replay layer."""
        if place.second is not None and not self.second_head:
            fitting = ", ".join(key for key, entry in STRATEGIES.items() if entry.second_head)
            raise ModelError(
                f"Expected the strategy {fitting} with --and, got {name!r}, which takes one layer",
                "leave --and out, or leave --strategy out",
            )
        if self.trunk is None or self.trunk == place.trains_trunk:
            return
        if self.trunk and place.pooled and place.architecture.trains_trunk(place.replay_layer):
            raise ModelError(
                f"Expected no --pooled with the strategy {name!r}, which trains the layers above "
                f"{place.replay_layer}",
                "leave --pooled out, or leave --strategy out, which uses "
                f"{default_strategy(place)!r}",
            )
        layers = place.architecture.resting_layers
        where = f"at {' or '.join(layers)}" if not self.trunk else f"below {layers[0]}"
        raise ModelError(
            f"Expected the strategy {name!r} {where}, got the replay layer {place.replay_layer!r}",
            f"choose such a layer, or leave --strategy out, which uses {default_strategy(place)!r}",
        )


STRATEGIES: Table[Strategy] = Table(
    "strategy",
    {
        "cwr": Strategy("trains the last layer alone, by CWR*", "cwr", trunk=False),
        "ar1free": Strategy(
            "trains all layers above the replay layer, the last one by CWR*", "cwr", trunk=True
        ),
        "ar1": Strategy(
            "as ar1free, and protects important weights by Synaptic Intelligence",
            "cwr",
            rates=ar1_rates,
            regulariser="synaptic",
            trunk=True,
        ),
        "ewc": Strategy(
            "trains a plain last layer, and penalises changes to weights with Fisher information",
            "plain",
            rates=ewc_rates,
            feeding=observing,
            regulariser="ewc",
        ),
        "lwf": Strategy(
            "trains a plain last layer, also towards its own answers before the session",
            "lwf",
            rates=lwf_rates,
            feeding=plain_feeding,
        ),
        "naive": Strategy(
            "trains a plain last layer, and protects nothing",
            "plain",
            rates=naive_rates,
            feeding=plain_feeding,
        ),
        "lda": Strategy(
            "solves the last layer in closed form, from sums that no session overwrites; above a "
            "lower layer, on the original trunk and on one that trains",
            "lda",
            rates=lda_rates,
            feeding=lda_feeding,
            replay_size=0,
            trunk_head="deep_lda",
            second_head="two_lda",
        ),
        "dslda": Strategy(
            "solves the last layer from raw features, as the paper's DSLDA",
            "dslda",
            rates=dslda_rates,
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


def default_strategy(place: SplitPoint) -> str:
    """Return the name of the default strategy at a place."""
    if place.second is not None:
        return "lda"
    return "ar1free" if place.trains_trunk else "cwr"
