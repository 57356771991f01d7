"""The backbone weights in a Keras file, under keras.applications' names, read as data."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrtflite.files.keras import KerasFile, part_of
from lrtflite.host.family import Family
from lrtflite.networks.architecture import ACTIVATIONS, RELU, RELU6
from lrtflite.photos.batch_norm_folding import EPSILON, PUBLISHED_EPSILON

# Weights by class of layer, in the order in which a `.keras` file numbers them.
_NORM = ("gamma", "beta", "moving_mean", "moving_variance", "momentum", "r_max", "d_max")
PARTS = {
    "Conv2D": ("kernel", "bias"),
    "DepthwiseConv2D": ("depthwise_kernel", "bias"),
    "BatchNormalization": _NORM[:4],
    "BatchRenorm": _NORM,
    "ClassSlots": ("kernel",),
}


@dataclass(frozen=True)
class BackboneWeights:
    """The weights below the classifier: float32 arrays under keras.applications' names.

    `activation` is that of the network that was trained; None if the file does not say.
    """

    arrays: Mapping[str, NDArray[np.float32]]
    epsilon: float = PUBLISHED_EPSILON
    activation: str | None = None


@dataclass(frozen=True)
class SavedLayer:
    """A layer of a configuration: its class without a package, its name, values and inputs."""

    kind: str
    name: str
    config: Mapping[str, Any]
    inputs: Any


def saved_layers(file: KerasFile) -> list[SavedLayer]:
    """Return the layers of a model; raise KeyError or TypeError for another configuration."""
    return [
        SavedLayer(
            kind=str(layer["class_name"]).rpartition(">")[2],
            name=str(layer["config"]["name"]),
            config=dict(layer["config"]),
            inputs=layer.get("inbound_nodes"),
        )
        for layer in file.config["config"]["layers"]
    ]


def layer_arrays(
    file: KerasFile, layers: list[SavedLayer]
) -> Iterator[tuple[SavedLayer, dict[str, NDArray[np.float32]]]]:
    """Yield each layer of a model with its weights by part: `kernel`, `gamma`, ..."""
    paths = file.of_layers("", [(layer.kind, layer.name) for layer in layers])
    for layer, path in zip(layers, paths):
        arrays = file.weights(path) if layer.kind in PARTS else ()
        yield layer, dict(zip(PARTS.get(layer.kind, ()), arrays))


def backbone_of(file: KerasFile, family: Family) -> BackboneWeights:
    """Return the weights of a network of this project or of keras.applications.

    Raise one of `zip_file.MALFORMED` for a configuration of another form. Arrays may be missing.
    """
    arrays = dict(_by_name(file, family) if file.legacy else _by_number(file, family))
    wanted = {}
    for name in family.weight_names:
        # Keras 3 calls every kernel `kernel`.
        for each in (name.replace("/depthwise_kernel", "/kernel"), name):
            if each in arrays:
                wanted[name] = arrays[each]
    if not file.config:
        # Weights alone do not include epsilon, but their names show where they come from.
        ours = any(
            f"/{key.rpartition('/')[0]}".endswith(f"/{norm}")
            for key in file.arrays
            for norm in family.norms
        )
        return BackboneWeights(wanted, EPSILON if ours else PUBLISHED_EPSILON)
    layers = saved_layers(file)
    activation = _saved_activation(layers)
    norms = [layer for layer in layers if layer.kind == "BatchRenorm"]
    if not norms:
        return BackboneWeights(wanted, activation=activation)
    # INVARIANT: a family gives every norm the same epsilon, every unit the same activation.
    epsilon = float(norms[0].config["epsilon"])
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise ValueError(f"an epsilon of {epsilon}")
    return BackboneWeights(wanted, epsilon, activation)


def _saved_activation(layers: list[SavedLayer]) -> str | None:
    """Return the activation of a configuration's layers, or None if none of them has one."""
    found = [str(each.config.get("activation")) for each in layers if each.kind == "Activation"]
    for each in layers:
        if each.kind == "ReLU":
            found.append(RELU if each.config.get("max_value") is None else RELU6)
    return next((name for name in ACTIVATIONS if name in found), None)


def _by_number(file: KerasFile, family: Family) -> Iterator[tuple[str, NDArray[np.float32]]]:
    for layer, arrays in layer_arrays(file, saved_layers(file)):
        for part, array in arrays.items():
            yield family.keras_name(layer.name, part), array


def _by_name(file: KerasFile, family: Family) -> Iterator[tuple[str, NDArray[np.float32]]]:
    """Yield the arrays of an `.h5` file, which has their names: `conv1/conv1/kernel:0`."""
    known = {*family.keras_layers, *family.keras_layers.values()}
    for key, array in file.arrays.items():
        names = key.split("/")[:-1]
        # The layer's name may contain slashes, and comes after the name of its group.
        for start in range(len(names)):
            if (layer := "/".join(names[start:])) in known:
                yield family.keras_name(layer, part_of(key)), array
                break
