"""Replace the variables of a model with constants: the values of a state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrtflite.errors import ConversionError, StateError
from lrtflite_converters.tflite.graph import Code, Graph, Op, Tensor
from lrtflite_converters.tflite.graph_file import signature_graph, subgraph

# Ops that only variables need.
_HOUSEKEEPING = (Code.CALL_ONCE, Code.VAR_HANDLE)
# Ops that no inference needs, because they change variables or run another graph.
_REFUSED = (Code.ASSIGN_VARIABLE, Code.WHILE, Code.IF, Code.CALL)


def baked_graph(model: Any, signature: str, tensors: Mapping[str, NDArray[Any]]) -> Graph:
    """Return the graph of a signature, with constants in the place of variables.

    `tensors` are those of `save`. A variable that is not among them has the value from conversion.
    """
    graph = signature_graph(model, signature)
    values = _values(model, graph, tensors)
    handles = _handles(graph)
    for op in graph.ops:
        if op.code in _REFUSED:
            raise ConversionError(
                f"Expected {signature!r} to read variables only, got {op.name}",
                "write the head without it",
            )
        if op.code == Code.READ_VARIABLE:
            name = handles[id(op.inputs[0])]
            value = np.asarray(values[name])
            graph.replace(op.output, Tensor.constant(f"{signature}/{name}", value))
    graph.remove(*(op for op in graph.ops if op.code in (*_HOUSEKEEPING, Code.READ_VARIABLE)))
    return graph


def _values(
    model: Any, graph: Graph, tensors: Mapping[str, NDArray[Any]]
) -> dict[str, NDArray[Any]]:
    """Return the value of each variable, by the name that all signatures share."""
    found: dict[str, NDArray[Any]] = {}
    for op in graph.ops:
        if op.code == Code.CALL_ONCE:
            start = subgraph(model, op.options.initSubgraphIndex)
            found.update({name: t.value for name, t in _assigned(start) if t.value is not None})
    if tensors:
        # Two variables may have one name in the code, so ask `restore` which is which.
        restore = signature_graph(model, "restore")
        names = {id(tensor): name for name, tensor in restore.inputs.items()}
        for name, tensor in _assigned(restore):
            if id(tensor) in names:
                found[name] = _checked(tensors, names[id(tensor)], tensor)
    return found


def _checked(tensors: Mapping[str, NDArray[Any]], name: str, expected: Tensor) -> NDArray[Any]:
    """Return a tensor of the state, or raise StateError unless it is what the model takes."""
    value = tensors.get(name)
    if value is None or value.shape != expected.shape or value.dtype != expected.dtype:
        got = "nothing" if value is None else f"{value.shape} {value.dtype}"
        raise StateError(
            f"Expected {name!r} of {expected.shape} {expected.dtype} in the state, got {got}",
            "restore the state from a copy",
        )
    return value


def _assigned(graph: Graph) -> list[tuple[str, Tensor]]:
    """Return the variables that a graph assigns, and what it assigns to them."""
    handles = _handles(graph)
    return [
        (handles[id(op.inputs[0])], tensor)
        for op in graph.ops
        if op.code == Code.ASSIGN_VARIABLE and (tensor := op.inputs[1]) is not None
    ]


def _handles(graph: Graph) -> dict[int, str]:
    handles: list[Op] = [op for op in graph.ops if op.code == Code.VAR_HANDLE]
    return {id(op.output): op.options.sharedName.decode() for op in handles}
