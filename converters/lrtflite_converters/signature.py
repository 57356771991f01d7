"""Functions of named inputs, which become the signatures of a TFLite model."""

from __future__ import annotations

from typing import Any, Callable, Optional

import tensorflow as tf

Input = tuple[tuple[Optional[int], ...], tf.DType]  # shape, None where free, and type


def signature(function: Callable[..., Any], **inputs: Input) -> Any:
    """Trace `function` with these inputs; the result can be called with them by name."""
    specs = {name: tf.TensorSpec(shape, dtype, name) for name, (shape, dtype) in inputs.items()}
    return tf.function(function, autograph=False).get_concrete_function(**specs)
