"""Read graphs from the bytes of a TFLite file, and write one graph as such a file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from tensorflow.lite.python import schema_py_generated as schema

from lrtflite.errors import BundleError, ConversionError
from lrtflite_converters.tflite import packing
from lrtflite_converters.tflite.graph import DTYPES, Graph, Op, Tensor

SIGNATURE = "serving_default"
SCHEMA_VERSION = 3


def load(content: bytes, *, where: str) -> Any:
    """Return the model of a TFLite file as an object of the schema."""
    try:
        return schema.ModelT.InitFromObj(schema.Model.GetRootAs(content, 0))
    except Exception as error:  # the generated reader checks nothing, and may raise anything
        raise BundleError(
            f"Expected a complete TFLite file, got a damaged one: {where}", "copy the bundle again"
        ) from error


def signature_graph(model: Any, name: str) -> Graph:
    """Return the graph of a signature; its inputs and outputs have the signature's names."""
    for each in model.signatureDefs or ():
        if each.signatureKey.decode() == name:
            graph, tensors = _subgraph(model, each.subgraphIndex)
            graph.inputs = {i.name.decode(): tensors[i.tensorIndex] for i in each.inputs}
            graph.outputs = {o.name.decode(): tensors[o.tensorIndex] for o in each.outputs}
            return graph
    raise ConversionError(
        f"Expected the signature {name!r}, got a model without it", "convert again"
    )


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
    model.buffers, model.operatorCodes = [packing.AlignedBuffer()], []
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
            model.operatorCodes.append(packing.operator_code(op.code, op.version))
        main.operators.append(_operator(op, codes[op.code, op.version], numbers))
    model.subgraphs = [main]
    model.signatureDefs = [_signature(graph, numbers)]
    if metadata is not None:
        entry = schema.MetadataT()
        entry.name, entry.buffer = "TFLITE_METADATA", len(model.buffers)
        model.buffers.append(packing.AlignedBuffer(np.frombuffer(metadata, np.uint8)))
        model.metadata = [entry]
    return packing.packed(model)


def _subgraph(model: Any, number: int) -> tuple[Graph, list[Tensor]]:
    found = model.subgraphs[number]
    tensors = [_tensor(each, model.buffers) for each in found.tensors]
    ops = [_op(each, model.operatorCodes, tensors) for each in found.operators or ()]
    inputs = {str(i): tensors[place] for i, place in enumerate(packing.numbers(found.inputs))}
    outputs = {str(i): tensors[place] for i, place in enumerate(packing.numbers(found.outputs))}
    return Graph(ops, inputs, outputs), tensors


def _tensor(found: Any, buffers: Sequence[Any]) -> Tensor:
    shape, data = tuple(packing.numbers(found.shape)), buffers[found.buffer].data
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
            f"Expected built-in TFLite ops only, got {code.customCode.decode()!r}", "convert again"
        )
    return Op(
        code=max(code.builtinCode, code.deprecatedBuiltinCode),
        inputs=[tensors[i] if i >= 0 else None for i in packing.numbers(found.inputs)],
        outputs=[tensors[i] for i in packing.numbers(found.outputs)],
        options=found.builtinOptions,
        options_type=found.builtinOptionsType,
        version=code.version,
    )


def _packed(tensor: Tensor, buffers: list[Any]) -> Any:
    packed = schema.TensorT()
    packed.name, packed.shape = tensor.name, np.array(tensor.shape, np.int32)
    packed.type, packed.quantization, packed.buffer = tensor.kind, tensor.quantization, 0
    if tensor.value is not None:
        packed.buffer = len(buffers)
        buffers.append(packing.AlignedBuffer.of(tensor.value))
    return packed


def _operator(op: Op, code: int, numbers: dict[int, int]) -> Any:
    packed = schema.OperatorT()
    packed.opcodeIndex = code
    packed.inputs = np.array([-1 if t is None else numbers[id(t)] for t in op.inputs], np.int32)
    packed.outputs = np.array([numbers[id(each)] for each in op.outputs], np.int32)
    packed.builtinOptions, packed.builtinOptionsType = op.options, op.options_type
    return packed


def _signature(graph: Graph, numbers: dict[int, int]) -> Any:
    inputs, outputs = (
        {name: numbers[id(tensor)] for name, tensor in tensors.items()}
        for tensors in (graph.inputs, graph.outputs)
    )
    return packing.signature(SIGNATURE, inputs, outputs)
