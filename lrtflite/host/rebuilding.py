"""Build a network that `lrtflite train` saved again, from the values and arrays of its file.

The network is one of the published families, so a file only chooses its width, its size, its
activation and its classes. Everything else in the configuration must be as the family builds it.
Keras gets only numbers, class names and arrays from the file.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tf_keras as keras
from numpy.typing import NDArray

from lrtflite.arguments import shown
from lrtflite.errors import ModelError
from lrtflite.files.keras import KerasFile, first_line
from lrtflite.files.zip import MALFORMED
from lrtflite.host.batch_renorm import BatchRenorm
from lrtflite.host.family import FAMILIES, Family
from lrtflite.host.keras_weights import (
    PARTS,
    SavedLayer,
    backbone_of,
    layer_arrays,
    saved_layers,
)
from lrtflite.host.mobilenet import ClassSlots
from lrtflite.networks.architecture import RELU6

# Values of a layer that decide what it computes, where its class has them.
_VALUES = (
    "activation",
    "axis",
    "classes",
    "data_format",
    "depth_multiplier",
    "dilation_rate",
    "epsilon",
    "filters",
    "groups",
    "keepdims",
    "kernel_size",
    "max_value",
    "negative_slope",
    "padding",
    "strides",
    "threshold",
    "use_bias",
)
Weights = dict[str, NDArray[np.float32]]


def rebuild(file: KerasFile) -> keras.Model:
    """Return the network of a file, or raise ModelError if the project has no such network."""
    try:
        return _rebuild(file)
    except MALFORMED as error:
        why = f"{'no ' if isinstance(error, KeyError) else ''}{first_line(error)}"
        raise ModelError(
            f"Expected a model that `lrtflite train` saved in {file.name}, got another one ({why})",
            "train it again, or convert your own model of Keras's layers",
        ) from error


def _rebuild(file: KerasFile) -> keras.Model:
    name = file.config["config"].get("name")
    if not isinstance(name, str) or name not in FAMILIES:
        raise ValueError(f"a network {shown(name)}, not {' or '.join(FAMILIES)}")
    family, layers = FAMILIES[name], saved_layers(file)
    weights = {layer.name: arrays for layer, arrays in layer_arrays(file, layers)}
    model = _build(family, file, layers, weights)
    if len(model.layers) != len(layers):
        raise ValueError(f"{len(layers)} layers, not {len(model.layers)}")
    for layer, saved, entry in zip(model.layers, layers, model.get_config()["layers"]):
        _compare(layer, saved, entry["inbound_nodes"])
        _restore(layer, saved, weights[saved.name])
    return model


def _build(
    family: Family, file: KerasFile, layers: list[SavedLayer], weights: dict[str, Weights]
) -> keras.Model:
    """Return the network of a file with random weights, no larger than the file's arrays."""
    found = backbone_of(file, family)
    _, height, width, channels = layers[0].config["batch_input_shape"]
    last = layers[-1]
    classes = _whole(last.config.get("classes")) if last.kind == "ClassSlots" else 0
    if (height, channels) != (width, 3) or type(height) is not int:
        raise ValueError(f"an input of {shown(layers[0].config['batch_input_shape'])}")
    if classes and weights[last.name]["kernel"].shape[-1] != classes:
        raise ValueError(f"{classes:,} classes without their weights")
    return family.build(
        alpha=family.find_alpha(found.arrays),
        input_size=height,
        classes=classes,
        activation=found.activation or RELU6,
    )


def _compare(layer: Any, saved: SavedLayer, inputs: Any) -> None:
    """Raise ValueError unless a layer of the network is the saved one."""
    if (type(layer).__name__, layer.name) != (saved.kind, saved.name):
        raise ValueError(f"{saved.name} ({saved.kind}), not {layer.name}")
    config = layer.get_config()
    for name in _VALUES:
        # A version of Keras without one of these values does what the others do by default.
        found = saved.config.get(name)
        if name in config and name in saved.config and _plain(found) != _plain(config[name]):
            raise ValueError(f"{name} {shown(found)} in {saved.name}")
    if _sources(saved.inputs) != _sources(inputs):
        raise ValueError(f"other inputs of {saved.name}")


def _restore(layer: Any, saved: SavedLayer, weights: Weights) -> None:
    """Give a layer its weights, and the few values that training sets."""
    parts = [part for part in PARTS.get(saved.kind, ()) if part in weights]
    values = [weights[part] for part in parts]
    shapes = [tuple(weight.shape) for weight in layer.weights]
    if [value.shape for value in values] != shapes:
        raise ValueError(f"weights of {saved.name} of another shape than {shapes}"[:120])
    if not all(np.isfinite(value).all() for value in values):
        raise ValueError(f"NaN or infinity in {saved.name}")
    layer.set_weights(values)
    if isinstance(layer, BatchRenorm):
        layer.adapt_moments = saved.config.get("adapt_moments") is True
        layer.set_limits(**layer.limits())
    if isinstance(layer, ClassSlots):
        labels, counts = saved.config.get("labels", []), saved.config.get("counts", [])
        if not all(isinstance(label, str) for label in labels):
            raise ValueError("labels that are not texts")
        layer.set_labels(labels, [_whole(count) for count in counts])
    layer.trainable = saved.config.get("trainable") is not False


def _whole(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 1 << 53:
        raise ValueError(f"a number {shown(value)}")
    return value


def _plain(value: Any) -> Any:
    """Return a value as JSON has it: lists in place of tuples."""
    return [_plain(each) for each in value] if isinstance(value, (list, tuple)) else value


def _sources(calls: Any) -> list[list[str]]:
    """Return the layers that each call of a layer takes: [[["images", 0, 0, {}]]] -> images."""
    return [[str(source[0]) for source in call] for call in calls or []]
