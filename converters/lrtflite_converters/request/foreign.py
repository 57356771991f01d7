"""A bundle on the features of a foreign `.tflite` model: its layers, and checks of its options.

This module does not import TensorFlow, because options are checked before TensorFlow is loaded.
"""

from __future__ import annotations

from pathlib import Path

from lrtflite.errors import ModelError
from lrtflite.networks.architecture import Architecture
from lrtflite_converters.request.options import Conversion, ConvertOptions
from lrtflite_converters.request.presets import PRESETS
from lrtflite_converters.request.source import Source
from lrtflite_converters.request.strategies import STRATEGIES

# Layers of a foreign model: its input, and its only output.
FRAMES, FEATURES = "frames", "features"


def foreign_architecture(name: str) -> Architecture:
    """Return the architecture of a model that is only known by its input and output."""
    return Architecture(
        name=name,
        title=name,
        replay_layers=(FRAMES, FEATURES),
        classifier="",
        resting_layers=(FEATURES,),
        lowest_quick=FEATURES,
        build="",
    )


def foreign_conversion(source: Source, options: ConvertOptions) -> Conversion:
    """Return the options with the layers of a foreign model; see `check_foreign`."""
    assert source.features is not None
    check_foreign(options)
    return options.at(foreign_architecture(Path(source.features).stem))


def check_foreign(options: ConvertOptions) -> None:
    """Raise ModelError for options that need more layers than a foreign model shows."""
    strategy = options.strategy
    given = {
        "--replay-layer": options.replay_layer is not None,
        "--pooled": options.pooled,
        "--and": options.and_layer is not None,
        "--crops": options.crops,
        "--adapt-moments": options.adapt_moments,
    }
    if options.quantise is not None:
        raise ModelError(
            "Expected no --quantize with --features, whose model is used as it is, got both",
            "leave --quantize out, and quantise the model with the tool that made it",
        )
    if options.preset is not None:
        chosen = PRESETS.choose(options.preset).chosen(foreign_architecture(""))
        given[f"--preset {options.preset}"] = bool(chosen)
    for option, is_given in given.items():
        if is_given:
            raise ModelError(
                f"Expected no {option} with --features, whose output is the only layer, got both",
                f"leave {option} out, or convert a Keras model with --model",
            )
    if strategy is not None and STRATEGIES.choose(strategy).trunk:
        fitting = ", ".join(name for name, entry in STRATEGIES.items() if not entry.trunk)
        raise ModelError(
            f"Expected a strategy of {fitting} with --features, above which only the last layer "
            f"trains, got {strategy!r}",
            "choose one of these, or convert a Keras model with --model",
        )
