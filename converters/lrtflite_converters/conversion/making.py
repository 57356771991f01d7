"""Find the network of a conversion, and make a bundle of it; loads TensorFlow."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import numpy as np

from lrtflite.bundle.destination import Destination
from lrtflite.errors import ConversionError, ModelError, problem_of
from lrtflite.files.keras import is_of_this_project
from lrtflite.host.family import find_family
from lrtflite.host.first_batch import FirstBatch, read_first_batch
from lrtflite.host.model_file import load_model
from lrtflite.host.network import Network
from lrtflite.networks.architecture import NETWORKS
from lrtflite_converters.blocks.block import Chain
from lrtflite_converters.conversion.convert import Converted, Stage
from lrtflite_converters.conversion.writing import (
    SplitNetwork,
    make_bundle,
    make_head,
    write_bundle,
)
from lrtflite_converters.foreign.features import read_features
from lrtflite_converters.foreign.trial import try_features
from lrtflite_converters.keras_models.network import MEAN_SQUARE, MIN_STRENGTH, read_network
from lrtflite_converters.quantise.calibration import Calibration
from lrtflite_converters.request.foreign import foreign_conversion
from lrtflite_converters.request.options import Conversion, ConvertOptions
from lrtflite_converters.request.scaling import Scaling
from lrtflite_converters.request.slot_labels import slot_labels
from lrtflite_converters.request.source import TRAINED_NETWORKS, Source
from lrtflite_converters.training.trunk import Trunk


def make(
    destination: Destination,
    source: Source,
    options: ConvertOptions,
    *,
    calibration: Calibration | None,
    stage: Stage,
) -> Converted:
    """Make the bundle of a source; see `convert`."""
    if source.features is not None:
        return _of_features(Path(source.features), source, destination, options, stage)
    stage("reading the weights")
    network = find_network(source)
    conversion = options.at(network.architecture)
    make_bundle(
        network,
        destination,
        options=conversion,
        calibration=calibration,
        batch=_batch(source, network, conversion.seed_memory),
        stage=stage,
    )
    is_own = network.architecture is not NETWORKS.get(network.architecture.name)
    own = network.architecture if is_own else None
    return Converted(destination.path, own, replaced=destination.replaces)


def _of_features(
    path: Path, source: Source, destination: Destination, options: ConvertOptions, stage: Stage
) -> Converted:
    conversion = foreign_conversion(source, options)
    make_bundle_of_features(path, source.scaling, destination, options=conversion, stage=stage)
    return Converted(destination.path, conversion.architecture, replaced=destination.replaces)


def make_bundle_of_features(
    path: Path,
    scaling: Scaling | None,
    destination: Destination,
    *,
    options: Conversion,
    stage: Stage = lambda text: None,
) -> Path:
    """Write a bundle whose features are a `.tflite` file; see `make_bundle`."""
    stage(f"fitting {path.name} to the contract")
    features, origin = read_features(path, scaling, try_features(path, scaling))
    training = options.training(max(features.strength / MEAN_SQUARE, MIN_STRENGTH))
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
        problem = problem_of(error)
        raise ConversionError(
            f"{problem}", f"export {path.name} with another version of its converter, or as float32"
        ) from error


def find_network(source: Source) -> Network:
    """Load or build the network to convert."""
    architecture = NETWORKS.choose(source.network)
    if source.model is not None:
        path = Path(source.model)
        if not is_of_this_project(path):
            if source.network != TRAINED_NETWORKS[0]:
                raise ModelError(
                    f"Expected your own model without --network, got {source.network!r}",
                    "leave --network out, because the file has its own layers",
                )
            return read_network(path, source.scaling)
        if source.scale is not None:
            raise ModelError(
                f"Expected no --scale for a model that `lrtflite train` saved, got {source.scale}",
                "leave it out",
            )
        origin = f"{path.name}, trained on the host"
        model = load_model(path)
        if model.name in TRAINED_NETWORKS and model.name != source.network:
            raise ModelError(
                f"Expected a {source.network} in {path}, got a {model.name}",
                f"use --network {model.name}",
            )
        return Network(architecture, model, find_family(source.network).scale, origin)
    module, _, function = architecture.build.partition(":")
    build: Callable[..., Network] = getattr(import_module(module), function)
    chosen = {"activation": source.activation} if architecture.activation_varies else {}
    return build(weights=source.named_weights, alpha=source.alpha, input_size=source.side, **chosen)


def _batch(source: Source, network: Network, count: int) -> FirstBatch | None:
    """Return at most `count` of the frames on which a saved model was trained."""
    labels = getattr(network.classifier, "labels", ())
    if source.model is None or not count or not labels:
        return None
    path, size = Path(source.model), network.input_size
    found = read_first_batch(path, size=size, classes=len(labels))
    return None if found is None else found.sample(count, np.random.default_rng(0))
