"""Convert a network: check all that can be checked without TensorFlow, then make the bundle."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lrtflite.bundle.destination import Destination
from lrtflite.files.keras import is_of_this_project
from lrtflite.networks.architecture import NETWORKS, Architecture
from lrtflite.system.extras import require
from lrtflite_converters.quantise.calibration import read_calibration
from lrtflite_converters.request.foreign import foreign_conversion
from lrtflite_converters.request.options import Conversion, ConvertOptions
from lrtflite_converters.request.presets import PRESETS
from lrtflite_converters.request.source import Source

# Called with the name of each stage.
Stage = Callable[[str], None]


@dataclass(frozen=True)
class Converted:
    """A bundle that was made; `own` has the layers of a network that is the user's own."""

    path: Path
    own: Architecture | None = None
    replaced: bool = False


def convert(
    out: str | Path | Destination,
    source: Source | None = None,
    options: ConvertOptions | None = None,
    *,
    replace: bool = False,
    stage: Stage = lambda text: None,
) -> Converted:
    """Make the bundle `out` from a network: by default MobileNetV1 with the demo weights.

    `source` names one of the project's networks, a model that `lrtflite train` saved, your own
    Keras model, or a `.tflite` feature model. With `replace`, the new bundle replaces an old one
    once it is complete. `stage` is called with the name of each stage.
    """
    require("tensorflow", "tf_keras")
    source, options = source or Source(), options or ConvertOptions()
    if options.quantise is not None and options.quantise.epoch_count:
        require("tensorflow_model_optimization")
    if options.preset is not None:
        source = source.with_default_size(PRESETS.choose(options.preset).input_size)
    destination = Destination.at(out, replace=replace)
    conversion = _known(source, options)
    calibration = None
    if conversion is not None and conversion.quantise is not None:
        calibration = read_calibration(conversion.quantise, size=source.side)
    # Only here, because TensorFlow takes seconds to load.
    from lrtflite_converters.conversion.making import make

    return make(destination, source, options, calibration=calibration, stage=stage)


def _known(source: Source, options: ConvertOptions) -> Conversion | None:
    """Return the options with the layers of the network, or None if these are in a user's file."""
    if source.features is not None:
        return foreign_conversion(source, options)
    if source.model is not None and not is_of_this_project(Path(source.model)):
        return None
    return options.at(NETWORKS.choose(source.network))
