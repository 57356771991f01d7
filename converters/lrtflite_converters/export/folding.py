"""Fold scales and shifts into the product before them, and products of pixels into convolutions.

A unit of a trunk is a product, a multiplication, an addition and an activation, because its weights
and moments train. With constants it is one convolution.
"""

from __future__ import annotations

from typing import Any, Callable

import numpy as np
from numpy.typing import NDArray
from tensorflow.lite.python import schema_py_generated as schema

from lrtflite_converters.tflite.graph import Code, Graph, Op, Tensor

_NO_ACTIVATION = schema.ActivationFunctionType.NONE
_PRODUCTS = (Code.CONV_2D, Code.DEPTHWISE_CONV_2D, Code.FULLY_CONNECTED)
# Ops with an activation that can move into the product before them.
_AFFINE = (Code.MUL, Code.DIV, Code.ADD, Code.SUB)
_ACTIVATIONS = {
    Code.RELU: schema.ActivationFunctionType.RELU,
    Code.RELU6: schema.ActivationFunctionType.RELU6,
}


def fold(graph: Graph) -> None:
    """Fold until nothing changes."""
    rules: tuple[Callable[[Graph, Op], bool], ...] = (
        _product_to_convolution,
        _fold_affine,
        _fold_activation,
        _join_reshapes,
        _convolve_images,
        _add_images,
        _prune_product,
    )
    while any(rule(graph, op) for op in list(graph.ops) for rule in rules):
        graph.drop_dead()
    graph.drop_dead()


def _product_to_convolution(graph: Graph, op: Op) -> bool:
    """Turn (1, M, K) x (K, N) with constant weights into a 1x1 convolution of (1, 1, M, K)."""
    if op.code != Code.BATCH_MATMUL or op.options.adjX:
        return False
    x, weights = op.inputs
    assert x is not None
    assert weights is not None
    if weights.value is None or len(x.shape) != 3 or x.shape[0] != 1:
        return False
    matrix = weights.value.reshape(weights.shape[-2:])
    kernel = matrix if op.options.adjY else matrix.T
    outputs, rows = len(kernel), x.shape[1]
    image = Tensor.float32(f"{x.name}/image", (1, 1, rows, x.shape[2]))
    made = Tensor.float32(f"{op.output.name}/image", (1, 1, rows, outputs))
    options = schema.Conv2DOptionsT()
    options.padding = schema.Padding.VALID
    options.strideW = options.strideH = 1
    convolution = Op(
        Code.CONV_2D,
        [
            image,
            Tensor.constant(f"{weights.name}/kernel", kernel[:, np.newaxis, np.newaxis, :]),
            Tensor.constant(f"{weights.name}/bias", np.zeros(outputs, np.float32)),
        ],
        [made],
        options,
        schema.BuiltinOptions.Conv2DOptions,
    )
    graph.insert_after(op, _reshape(x, image), convolution, _reshape(made, op.output))
    graph.remove(op)
    return True


def _fold_affine(graph: Graph, op: Op) -> bool:
    """Fold x * c, x / c, x + c and x - c, with c per channel, into the product that gives x."""
    if op.code not in _AFFINE or len(op.inputs) != 2:
        return False
    x, c = op.inputs
    if op.code in (Code.MUL, Code.ADD) and x is not None and x.is_constant:
        x, c = c, x
    if x is None or c is None or c.value is None or op.output.shape != x.shape:
        return False
    product = _product_of(graph, x)
    by_channel = _by_channel(c.value, x.shape[-1])
    if product is None or by_channel is None or c.value.dtype != np.float32:
        return False
    _fold_into(product, op.code, by_channel)
    product.options.fusedActivationFunction = op.options.fusedActivationFunction
    graph.replace(op.output, x)
    graph.remove(op)
    return True


def _fold_activation(graph: Graph, op: Op) -> bool:
    if op.code not in _ACTIVATIONS:
        return False
    (x,) = op.inputs
    assert x is not None
    product = _product_of(graph, x)
    if product is None:
        return False
    product.options.fusedActivationFunction = _ACTIVATIONS[op.code]
    graph.replace(op.output, x)
    graph.remove(op)
    return True


def _join_reshapes(graph: Graph, op: Op) -> bool:
    """Skip a reshape of a reshape, and one that changes nothing."""
    if op.code != Code.RESHAPE:
        return False
    x = op.inputs[0]
    assert x is not None
    if op.output.shape == x.shape:
        graph.replace(op.output, x)
        graph.remove(op)
        return True
    before = graph.maker(x)
    if before is None or before.code != Code.RESHAPE:
        return False
    op.inputs[0] = before.inputs[0]
    return True


