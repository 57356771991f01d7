"""Let an exported model take frames of another size, and resize them by the rule of the learner.

A program that feeds frames of one size only can then run a model of any size. `fit_frame` has the
rule; each axis is one product with its weights.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from lrtflite.frames.fit import axis_weights
from lrtflite_converters.tflite.convert import to_tflite
from lrtflite_converters.tflite.graph import Graph
from lrtflite_converters.tflite.graph_file import SIGNATURE, load, signature_graph
from lrtflite_converters.tflite.joining import join

FRAMES, RESIZED = "frames", "resized"


def take_frames(graph: Graph, side: int) -> Graph:
    """Return a graph that takes frames of (1, side, side, 3) uint8 and resizes them first."""
    ((name, tensor),) = graph.inputs.items()
    size = tensor.shape[1]
    if side == size:
        return graph
    content = to_tflite(*_module(side, size), variables=False)
    below = signature_graph(load(content, where="the resizing of frames"), SIGNATURE)
    for each in below.tensors:  # names must differ from those of the graph above
        each.name = f"resizing/{each.name}"
    # A quantised graph reads the scale of its frames from this tensor.
    below.outputs[RESIZED].quantization = tensor.quantization
    joined = join(below, graph, {name: RESIZED})
    joined.inputs = {name: below.inputs[FRAMES]}
    return joined


def _module(side: int, size: int) -> tuple[tf.Module, dict[str, Any]]:
    whole, total, _ = axis_weights(side, size)
    weights = tf.constant((whole.T / total).astype(np.float32))  # (side, size)

    def along(x: Any) -> Any:
        """Resize the last axis of (a, b, side), and move it to the front: (size, a, b)."""
        a, b = x.shape[:2]
        rows = tf.matmul(tf.reshape(x, [a * b, side]), weights)
        return tf.transpose(tf.reshape(rows, [a, b, size]), [2, 0, 1])

    @tf.function(input_signature=[tf.TensorSpec([1, side, side, 3], tf.uint8, name=FRAMES)])
    def resize(frames: Any) -> dict[str, Any]:
        x = tf.transpose(tf.cast(frames[0], tf.float32), [0, 2, 1])  # rows, channels, columns
        x = along(tf.transpose(along(x), [0, 2, 1]))  # (rows, columns, channels)
        pixels = tf.cast(tf.floor(x + 0.5), tf.uint8)
        return {RESIZED: pixels[tf.newaxis]}

    module = tf.Module()
    module.resize = resize
    return module, {SIGNATURE: resize}
