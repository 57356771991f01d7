"""Quantisation of the frozen features: int8 weights and activations, int8 latents.

A mode prepares the folded network for int8, and is registered in `MODES`. Everything else is the
same for all modes: calibration, conversion, and the comparison with the float features.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable

from lrtflite.tables.table import Table

if TYPE_CHECKING:
    from lrtflite_converters.quantise.preparation import Preparation

    Prepare = Callable[[Preparation], None]

MODES: Table[Prepare] = Table(
    "quantisation",
    {
        "int8": "lrtflite_converters.quantise.bias_correction:correct_biases",
        "qat": "lrtflite_converters.quantise.aware_training:fine_tune",
    },
)
# Description of each mode, for help texts: listing them must not import TensorFlow.
SUMMARIES = {
    "int8": "calibrate on frames, in seconds",
    "qat": "fine-tune the layers for int8 first, in minutes, if int8 alone costs too much",
}