def _convolve_images(graph: Graph, op: Op) -> bool:
    """Let a 1x1 convolution of (1, 1, M, K) take the image that was reshaped to it."""
    if op.code != Code.CONV_2D:
        return False
    x, kernel = op.inputs[:2]
    assert x is not None
    assert kernel is not None
    reshape = graph.maker(x)
    if reshape is None or reshape.code != Code.RESHAPE or kernel.shape[1:3] != (1, 1):
        return False
    image = reshape.inputs[0]
    assert image is not None
    if len(image.shape) != 4 or image.shape[0] != 1 or image.shape[-1] != x.shape[-1]:
        return False
    if (op.options.strideW, op.options.strideH) != (1, 1):
        return False
    op.inputs[0], old = image, op.output
    made = Tensor.float32(f"{old.name}/pixels", (*image.shape[:-1], old.shape[-1]))
    op.outputs = [made]
    graph.insert_after(op, _reshape(made, old))
    return True


def _add_images(graph: Graph, op: Op) -> bool:
    """Let an addition of two reshaped images add the images; its sum is reshaped instead."""
    if op.code != Code.ADD:
        return False
    images = []
    for x in op.inputs:
        reshape = graph.maker(x)
        if reshape is None or reshape.code != Code.RESHAPE or reshape.inputs[0] is None:
            return False
        images.append(reshape.inputs[0])
    if images[0].shape != images[1].shape or len(images[0].shape) != 4:
        return False
    if op.inputs[0] is None or op.inputs[0].shape != op.output.shape:
        return False
    old, made = op.output, Tensor.float32(f"{op.output.name}/pixels", images[0].shape)
    op.inputs, op.outputs = list(images), [made]
    graph.insert_after(op, _reshape(made, old))
    return True


def _prune_product(graph: Graph, op: Op) -> bool:
    """Compute only the rows of a product that a GATHER keeps."""
    if op.code != Code.GATHER:
        return False
    x, places = op.inputs
    assert x is not None
    assert places is not None
    product = _product_of(graph, x)
    if product is None or product.code != Code.FULLY_CONNECTED or places.value is None:
        return False
    if op.options.axis % len(x.shape) != len(x.shape) - 1 or product.output is not x:
        return False
    for number in (1, 2):
        given = product.inputs[number] if number < len(product.inputs) else None
        if given is not None and given.value is not None:
            pruned = Tensor.constant(given.name, given.value[places.value])
            product.inputs[number] = pruned
    product.outputs = [op.output]
    graph.remove(op)
    return True


def _product_of(graph: Graph, x: Tensor) -> Op | None:
    """Return the product that gives `x` and nothing else, seen through reshapes of its pixels."""
    if not graph.used_once(x):
        return None
    op = graph.maker(x)
    if op is not None and op.code == Code.RESHAPE:
        below = op.inputs[0]
        same_channels = below is not None and below.shape[-1:] == x.shape[-1:]
        return _product_of(graph, below) if below is not None and same_channels else None
    if op is None or op.code not in _PRODUCTS:
        return None
    weights = op.inputs[1]
    bias = op.inputs[2] if len(op.inputs) > 2 else None
    plain = op.options.fusedActivationFunction == _NO_ACTIVATION
    constant = weights is not None and weights.is_constant and weights.dtype == np.float32
    return op if plain and constant and (bias is None or bias.is_constant) else None


def _fold_into(product: Op, code: int, c: NDArray[np.float32]) -> None:
    weights = product.inputs[1]
    bias = product.inputs[2] if len(product.inputs) > 2 else None
    assert weights is not None
    assert weights.value is not None
    kernel = weights.value
    shift = np.zeros_like(c) if bias is None or bias.value is None else bias.value
    if code in (Code.MUL, Code.DIV):
        scale = c if code == Code.MUL else np.float32(1) / c
        # Channels are the last axis of a depthwise kernel, and the first of all others.
        last = product.code == Code.DEPTHWISE_CONV_2D
        kernel = kernel * (scale if last else scale.reshape(-1, *[1] * (kernel.ndim - 1)))
        shift = shift * scale
    else:
        shift = shift + (c if code == Code.ADD else -c)
    named = bias.name if bias is not None else f"{weights.name}/bias"
    product.inputs = [
        product.inputs[0],
        Tensor.constant(weights.name, kernel.astype(np.float32)),
        Tensor.constant(named, shift.astype(np.float32)),
    ]


def _by_channel(value: NDArray[Any], channels: int) -> NDArray[np.float32] | None:
    """Return one number per channel; None if the constant has more."""
    if value.size == 1:
        return np.full(channels, value.reshape(()), np.float32)
    if value.size == channels and value.shape[-1] == channels:
        return value.reshape(-1).astype(np.float32)
    return None


def _reshape(x: Tensor, made: Tensor) -> Op:
    options = schema.ReshapeOptionsT()
    options.newShape = np.array(made.shape, np.int32)
    shape = Tensor.constant(f"{made.name}/shape", np.array(made.shape, np.int32))
    kind = schema.BuiltinOptions.ReshapeOptions
    return Op(Code.RESHAPE, [x, shape], [made], options, kind)
