"""A user's Keras file as a plain tf-keras model from scaled frames to a feature vector."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import tensorflow as tf
import tf_keras as keras

from lrtflite.errors import ModelError
from lrtflite.files.keras import first_line
from lrtflite_converters.blocks.split import maker
from lrtflite_converters.keras_models.building import Builder
from lrtflite_converters.keras_models.graph import Graph
from lrtflite_converters.keras_models.layers import (
    build_layer,
    check_known,
    is_identity,
    scaling_of,
)
from lrtflite_converters.request.scaling import FORMS, Scaling, read_scaling

layers = keras.layers
# Smallest and largest side of a frame.
SIDES = (8, 1024)
# Name of the layer that averages the output of a model that ends with an image.
AVERAGE = "average"


@dataclass(frozen=True)
class OwnModel:
    """A model that ends below its classifier, and the scaling of its frames.

    `dropped` names the layers of the classifier that were left out. `places` maps the name of each
    layer of the file to the layer of `model` that gives its output.
    """

    model: keras.Model
    scaling: Scaling
    dropped: tuple[str, ...]
    places: Mapping[str, str]


def build_model(
    graph: Graph, scaling: Scaling | None, *, otherwise: Scaling | None = None
) -> OwnModel:
    """Build a model from a graph.

    `scaling` is for a model that does not scale its input itself; `otherwise` is used if there is
    none at all, in the file or known of the tool that made it.
    """
    if graph.scale is not None:
        otherwise = read_scaling(graph.scale)
    for node in graph.nodes[1:]:
        check_known(node)
    first, *others = graph.nodes
    images = keras.Input(_frame(first.config, first.name), name=first.name)
    own, builder = Scaling(), Builder(graph.is_keras_3)
    scales_itself = False
    uses = Counter(number for node in graph.nodes for number in node.inputs)
    tensors, bare = [images], [uses[0] == 1]
    for node in others:
        if not node.inputs:
            raise ModelError(
                f"Expected layers that lead from the input to the output, got {node} without an "
                "input",
                "save the model again",
            )
        inputs = [tensors[number] for number in node.inputs]
        # Whether nothing else uses the input or what has been made of it so far.
        at_front = len(inputs) == 1 and inputs[0] is images and bare[node.inputs[0]]
        number, output = len(tensors), inputs[0]
        if at_front and (found := scaling_of(node)) is not None:
            own, scales_itself = own.then(*found), True
        elif not is_identity(node):
            output, at_front = build_layer(builder, node, inputs), False
        tensors.append(output)
        bare.append(at_front and uses[number] == 1)
    top, dropped = tensors[graph.output], graph.left_out
    if not dropped:
        top, dropped = _without_classifier(top)
    places = {node.name: maker(tensor).name for node, tensor in zip(graph.nodes, tensors)}
    return OwnModel(
        _model(images, _as_vector(top, taken=places)),
        _choose(own if scales_itself else None, scaling, otherwise),
        dropped,
        places,
    )


def _frame(config: Mapping[str, Any], name: str) -> tuple[int, int, int]:
    """Return the shape of a frame, or raise ModelError for an input that is not a square image."""
    shape = config.get("batch_shape") or config.get("batch_input_shape") or [None]
    image = list(shape)[1:]
    if len(image) != 3 or image[2] != 3:
        raise ModelError(
            f"Expected an input of images [size, size, 3], got {image} in {name}",
            "build the model for RGB images",
        )
    if not all(isinstance(side, int) for side in image):
        raise ModelError(
            f"Expected images of a fixed size, got {image} in {name}",
            "build the model with keras.Input((size, size, 3)) and save it again",
        )
    if image[0] != image[1] or not SIDES[0] <= image[0] <= SIDES[1]:
        raise ModelError(
            f"Expected square images with a side from {SIDES[0]} to {SIDES[1]}, got "
            f"{image[0]}x{image[1]} in {name}",
            "build the model with such an input",
        )
    return image[0], image[1], 3


def _choose(own: Scaling | None, given: Scaling | None, otherwise: Scaling | None) -> Scaling:
    if own is not None and given is not None:
        raise ModelError(
            "Expected no --scale for a model with its own Rescaling or Normalization at the "
            "input, got both",
            "leave --scale out",
        )
    found = own or given or otherwise
    if found is None:
        raise ModelError(
            "Expected a Rescaling or Normalization layer at the input, or --scale, got neither",
            f"give the scaling that the model was trained with, --scale {FORMS}",
        )
    return found


def _without_classifier(tensor: Any) -> tuple[Any, tuple[str, ...]]:
    """Return the input of the classifier at the top, and the classifier's name, if there is one.

    A classifier is a last dense layer, or a 1x1 convolution of a single pixel, without an
    activation or with softmax or sigmoid.
    """
    dropped = ""
    while not isinstance(layer := maker(tensor), layers.InputLayer):
        answers = isinstance(layer, layers.Softmax) or (
            isinstance(layer, layers.Activation)
            and layer.activation in (tf.nn.softmax, tf.nn.sigmoid)
        )
        pixels = math.prod(int(n) for n in tensor.shape[1:-1])
        dense = isinstance(layer, layers.Dense) or (type(layer) is layers.Conv2D and pixels == 1)
        shapes = isinstance(layer, (layers.Reshape, layers.Flatten))
        if dense and not dropped:
            dropped = layer.name
        elif not (answers and not dropped) and not (shapes and _is_flat(layer)):
            break
        tensor = layer.input
    name = dropped.removesuffix("/dense").removesuffix("/conv")
    return tensor, (name,) if name else ()


def _is_flat(layer: Any) -> bool:
    """Return whether a layer only adds or removes axes of 1."""
    sizes = [[int(n) for n in x.shape[1:] if n != 1] for x in (layer.input, layer.output)]
    return sizes[0] == sizes[1]


def _model(images: Any, features: Any) -> keras.Model:
    try:
        return keras.Model(images, features, name="own")
    except ValueError as error:  # a name twice, or a path that does not begin at the input
        raise ModelError(
            f"Expected layers with a name each between input and output, got: {first_line(error)}",
            "rename the layers",
        ) from error


def _as_vector(tensor: Any, *, taken: Collection[str]) -> Any:
    if len(tensor.shape) == 2:
        return tensor
    if len(tensor.shape) == 4:
        name = f"{AVERAGE}_of_all" if AVERAGE in taken else AVERAGE
        return layers.GlobalAveragePooling2D(name=name)(tensor)
    raise ModelError(
        f"Expected a model that ends with an image or a vector, got {list(tensor.shape[1:])} from "
        f"{maker(tensor).name}",
        "cut it off below, and save that part",
    )
