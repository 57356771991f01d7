"""The head of this plugin as a strategy: each pattern once, nothing replayed."""

from __future__ import annotations

from lrtflite.bundle.feeding import SESSION, Feeding
from lrtflite_converters.request.strategies import Strategy

NEAREST_MEAN = Strategy(
    "the nearest class mean",
    head="nearest-mean",
    rates=lambda place: {},
    feeding=lambda place: Feeding(
        batch_size=16, new_per_batch=16, epochs=1, least_steps=1, replays=False, gathers=SESSION
    ),
    trunk=False,
)
