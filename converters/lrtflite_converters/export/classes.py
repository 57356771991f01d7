"""Keep the outputs of learned classes, and recognise the softmax over them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from tensorflow.lite.python import schema_py_generated as schema

from lrtflite_converters.tflite.graph import Code, Graph, Op, Tensor

# Score that `softmax_over` subtracts from slots that have not learned.
_NEVER = 1e8


def keep_classes(graph: Graph, name: str, slots: Sequence[int]) -> None:
    """Let the output `name` (1, C) have one column for each of `slots`, in this order.

    A softmax over the learned slots, written out as heads do, becomes the op SOFTMAX of their
    scores. Any other head keeps its ops, and the columns are taken from its output.
    """
    probabilities = graph.outputs[name]
    places = np.array(slots, np.int32)
    scores = _scores_of_softmax(graph, probabilities, places)
    found = probabilities if scores is None else scores
    if list(slots) != list(range(found.shape[-1])):
        kept = Tensor.float32(f"{name}/learned", (1, len(slots)))
        options = schema.GatherOptionsT()
        options.axis = 1
        index = Tensor.constant(f"{name}/slots", places)
        kind = schema.BuiltinOptions.GatherOptions
        graph.ops.append(Op(Code.GATHER, [found, index], [kept], options, kind))
        found = kept
    if scores is not None:
        softmax = schema.SoftmaxOptionsT()
        softmax.beta = 1.0
        made = Tensor.float32(name, (1, len(slots)))
        kind = schema.BuiltinOptions.SoftmaxOptions
        graph.ops.append(Op(Code.SOFTMAX, [found], [made], softmax, kind))
        found = made
    graph.outputs = {name: found}
    graph.drop_dead()


def _scores_of_softmax(graph: Graph, output: Tensor, slots: NDArray[np.int32]) -> Tensor | None:
    """Return the scores whose softmax over `slots` the output is; None if it is anything else.

    The ops are those of `softmax_over`: with m = scores - mask and
    w = exp(m - max(m)) * learned, the output is w / max(sum(w), 1).
    """
    division = _made_by(graph, output, Code.DIV)
    if division is None:
        return None
    weights, total = division.inputs
    at_least = _made_by(graph, total, Code.MAXIMUM)
    product = _made_by(graph, weights, Code.MUL)
    if at_least is None or product is None:
        return None
    summed = _made_by(graph, at_least.inputs[0], Code.SUM)
    exp = _made_by(graph, product.inputs[0], Code.EXP)
    if summed is None or exp is None or summed.inputs[0] is not weights:
        return None
    offset = _made_by(graph, exp.inputs[0], Code.SUB)
    largest = None if offset is None else _made_by(graph, offset.inputs[1], Code.REDUCE_MAX)
    if offset is None or largest is None or largest.inputs[0] is not offset.inputs[0]:
        return None
    masking = _made_by(graph, offset.inputs[0], Code.SUB)
    if masking is None or not _masks(masking.inputs[1], product.inputs[1], slots):
        return None
    return masking.inputs[0]


def _made_by(graph: Graph, tensor: Tensor | None, code: int) -> Op | None:
    op = graph.maker(tensor)
    return op if op is not None and op.code == code else None


def _masks(mask: Tensor | None, learned: Tensor | None, slots: NDArray[np.int32]) -> bool:
    """Return whether both constants pick exactly `slots`."""
    if mask is None or mask.value is None or learned is None or learned.value is None:
        return False
    wanted = np.zeros(learned.value.shape[-1])
    wanted[slots] = 1
    if mask.value.size != learned.value.size or learned.value.size != len(wanted):
        return False
    free = mask.value.ravel() > _NEVER
    return bool(np.array_equal(learned.value.ravel(), wanted) and np.array_equal(free, 1 - wanted))
