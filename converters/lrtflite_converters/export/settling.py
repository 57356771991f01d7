"""Fix the shapes of a graph for one frame, and compute once what does not depend on the frame."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import tensorflow as tf

from lrtflite_converters.tflite.graph import Code, Graph, Tensor
from lrtflite_converters.tflite.graph_file import to_bytes


def interpreter(content: bytes, **options: Any) -> Any:
    """Return TensorFlow's own interpreter: a TFLite runtime next to TensorFlow can crash."""
    with warnings.catch_warnings():
        # TensorFlow announces on every use that its interpreter moved to another package.
        warnings.simplefilter("ignore")
        made = tf.lite.Interpreter(
            model_content=content,
            experimental_op_resolver_type=(
                tf.lite.experimental.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
            ),
            **options,
        )
    made.allocate_tensors()
    return made


def settle(graph: Graph) -> None:
    """Run the graph on a black frame; take over shapes, and values that every frame gives."""
    graph.drop_dead()
    _own_constants(graph)
    made = interpreter(to_bytes(graph), experimental_preserve_all_tensors=True)
    for detail in made.get_input_details():
        made.set_tensor(detail["index"], np.zeros(detail["shape"], detail["dtype"]))
    made.invoke()
    tensors = graph.tensors
    shapes = {detail["index"]: detail["shape"] for detail in made.get_tensor_details()}
    for number, tensor in enumerate(tensors):
        if tensor.value is None:
            tensor.shape = tuple(int(n) for n in shapes[number])
    fixed = {id(each) for each in tensors if each.is_constant}
    numbers = {id(each): number for number, each in enumerate(tensors)}
    gone = []
    for op in graph.ops:
        # With fixed shapes, a shape is a constant too.
        known = all(each is None or id(each) in fixed for each in op.inputs)
        if known or op.code == Code.SHAPE:
            gone.append(op)
            for tensor in op.outputs:
                fixed.add(id(tensor))
                tensor.value = np.array(made.get_tensor(numbers[id(tensor)]))
    graph.remove(*gone)


def _own_constants(graph: Graph) -> None:
    """Give each op constants of its own, so that a change to one leaves the others alone."""
    for op in graph.ops:
        op.inputs = [
            each
            if each is None or each.value is None
            else Tensor(each.name, each.shape, each.kind, each.value, each.quantization)
            for each in op.inputs
        ]
