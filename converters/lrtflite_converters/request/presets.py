"""Presets: a whole set of rates, mini-batches and epochs, or of options, under one name.

To add one, register a `Preset` in `PRESETS`. Like `strategies`, this module does not import
TensorFlow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from lrtflite.bundle.training import Rate, Training
from lrtflite.errors import ModelError
from lrtflite.networks.architecture import Architecture
from lrtflite.tables.table import Table
from lrtflite_converters.request.defaults import SplitPoint

# Mini-batch of the paper's experiments, and the new patterns in it.
PAPER_BATCH, PAPER_NEW = 128, 21
PAPER_EPOCHS = 4
# Rates of the paper's later batches, by their names here; a strategy has some of them. The paper's
# w, `importance_rate`, is missing: it is the default of `ar1`, and EWC has no w.
PAPER_RATES: Mapping[str, float] = {
    "lr": 0.003,
    "trunk_lr": 0.0003,
    "momentum": 0.9,
    "weight_decay": 5e-4,
    "head_start": 0.0,
    "rest_below": 1.0,
    "adapt_rate": 5e-5,
    "r_max": 1.25,
    "d_max": 0.5,
    "max_f": 0.001,
    "protection": 1.0,
    "shrinkage": 1e-4,
}
# Share of a mini-batch in the moving moments: 1 - 0.99995 with latent replay, 1 - 0.9999 with
# native rehearsal.
PAPER_MOMENT_RATE, PAPER_NATIVE_MOMENT_RATE = 5e-5, 1e-4
# Learning rate of the first batch, for all layers.
PAPER_FIRST_LR = 0.001
# Side of frames for the most accurate answers; larger ones gain little more
# (docs/studies/frame-sizes.md).
BEST_SIZE = 192
# Options whose names on the command line differ.
OPTIONS = {"and_layer": "--and"}


@dataclass(frozen=True)
class Preset:
    """A change of the default training, for the strategies that it names.

    `chosen` returns the options that a preset chooses for a network, by their names in
    `ConvertOptions`. `input_size` is the default side of frames where the network is built.
    """

    summary: str
    strategies: tuple[str, ...]
    change: Callable[[SplitPoint, Training], Training]
    chosen: Callable[[Architecture], Mapping[str, Any]] = lambda architecture: {}
    input_size: int | None = None

    def fill(
        self, name: str, given: Mapping[str, Any], architecture: Architecture
    ) -> dict[str, Any]:
        """Return options with those of the preset; raise ModelError where others were given."""
        chosen = self.chosen(architecture)
        for option, value in chosen.items():
            if given[option] not in (None, False, value):
                shown = OPTIONS.get(option, f"--{option.replace('_', '-')}")
                raise ModelError(
                    f"Expected no {shown} {given[option]} with --preset {name}, which chooses "
                    f"{value}",
                    "leave one of the two out",
                )
        return {**given, **chosen}

    def check(self, name: str, strategy: str, place: SplitPoint) -> None:
        """Raise ModelError if the preset has no values for a strategy or a place."""
        if strategy not in self.strategies:
            raise ModelError(
                f"Expected a strategy of {', '.join(self.strategies)} with --preset {name}, got "
                f"{strategy!r}",
                "leave --preset out",
            )
        if place.pooled:
            raise ModelError(
                f"Expected no --pooled with --preset {name}, which has no such layer",
                "leave one of the two out",
            )


def as_in_the_paper(place: SplitPoint, training: Training) -> Training:
    """Return the training with the values of the paper's section 6 and its appendix."""
    reads_frames = place.architecture.reads_frames(place.replay_layer)
    moments = PAPER_NATIVE_MOMENT_RATE if reads_frames else PAPER_MOMENT_RATE
    values = {**PAPER_RATES, "moment_rate": moments}
    rates = {
        name: replace(rate, value=values.get(name, rate.value))
        for name, rate in training.rates.items()
    }
    if "lr" not in rates:
        return Training(training.feeding, rates)
    for name in ("lr", "trunk_lr"):
        if name in rates:
            meaning = f"{name} of the first session"
            rates[f"first_{name}"] = Rate(PAPER_FIRST_LR, meaning=meaning)
    feeding = replace(
        training.feeding,
        batch_size=PAPER_BATCH,
        new_per_batch=PAPER_NEW,
        epochs=PAPER_EPOCHS,
        least_steps=1,
        extra_steps=0,
        enough_loss=0.0,
    )
    return Training(feeding, rates)


def most_accurate(architecture: Architecture) -> Mapping[str, Any]:
    """Return the most accurate latents of the study: two layers, where it has them, and crops."""
    second = {"and_layer": architecture.second_layer} if architecture.second_layer else {}
    return {"strategy": "lda", "replay_layer": architecture.pooled, "crops": True, **second}


PRESETS: Table[Preset] = Table(
    "preset",
    {
        "paper": Preset(
            "the paper's rates, mini-batch and epochs",
            ("cwr", "ar1free", "ar1", "ewc", "lwf", "naive", "dslda"),
            as_in_the_paper,
        ),
        "best": Preset(
            "the most accurate answers: lda on two layers with crops and frames of "
            f"{BEST_SIZE} pixels, for four times the time per frame and twice that per "
            "session",
            ("lda",),
            lambda place, training: training,
            most_accurate,
            BEST_SIZE,
        ),
    },
)
