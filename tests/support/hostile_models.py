"""Bundles whose heads are well-formed and wrong: running them crashes a runtime, or fills the RAM.

They are made of a whole bundle with the generated schema of the package ai-edge-litert.
"""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lrtflite.files.digest import digest

# Elements of one tensor that fills RAM: 256 MB.
_LARGE = (1 << 13, 1 << 13)


def hostile(bundle: Path, out: Path, change: Callable[[Any, Any], None]) -> Path:
    """Copy a bundle to `out`, with `change(schema, model)` made to its head."""
    flatbuffers = pytest.importorskip("flatbuffers")
    schema = pytest.importorskip("ai_edge_litert.schema_py_generated")
    shutil.copytree(bundle, out)
    path = out / "head.tflite"
    model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(path.read_bytes(), 0))
    change(schema, model)
    builder = flatbuffers.Builder(1 << 20)
    builder.Finish(model.Pack(builder), b"TFL3")
    path.write_bytes(bytes(builder.Output()))
    edit(out, files={"head.tflite": vars(digest(path))})
    return out


def edit(bundle: Path, **changes: Any) -> None:
    """Change fields of a bundle's manifest; `files` are added to those that it lists."""
    path = bundle / "manifest.json"
    found = json.loads(path.read_text())
    files = {**found["files"], **changes.pop("files", {})}
    path.write_text(json.dumps({**found, **changes, "files": files}))


def without_operand(signature: str, kind: str) -> Callable[[Any, Any], None]:
    """Take the last operand from the first op of a kind. LiteRT reads it through a null pointer."""

    def change(schema: Any, model: Any) -> None:
        graph = _graph(model, signature)
        op = next(each for each in graph.operators if _kind(schema, model, each) == kind)
        op.inputs = np.array([*op.inputs[:-1], -1], np.int32)

    return change


def fills_ram(tensors: int, shape: tuple[int, ...] = _LARGE) -> Callable[[Any, Any], None]:
    """Let `begin` fill this number of tensors of 256 MB each."""

    def change(schema: Any, model: Any) -> None:
        graph = _graph(model, "begin")
        fill = next(each for each in graph.operators if _kind(schema, model, each) == "FILL")
        place = graph.operators.index(fill)
        buffer = schema.BufferT()
        buffer.data = np.frombuffer(np.array(shape, np.int32).tobytes(), np.uint8)
        model.buffers.append(buffer)
        graph.tensors.append(_tensor(schema, (len(shape),), "INT32", len(model.buffers) - 1))
        sizes = len(graph.tensors) - 1
        for _ in range(tensors):
            graph.tensors.append(_tensor(schema, shape, "FLOAT32", 0))
            op = copy.deepcopy(fill)
            op.inputs = np.array([sizes, fill.inputs[1]], np.int32)
            op.outputs = np.array([len(graph.tensors) - 1], np.int32)
            graph.operators.insert(place + 1, op)
            # An output stays in RAM until the end.
            graph.outputs = np.array([*graph.outputs, len(graph.tensors) - 1], np.int32)

    return change


def _tensor(schema: Any, shape: tuple[int, ...], kind: str, buffer: int) -> Any:
    tensor = schema.TensorT()
    tensor.name, tensor.shape = b"more", np.array(shape, np.int32)
    tensor.type, tensor.buffer = getattr(schema.TensorType, kind), buffer
    return tensor


def _graph(model: Any, signature: str) -> Any:
    named = {each.signatureKey: each.subgraphIndex for each in model.signatureDefs}
    return model.subgraphs[named[signature.encode()]]


def _kind(schema: Any, model: Any, op: Any) -> str:
    names = {number: name for name, number in vars(schema.BuiltinOperator).items()}
    return str(names[model.operatorCodes[op.opcodeIndex].builtinCode])
