"""Make a bundle on the features of a foreign `.tflite` model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from lrtflite.bundle.destination import Destination
from lrtflite.errors import ConversionError
from lrtflite_converters.blocks.block import Chain
from lrtflite_converters.export import SplitNetwork, make_head, write_bundle
from lrtflite_converters.foreign.features import read_features
from lrtflite_converters.keras_models.network import LEAST_STRENGTH, MEAN_SQUARE
from lrtflite_converters.request.options import ExportOptions
from lrtflite_converters.request.scaling import Scaling
from lrtflite_converters.request.slot_labels import slot_labels
from lrtflite_converters.training.trunk import Trunk


def export_features(
    path: Path,
    scaling: Scaling | None,
    destination: Destination,
    *,
    options: ExportOptions,
    stage: Callable[[str], None] = lambda text: None,
) -> Path:
    """Write a bundle whose features are a `.tflite` file; see `export_bundle`."""
    stage(f"fitting {path.name} to the contract")
    features, origin = read_features(path, scaling)
    training = options.training(max(features.strength / MEAN_SQUARE, LEAST_STRENGTH))
    labels = slot_labels(options, ())
    trunk = Trunk(Chain((), features.latent_shape))
    head = make_head(options, training, trunk, slots=len(labels), original=trunk.chain)
    parts = SplitNetwork(
        features=features,
        head=head,
        labels=labels,
        training=training,
        input_size=features.input_size,
        latent_range=features.latent_range,
        origin=origin,
    )
    try:
        return write_bundle(parts, destination, options=options, stage=stage)
    except ConversionError as error:
        problem = str(error).rpartition("; ")[0]
        raise ConversionError(
            f"{problem}; export {path.name} with another version of its converter, or as float32"
        ) from error
