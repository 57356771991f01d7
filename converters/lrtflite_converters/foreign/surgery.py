"""Give a foreign `.tflite` model the signature of a bundle's features: frames in, latents out.

At the front, uint8 frames are cast, scaled, quantised and transposed, as far as the model's input
needs it. At the end, quantised vectors become float32. Constants that fix the batch to one image
are replaced, so that any number of frames can go in at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from tensorflow.lite.python import schema_py_generated as schema

from lrtflite.errors import ModelError
from lrtflite_converters.request.scaling import FORMS, Scaling
from lrtflite_converters.tflite.foreign_file import ForeignFile

Code, Type = schema.BuiltinOperator, schema.TensorType
QUANTISED = (Type.INT8, Type.UINT8)
# Smallest and largest side of a frame.
SIDES = (8, 1024)
# An op that takes a tensor and gives another one: the function adds it, given both.
Stage = Callable[[int, int], Any]


def add_contract(file: ForeignFile, scaling: Scaling | None, *, where: str) -> tuple[bytes, int]:
    """Return the changed file, and the side of its frames; raise ModelError if it does not fit."""
    _check(file, where)
    (given,), (made,) = file.inputs, file.outputs
    size, is_first = _image(file, given, where)
    batch = file.shape(given)[0]
    front = file.tensor("frames", [1, size, size, 3], Type.UINT8)
    _free_batch(file, batch)
    stages = _front(file, front, given, scaling, where)
    if is_first:
        stages.append(_transpose(file))
    operators = _chain(file, front, given, stages)
    if not operators:
        front = given
    file.set_dynamic(front)
    file.operators = [*operators, *file.operators]
    latents = _end(file, made)
    file.set_dynamic(latents)
    return file.to_bytes("extract", {"frames": front}, {"latents": latents}), size


def _check(file: ForeignFile, where: str) -> None:
    for numbers, what in ((file.inputs, "input"), (file.outputs, "output")):
        if len(numbers) != 1:
            raise ModelError(
                f"Expected a model with one {what}, got {len(numbers)} in {where}",
                "export a model that takes an image and gives a vector",
            )
    names = {code.customCode for code in file.model.operatorCodes if code.customCode}
    if names:
        shown = ", ".join(sorted(name.decode(errors="replace") for name in names))
        raise ModelError(
            f"Expected built-in TFLite ops only, got {shown} in {where}",
            "export it without custom or Flex ops",
        )
    shape = file.shape(file.outputs[0])
    if len(shape) < 2 or sum(side > 1 for side in shape[1:]) > 1:
        raise ModelError(
            f"Expected a model that gives a vector for each image, got an output of {shape} in "
            f"{where}",
            "end the model with global average pooling",
        )
    if file.kind(file.outputs[0]) not in (Type.FLOAT32, *QUANTISED):
        raise ModelError(
            f"Expected an output of float32, int8 or uint8, got {file.kind_name(file.outputs[0])} "
            f"in {where}",
            "export it as float32",
        )


def _image(file: ForeignFile, given: int, where: str) -> tuple[int, bool]:
    """Return the side of the images, and whether channels come first."""
    shape = file.shape(given)
    channels_first = len(shape) == 4 and shape[1] == 3 and shape[3] != 3
    sides = (shape[2:] if channels_first else shape[1:3]) if len(shape) == 4 else []
    fits = len(shape) == 4 and 3 in (shape[1], shape[3]) and sides[0] == sides[1]
    if not fits or not SIDES[0] <= sides[0] <= SIDES[1]:
        raise ModelError(
            "Expected an input of square images, [n, size, size, 3] or [n, 3, size, size], with a "
            f"size from {SIDES[0]} to {SIDES[1]}, got {shape} in {where}",
            "export it for such images",
        )
    if file.kind(given) not in (Type.FLOAT32, *QUANTISED):
        raise ModelError(
            f"Expected an input of float32, uint8 or int8, got {file.kind_name(given)} in {where}",
            "export it as float32",
        )
    return sides[0], channels_first


def _front(
    file: ForeignFile, front: int, given: int, scaling: Scaling | None, where: str
) -> list[Stage]:
    """Return what turns frames into values of the input, before any transpose."""
    kind, quantization = file.kind(given), file.quantization(given)
    if kind == Type.FLOAT32 and scaling is None:
        raise ModelError(
            f"Expected --scale with {where}, whose input is float32, got none",
            f"give the scaling that the model was trained with, --scale {FORMS}",
        )
    if kind != Type.FLOAT32 and quantization is None and (scaling or kind == Type.INT8):
        raise ModelError(
            f"Expected a quantised input with one scale, got {where} without",
            "export it with a float32 or uint8 input",
        )
    if kind == Type.UINT8 and scaling is None:
        return []  # the pixels themselves
    if scaling is None:
        # Pixels 0 to 255 are the same real numbers as -128 to 127, with another zero point.
        scale, zero = quantization or (1.0, 0)
        made = file.graph.tensors[front]
        made.quantization = schema.QuantizationParametersT()
        made.quantization.scale = np.array([scale], np.float32)
        made.quantization.zeroPoint = np.array([zero + 128], np.int64)
        return [_plain(file, Code.QUANTIZE, schema.QuantizeOptionsT())]
    stages = [_cast(file)]
    if scaling.bgr:
        axis = file.constant("channels", np.array([3], np.int32))
        options = schema.ReverseV2OptionsT()
        stages.append(lambda x, y: file.op(Code.REVERSE_V2, [x, axis], y, options))
    if scaling.multiplier != (1.0, 1.0, 1.0):
        times = file.constant("multiplier", np.array(scaling.multiplier, np.float32))
        stages.append(lambda x, y: file.op(Code.MUL, [x, times], y, schema.MulOptionsT()))
    if any(scaling.offset):
        plus = file.constant("offset", np.array(scaling.offset, np.float32))
        stages.append(lambda x, y: file.op(Code.ADD, [x, plus], y, schema.AddOptionsT()))
    if kind != Type.FLOAT32:
        stages.append(_plain(file, Code.QUANTIZE, schema.QuantizeOptionsT()))
    return stages


def _chain(file: ForeignFile, front: int, given: int, stages: list[Stage]) -> list[Any]:
    """Return the ops of all stages, from the frames to the model's own input."""
    size = file.shape(front)[1]
    operators, x = [], front
    for number, stage in enumerate(stages):
        if number == len(stages) - 1:
            y = given
        else:
            # Only a transpose of quantised values follows a stage that is not float32.
            after_all = number == len(stages) - 2 and len(file.shape(given)) == 4
            transposed = after_all and file.shape(given)[3] != 3
            kind = file.kind(given) if transposed else Type.FLOAT32
            quantization = file.quantization(given) if transposed else None
            y = file.tensor(f"frames/{number}", [1, size, size, 3], kind, quantization=quantization)
        operators.append(stage(x, y))
        x = y
    return operators


