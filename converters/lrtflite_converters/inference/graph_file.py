"""Read graphs from the bytes of a TFLite file, and write one graph as such a file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import flatbuffers
import numpy as np
from numpy.typing import NDArray
from tensorflow.lite.python import schema_py_generated as schema

from lrtflite.errors import BundleError, ConversionError
from lrtflite_converters.inference.graph import DTYPES, Graph, Op, Tensor

SIGNATURE = "serving_default"
SCHEMA_VERSION = 3
# Bytes that the constants of a TFLite file are aligned to, as in TensorFlow's own files.
ALIGNMENT = 16


def load(content: bytes, *, where: str) -> Any:
    """Return the model of a TFLite file as an object of the schema."""
    try:
        return schema.ModelT.InitFromObj(schema.Model.GetRootAs(content, 0))
    except Exception as error:  # the generated reader checks nothing, and may raise anything
        raise BundleError(
            f"Expected a complete TFLite file, got a damaged one: {where}; copy the bundle again"
        ) from error


def signature_graph(model: Any, name: str) -> Graph:
    """Return the graph of a signature; its inputs and outputs have the signature's names."""
    for each in model.signatureDefs or ():
        if each.signatureKey.decode() == name:
            graph, tensors = _subgraph(model, each.subgraphIndex)
            graph.inputs = {i.name.decode(): tensors[i.tensorIndex] for i in each.inputs}
            graph.outputs = {o.name.decode(): tensors[o.tensorIndex] for o in each.outputs}
            return graph
    raise ConversionError(f"Expected the signature {name!r}, got a model without it; convert again")


def main_graph(model: Any) -> Graph:
    """Return the first graph of a model; inputs and outputs are named by their numbers."""
    return _subgraph(model, 0)[0]


def subgraph(model: Any, number: int) -> Graph:
    """Return a graph of a model by its number."""
    return _subgraph(model, number)[0]


def to_bytes(graph: Graph, *, description: str = "", metadata: bytes | None = None) -> bytes:
    """Return a TFLite file with one graph and one signature, SIGNATURE."""
    model, main = schema.ModelT(), schema.SubGraphT()
    model.version, model.description = SCHEMA_VERSION, description
    model.buffers, model.operatorCodes = [_Buffer(None)], []
    tensors = graph.tensors
    numbers = {id(each): number for number, each in enumerate(tensors)}
    main.tensors = [_packed(each, model.buffers) for each in tensors]
    main.inputs = np.array([numbers[id(each)] for each in graph.inputs.values()], np.int32)
    main.outputs = np.array([numbers[id(each)] for each in graph.outputs.values()], np.int32)
    main.name = "main"
    codes: dict[tuple[int, int], int] = {}
    main.operators = []
    for op in graph.ops:
        if (op.code, op.version) not in codes:
            codes[op.code, op.version] = len(codes)
            model.operatorCodes.append(_operator_code(op))
        main.operators.append(_operator(op, codes[op.code, op.version], numbers))
    model.subgraphs = [main]
    model.signatureDefs = [_signature(graph, numbers)]
    if metadata is not None:
        entry = schema.MetadataT()
        entry.name, entry.buffer = "TFLITE_METADATA", len(model.buffers)
        model.buffers.append(_Buffer(np.frombuffer(metadata, np.uint8)))
        model.metadata = [entry]
    builder = flatbuffers.Builder(1 << 20)
    builder.Finish(model.Pack(builder), file_identifier=b"TFL3")
    return bytes(builder.Output())


class _Buffer(schema.BufferT):
    """A constant whose bytes are aligned; the generated class aligns to 4 bytes only."""

    def __init__(self, data: NDArray[np.uint8] | None) -> None:
        super().__init__()
        self.data = data

    def Pack(self, builder: Any) -> Any:  # noqa: N802 - the name in the schema's classes
        at = None
        if self.data is not None:
            size = len(self.data)
            builder.StartVector(1, size, ALIGNMENT)
            builder.head -= size
            builder.Bytes[builder.head : builder.head + size] = self.data.tobytes()
            at = builder.EndVector()
        schema.BufferStart(builder)
        if at is not None:
            schema.BufferAddData(builder, at)
        return schema.BufferEnd(builder)


