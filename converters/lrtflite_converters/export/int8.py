"""Quantise an inference graph to int8, with the ranges that calibration frames give.

The part from the frame to the last op that keeps its accuracy in int8 is quantised; what follows,
such as the square roots and the division of a closed form, stays in float32. The model takes uint8
frames and gives uint8 probabilities.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray
from tensorflow.lite.python import schema_py_generated as schema
from tensorflow.lite.python.optimize import calibrator

from lrtflite.errors import ConversionError
from lrtflite_converters.tflite.graph import Code, Graph, Op, Tensor
from lrtflite_converters.tflite.graph_file import load, main_graph, to_bytes
from lrtflite_converters.tflite.joining import join

# Ops whose outputs have ranges that 256 steps can hold.
QUANTISABLE = frozenset(
    {
        Code.ADD,
        Code.AVERAGE_POOL_2D,
        Code.CONCATENATION,
        Code.CONV_2D,
        Code.DEPTHWISE_CONV_2D,
        Code.FULLY_CONNECTED,
        Code.MAX_POOL_2D,
        Code.MEAN,
        Code.MUL,
        Code.PAD,
        Code.RELU,
        Code.RELU6,
        Code.RESHAPE,
        Code.RESIZE_BILINEAR,
        Code.SOFTMAX,
        Code.STRIDED_SLICE,
        Code.SUB,
    }
)
# Scale of uint8 probabilities: 255 is 0.996, as in every TFLite classifier.
PROBABILITY_STEP = 1 / 256
_SCALING = (Code.MUL, Code.DIV, Code.ADD, Code.SUB)


@dataclass(frozen=True)
class Scaling:
    """The scaling of frames at the start of a graph: x = factor * frame + offset."""

    factor: float
    offset: float

    def __call__(self, frames: NDArray[np.uint8]) -> NDArray[np.float32]:
        return (frames.astype(np.float32) * self.factor + self.offset).astype(np.float32)


def quantise(graph: Graph, frames: NDArray[np.uint8]) -> Graph:
    """Return the graph in int8, calibrated on `frames` (n, H, W, 3) uint8."""
    ((into, _),) = graph.inputs.items()
    ((name, _),) = graph.outputs.items()
    scaling = _take_scaling(graph)
    stem, tail = _split(graph)
    content = _quantised(to_bytes(stem), _samples(frames, scaling), whole=tail is None)
    quantised = main_graph(load(content, where="the quantised model"))
    quantised.inputs = {into: next(iter(quantised.inputs.values()))}
    if tail is None:
        quantised.outputs = {name: next(iter(quantised.outputs.values()))}
        return quantised
    _dequantise_outputs(quantised)
    joined = join(quantised, tail, {number: number for number in tail.inputs})
    _quantise_output(joined, name)
    return joined


def _take_scaling(graph: Graph) -> Scaling:
    """Remove the scaling of frames, so that the input is the scaled frame in float32.

    A quantised input has a scale and a zero point of its own, which do the same.
    """
    ((into, frames),) = graph.inputs.items()
    factor, offset, at = 1.0, 0.0, frames
    while True:
        users = graph.users(at)
        if len(users) != 1:
            break
        (op,) = users
        if op.code == Code.CAST and at is frames:
            at = op.output
            continue
        c = op.inputs[1] if op.code in _SCALING else None
        if c is None or c.value is None or c.value.size != 1 or op.inputs[0] is not at:
            break
        number = float(c.value.reshape(()))
        if op.code in (Code.MUL, Code.DIV):
            number = number if op.code == Code.MUL else 1 / number
            factor, offset = factor * number, offset * number
        else:
            offset += number if op.code == Code.ADD else -number
        at = op.output
    graph.inputs = {into: at}
    graph.ops = [op for op in graph.ops if not any(each is at for each in op.outputs)]
    graph.drop_dead()
    return Scaling(factor, offset)


def _split(graph: Graph) -> tuple[Graph, Graph | None]:
    """Return the part to quantise, and the part after it that stays in float32, if any."""
    reached = {id(each) for each in graph.inputs.values()}
    stem, rest = [], []
    for op in graph.ops:
        given = [each for each in op.inputs if each is not None and not each.is_constant]
        if op.code in QUANTISABLE and all(id(each) in reached for each in given):
            stem.append(op)
            reached.update(id(each) for each in op.outputs)
        else:
            rest.append(op)
    if not rest:
        return graph, None
    wanted = [*graph.outputs.values(), *(each for op in rest for each in op.inputs if each)]
    border = {id(each): each for each in wanted if id(each) in reached}
    outputs = {str(number): each for number, each in enumerate(border.values())}
    inputs = {key: Tensor.float32(each.name, each.shape) for key, each in outputs.items()}
    tail = Graph(rest, inputs, dict(graph.outputs))
    for key, each in outputs.items():
        tail.replace(each, inputs[key])
    return Graph(stem, dict(graph.inputs), outputs), tail


def _samples(frames: NDArray[np.uint8], scaling: Scaling) -> Iterator[list[NDArray[np.float32]]]:
    for number, frame in enumerate(frames):
        if number == 0:
            # A black and a white corner in the first frame make the input cover its whole range,
            # so that each of its 256 steps is one step of a camera.
            frame = frame.copy()
            frame[0, 0], frame[-1, -1] = 0, 255
        yield [scaling(frame[np.newaxis])]


def _quantised(
    content: bytes, samples: Iterator[list[NDArray[np.float32]]], *, whole: bool
) -> bytes:
    try:
        made = calibrator.Calibrator(content).calibrate_and_quantize(
            lambda: samples,
            input_type=tf.uint8,
            output_type=tf.uint8 if whole else tf.int8,
            allow_float=False,
            resize_input=False,
        )
    except Exception as error:  # of many types of TensorFlow's own
        lines = str(error).splitlines() or [type(error).__name__]
        raise ConversionError(
            f"TensorFlow cannot quantise this model: {lines[0]}", "export without --quantize"
        ) from error
    return bytes(made)


def _dequantise_outputs(graph: Graph) -> None:
    for key, tensor in graph.outputs.items():
        made = Tensor.float32(f"{tensor.name}/float", tensor.shape)
        options = schema.DequantizeOptionsT()
        kind = schema.BuiltinOptions.DequantizeOptions
        # Version 2 takes int8.
        graph.ops.append(Op(Code.DEQUANTIZE, [tensor], [made], options, kind, version=2))
        graph.outputs[key] = made


def _quantise_output(graph: Graph, name: str) -> None:
    given = graph.outputs[name]
    made = Tensor(f"{name}/uint8", given.shape, schema.TensorType.UINT8)
    made.quantization = schema.QuantizationParametersT()
    made.quantization.scale = np.array([PROBABILITY_STEP], np.float32)
    made.quantization.zeroPoint = np.array([0], np.int64)
    options = schema.QuantizeOptionsT()
    kind = schema.BuiltinOptions.QuantizeOptions
    graph.ops.append(Op(Code.QUANTIZE, [given], [made], options, kind))
    graph.outputs[name] = made