def _end(file: ForeignFile, made: int) -> int:
    """Add what turns the output into float32 vectors; return its number."""
    if file.kind(made) in QUANTISED:
        floats = file.tensor("latents/float", file.shape(made), Type.FLOAT32)
        options = schema.DequantizeOptionsT()
        # Version 2 takes int8.
        file.operators.append(file.op(Code.DEQUANTIZE, [made], floats, options, version=2))
        made = floats
    shape = file.shape(made)
    if len(shape) == 2:
        return made
    length = max(shape[1:])
    vectors = file.tensor("latents", [1, length], Type.FLOAT32)
    rows = file.constant("latents/shape", np.array([-1, length], np.int32))
    options = schema.ReshapeOptionsT()
    options.newShape = np.array([-1, length], np.int32)
    file.operators.append(file.op(Code.RESHAPE, [made, rows], vectors, options))
    return vectors


def _free_batch(file: ForeignFile, batch: int) -> None:
    """Let each reshape that keeps the batch take any number of images."""
    for operator in file.operators:
        if file.code_of(operator) != Code.RESHAPE:
            continue
        before, after = (file.shape(int(each[0])) for each in (operator.inputs, operator.outputs))
        if not (before and after and before[0] == after[0] == batch):
            continue
        free = np.array([-1, *after[1:]], np.int32)
        if operator.builtinOptions is not None and operator.builtinOptions.newShape is not None:
            operator.builtinOptions.newShape = free
        if len(operator.inputs) > 1 and file.ints_of(int(operator.inputs[1])) is not None:
            shape = file.constant("reshape/shape", free)
            operator.inputs = np.array([operator.inputs[0], shape], np.int32)


def _cast(file: ForeignFile) -> Stage:
    options = schema.CastOptionsT()
    options.inDataType, options.outDataType = Type.UINT8, Type.FLOAT32
    return _plain(file, Code.CAST, options)


def _transpose(file: ForeignFile) -> Stage:
    order = file.constant("channels_first", np.array([0, 3, 1, 2], np.int32))
    options = schema.TransposeOptionsT()
    return lambda x, y: file.op(Code.TRANSPOSE, [x, order], y, options)


def _plain(file: ForeignFile, code: int, options: Any) -> Stage:
    return lambda x, y: file.op(code, [x], y, options)
