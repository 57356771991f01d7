"""The steps of `lrtflite convert`: find the network, then export it as a bundle."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import numpy as np

from lrtflite.bundle.destination import Destination
from lrtflite.errors import ConversionError, ModelError
from lrtflite.host.family import find_family
from lrtflite.host.first_batch import FirstBatch, read_first_batch
from lrtflite.host.model_file import load_model
from lrtflite.host.network import Network
from lrtflite.networks.architecture import NETWORKS
from lrtflite_converters.blocks.block import Chain
from lrtflite_converters.convert.writing import SplitNetwork, export_bundle, make_head, write_bundle
from lrtflite_converters.foreign.features import read_features
from lrtflite_converters.keras_models.file import is_of_this_project
from lrtflite_converters.keras_models.network import LEAST_STRENGTH, MEAN_SQUARE, read_network
from lrtflite_converters.quantise.calibration import Calibration
from lrtflite_converters.request.options import ExportOptions
from lrtflite_converters.request.scaling import Scaling
from lrtflite_converters.request.slot_labels import slot_labels
from lrtflite_converters.request.source import TRAINED_NETWORKS, Source
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


def convert(
    out: str | Path | Destination,
    *,
    options: ExportOptions,
    source: Source | None = None,
    network: Network | None = None,
    replace: bool = False,
    calibration: Calibration | None = None,
    stage: Callable[[str], None] = lambda text: None,
) -> Path:
    """Make the bundle `out` from a saved model, or from weights (default: the demo backbone).

    `source.features` is a foreign `.tflite` model instead. A user's own model is passed as
    `network`, which `find_network` returned for its source, with its architecture as `own` in the
    options. Features are quantised with the frames of `calibration`, which are read if they are not
    given.
    """
    source = source or Source(options.network)
    destination = Destination.at(out, replace=replace)
    if source.features is not None:
        path = Path(source.features)
        return export_features(path, source.scaling, destination, options=options, stage=stage)
    stage("reading the weights")
    found = find_network(source) if network is None else network
    if found.architecture != options.architecture:
        raise ModelError(
            f"Expected options for the layers of {found.architecture.name}, got those of "
            f"{options.architecture.name}; pass ExportOptions(own=network.architecture)"
        )
    return export_bundle(
        found,
        destination,
        options=options,
        calibration=calibration,
        batch=None if source.model is None else _batch(Path(source.model), options.seed_memory),
        stage=stage,
    )


def find_network(source: Source) -> Network:
    """Load or build the network to convert."""
    architecture = NETWORKS.choose(source.network)
    if source.model is not None:
        path = Path(source.model)
        if not is_of_this_project(path):
            if source.network != TRAINED_NETWORKS[0]:
                raise ModelError(
                    f"Expected your own model without --network, got {source.network!r}; leave "
                    "--network out, because the file has its own layers"
                )
            return read_network(path, source.scaling)
        if source.scale is not None:
            raise ModelError(
                "Expected no --scale for a model that `lrtflite train` saved, got "
                f"{source.scale}; leave it out"
            )
        origin = f"{path.name}, trained on the host"
        model = load_model(path)
        if model.name in TRAINED_NETWORKS and model.name != source.network:
            raise ModelError(
                f"Expected a {source.network} in {path}, got a {model.name}; "
                f"use --network {model.name}"
            )
        return Network(architecture, model, find_family(source.network).scale, origin)
    module, _, function = architecture.build.partition(":")
    build: Callable[..., Network] = getattr(import_module(module), function)
    return build(weights=source.named_weights, alpha=source.alpha, input_size=source.input_size)


def _batch(model: Path, count: int) -> FirstBatch | None:
    """Return at most `count` of the frames on which a saved model was trained."""
    found = read_first_batch(model) if count else None
    return None if found is None else found.sample(count, np.random.default_rng(0))
