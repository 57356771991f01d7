"""Functions of named inputs, which become the signatures of a TFLite model."""

from __future__ import annotations

from typing import Any, Callable, Optional

import tensorflow as tf

Input = tuple[tuple[Optional[int], ...], tf.DType]  # shape, None where free, and type
# A number that a client feeds. Shape [1] and not []: ai-edge-litert's 64-bit ARM wheels crash when
# an input is resized to an empty shape, which Python's signature runner does to every scalar.
SCALAR: Input = ((1,), tf.float32)


def signature(function: Callable[..., Any], **inputs: Input) -> Any:
    """Trace `function` with these inputs; the result can be called with them by name.

    An input declared as `SCALAR` reaches `function` as a tensor of shape [].
    """
    specs = {name: tf.TensorSpec(shape, dtype, name) for name, (shape, dtype) in inputs.items()}

    def unwrapped(**given: tf.Tensor) -> Any:
        return function(
            **{
                name: tf.reshape(value, []) if inputs[name] == SCALAR else value
                for name, value in given.items()
            }
        )

    return tf.function(unwrapped, autograph=False).get_concrete_function(**specs)
