"""Join two graphs: the outputs of the first become the inputs of the second."""

from __future__ import annotations

from collections.abc import Mapping

from tensorflow.lite.python import schema_py_generated as schema

from lrtflite_converters.tflite.graph import Code, Graph, Op, Tensor


def join(below: Graph, above: Graph, wires: Mapping[str, str]) -> Graph:
    """Return both graphs as one; `wires` are outputs of `below` by input of `above`.

    Types that differ are cast, as a learner casts latents for its head.
    """
    ops = list(below.ops)
    joined = Graph([*ops, *above.ops], dict(below.inputs), dict(above.outputs))
    for into, source in wires.items():
        given, taken = below.outputs[source], above.inputs[into]
        if given.kind != taken.kind:
            given = _cast(joined, given, taken, place=len(ops))
        joined.replace(taken, given)
    return joined


def _cast(graph: Graph, given: Tensor, taken: Tensor, *, place: int) -> Tensor:
    options = schema.CastOptionsT()
    options.inDataType, options.outDataType = given.kind, taken.kind
    made = Tensor(f"{given.name}/cast", given.shape, taken.kind)
    kind = schema.BuiltinOptions.CastOptions
    graph.ops.insert(place, Op(Code.CAST, [given], [made], options, kind))
    return made