def _subgraph(model: Any, number: int) -> tuple[Graph, list[Tensor]]:
    found = model.subgraphs[number]
    tensors = [_tensor(each, model.buffers) for each in found.tensors]
    ops = [_op(each, model.operatorCodes, tensors) for each in found.operators or ()]
    inputs = {str(i): tensors[place] for i, place in enumerate(_numbers(found.inputs))}
    outputs = {str(i): tensors[place] for i, place in enumerate(_numbers(found.outputs))}
    return Graph(ops, inputs, outputs), tensors


def _tensor(found: Any, buffers: Sequence[Any]) -> Tensor:
    shape, data = tuple(_numbers(found.shape)), buffers[found.buffer].data
    value = None
    if data is not None and len(data) and found.type in DTYPES:
        raw = np.asarray(data, np.uint8).tobytes()
        value = np.frombuffer(raw, DTYPES[found.type]).reshape(shape)
    name = (found.name or b"").decode(errors="replace")
    return Tensor(name, shape, found.type, value, found.quantization)


def _op(found: Any, codes: Sequence[Any], tensors: Sequence[Tensor]) -> Op:
    code = codes[found.opcodeIndex]
    if code.customCode:
        raise ConversionError(
            f"Expected built-in TFLite ops only, got {code.customCode.decode()!r}; convert again"
        )
    return Op(
        code=max(code.builtinCode, code.deprecatedBuiltinCode),
        inputs=[tensors[i] if i >= 0 else None for i in _numbers(found.inputs)],
        outputs=[tensors[i] for i in _numbers(found.outputs)],
        options=found.builtinOptions,
        options_type=found.builtinOptionsType,
        version=code.version,
    )


def _numbers(found: Iterable[int] | None) -> list[int]:
    return [] if found is None else [int(each) for each in found]


def _packed(tensor: Tensor, buffers: list[Any]) -> Any:
    packed = schema.TensorT()
    packed.name, packed.shape = tensor.name, np.array(tensor.shape, np.int32)
    packed.type, packed.quantization, packed.buffer = tensor.kind, tensor.quantization, 0
    if tensor.value is not None:
        packed.buffer = len(buffers)
        buffers.append(_Buffer(np.frombuffer(tensor.value.tobytes(), np.uint8)))
    return packed


def _operator_code(op: Op) -> Any:
    code = schema.OperatorCodeT()
    # Old readers know the 8-bit field only.
    code.deprecatedBuiltinCode, code.builtinCode = min(op.code, 127), op.code
    code.version = op.version
    return code


def _operator(op: Op, code: int, numbers: dict[int, int]) -> Any:
    packed = schema.OperatorT()
    packed.opcodeIndex = code
    packed.inputs = np.array([-1 if t is None else numbers[id(t)] for t in op.inputs], np.int32)
    packed.outputs = np.array([numbers[id(each)] for each in op.outputs], np.int32)
    packed.builtinOptions, packed.builtinOptionsType = op.options, op.options_type
    return packed


def _signature(graph: Graph, numbers: dict[int, int]) -> Any:
    def maps(tensors: dict[str, Tensor]) -> list[Any]:
        found = []
        for name, tensor in tensors.items():
            each = schema.TensorMapT()
            each.name, each.tensorIndex = name, numbers[id(tensor)]
            found.append(each)
        return found

    signature = schema.SignatureDefT()
    signature.signatureKey, signature.subgraphIndex = SIGNATURE, 0
    signature.inputs, signature.outputs = maps(graph.inputs), maps(graph.outputs)
    return signature
