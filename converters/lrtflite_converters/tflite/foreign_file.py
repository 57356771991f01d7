"""A `.tflite` file as an object that can be changed: new constants, tensors and ops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tensorflow.lite.python import schema_py_generated as schema

from lrtflite.errors import ModelError
from lrtflite_converters.tflite import packing

TYPES = {
    np.dtype(np.float32): schema.TensorType.FLOAT32,
    np.dtype(np.int32): schema.TensorType.INT32,
    np.dtype(np.uint8): schema.TensorType.UINT8,
    np.dtype(np.int8): schema.TensorType.INT8,
}
_NAMES = {value: name for name, value in vars(schema.TensorType).items() if name.isupper()}


class ForeignFile:
    """A model whose first subgraph is changed; tensors and buffers are given by their numbers."""

    def __init__(self, content: bytes, *, where: str) -> None:
        """Read a file, or raise ModelError if it is not a complete `.tflite` file."""
        if content[4:8] != packing.MARK:
            raise ModelError(
                f"Expected a .tflite file, got {where}, which is not one", "export the model again"
            )
        try:
            self.model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(content, 0))
            self.graph = self.model.subgraphs[0]
            self.operators = list(self.graph.operators or [])
            if any(buffer.offset > 1 for buffer in self.model.buffers):
                raise ValueError("weights outside the flatbuffer")
        except Exception as error:  # the generated reader checks nothing, and may raise anything
            raise ModelError(
                f"Expected a complete .tflite file of less than 2 GB, got a damaged or larger one: "
                f"{where}",
                "export the model again",
            ) from error

    @property
    def inputs(self) -> list[int]:
        return packing.numbers(self.graph.inputs)

    @property
    def outputs(self) -> list[int]:
        return packing.numbers(self.graph.outputs)

    @property
    def is_quantised(self) -> bool:
        """Return whether any tensor has 8-bit integers: weights, activations or both."""
        return any(each.type == schema.TensorType.INT8 for each in self.graph.tensors) or any(
            each.type == schema.TensorType.UINT8
            and each.quantization is not None
            and each.quantization.scale is not None
            for each in self.graph.tensors
        )

    def shape(self, tensor: int) -> list[int]:
        return packing.numbers(self.graph.tensors[tensor].shape)

    def kind(self, tensor: int) -> int:
        return int(self.graph.tensors[tensor].type)

    def kind_name(self, tensor: int) -> str:
        return _NAMES.get(self.kind(tensor), "?").lower()

    def quantization(self, tensor: int) -> tuple[float, int] | None:
        """Return the scale and the zero point of a tensor, or None if it has none or several."""
        found = self.graph.tensors[tensor].quantization
        if found is None or found.scale is None or len(found.scale) != 1:
            return None
        zero = found.zeroPoint
        return float(found.scale[0]), 0 if zero is None or not len(zero) else int(zero[0])

    def constant(self, name: str, value: NDArray[Any]) -> int:
        """Add a constant; return its number."""
        self.model.buffers.append(packing.AlignedBuffer.of(value))
        made = self.tensor(name, value.shape, TYPES[value.dtype])
        self.graph.tensors[made].buffer = len(self.model.buffers) - 1
        return made

    def tensor(
        self,
        name: str,
        shape: Sequence[int],
        kind: int,
        *,
        quantization: tuple[float, int] | None = None,
    ) -> int:
        """Add a tensor whose values are computed; return its number."""
        made = schema.TensorT()
        made.name, made.shape, made.type = name, np.array(shape, np.int32), kind
        made.buffer = 0
        if quantization is not None:
            made.quantization = schema.QuantizationParametersT()
            made.quantization.scale = np.array(quantization[:1], np.float32)
            made.quantization.zeroPoint = np.array(quantization[1:], np.int64)
        self.graph.tensors.append(made)
        return len(self.graph.tensors) - 1

    def op(
        self,
        code: int,
        inputs: Sequence[int],
        output: int,
        options: Any = None,
        *,
        version: int = 1,
    ) -> Any:
        """Return a new op, which the caller adds to `operators`."""
        made = schema.OperatorT()
        made.opcodeIndex = self._code(code, version)
        made.inputs = np.array(inputs, np.int32)
        made.outputs = np.array([output], np.int32)
        if options is not None:
            made.builtinOptions = options
            name = type(options).__name__.removesuffix("T")
            made.builtinOptionsType = getattr(schema.BuiltinOptions, name)
        return made

    def code_of(self, operator: Any) -> int:
        """Return the number of an op's kind; old files keep it in a field of 8 bits."""
        code = self.model.operatorCodes[operator.opcodeIndex]
        return int(max(code.builtinCode, code.deprecatedBuiltinCode))

    def ints_of(self, tensor: int) -> NDArray[np.int32] | None:
        """Return the value of an int32 constant, or None for anything else."""
        found = self.graph.tensors[tensor]
        data = self.model.buffers[found.buffer].data
        if found.type != schema.TensorType.INT32 or data is None or not len(data):
            return None
        return np.frombuffer(np.asarray(data, np.uint8).tobytes(), np.int32)

    def set_dynamic(self, tensor: int) -> None:
        """Declare that the first axis of a tensor can have any length; it is 1 at first."""
        found = self.graph.tensors[tensor]
        rest = self.shape(tensor)[1:]
        found.shape = np.array([1, *rest], np.int32)
        found.shapeSignature = np.array([-1, *rest], np.int32)

    def to_bytes(self, signature: str, inputs: dict[str, int], outputs: dict[str, int]) -> bytes:
        """Return the file with one signature, whose tensors are those of the first subgraph."""
        self.graph.operators = self.operators
        self.graph.inputs = np.array(list(inputs.values()), np.int32)
        self.graph.outputs = np.array(list(outputs.values()), np.int32)
        self.model.signatureDefs = [packing.signature(signature, inputs, outputs)]
        return packing.packed(self.model)

    def _code(self, code: int, version: int) -> int:
        self.model.operatorCodes.append(packing.operator_code(code, version))
        return len(self.model.operatorCodes) - 1
