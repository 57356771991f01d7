"""Modules whose functions become the signatures of a TFLite model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Callable

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from lrtflite.contract.signatures import SignatureSpec, Sizes
from lrtflite.runtime.model import Signature, Tensor
from lrtflite_converters.tflite.convert import to_tflite

Outputs = dict[str, tf.Tensor]
# A number that a client feeds. Its shape is [1], because ai-edge-litert's 64-bit ARM wheels crash
# when an input is resized to [], as Python's signature runner does with every scalar.
SCALAR = Tensor((1,), np.dtype(np.float32))


class SignedModule(tf.Module):
    """A module with signatures, which it also runs in TensorFlow, as a client would.

    `functions` has the traced functions by name; `signatures` has their inputs and outputs.
    """

    functions: dict[str, Any]
    signatures: dict[str, Signature]

    def __init__(self) -> None:
        super().__init__()
        # Not tracked, because traced functions are saved as signatures only.
        object.__setattr__(self, "functions", {})
        object.__setattr__(self, "signatures", {})

    def declare(
        self,
        spec: SignatureSpec,
        sizes: Sizes,
        function: Callable[..., Outputs],
        *,
        rates: tuple[str, ...] = (),
        tensors: Mapping[str, tf.Variable] | None = None,
        options: tuple[str, ...] = (),
    ) -> None:
        """Trace `function` as a signature of the contract.

        `function` gets the contract's inputs by name, the `rates` as one mapping of scalars (if the
        signature takes any) and the named `tensors` as another. `options` are the optional inputs
        that it takes. Scalar outputs become [1].
        """
        wanted = {**spec.inputs, **{name: spec.optional_inputs[name] for name in options}}
        fixed = {name: sizes.tensor(each) for name, each in wanted.items()}
        named = {
            name: Tensor(tuple(variable.shape), np.dtype(variable.dtype.as_numpy_dtype))
            for name, variable in (tensors or {}).items()
        }
        inputs = {**fixed, **dict.fromkeys(rates, SCALAR), **named}

        def traced(**given: tf.Tensor) -> Outputs:
            words: dict[str, Any] = {name: given[name] for name in fixed}
            if spec.takes_rates:
                words["rates"] = {name: tf.reshape(given[name], []) for name in rates}
            if named:
                words["tensors"] = {name: given[name] for name in named}
            outputs = function(**words)
            return {name: _at_least_1d(value) for name, value in outputs.items()}

        concrete = tf.function(traced, autograph=False).get_concrete_function(
            **{name: _spec(name, tensor) for name, tensor in inputs.items()}
        )
        self.functions[spec.name] = concrete
        outputs = {
            name: Tensor(
                tuple(-1 if n is None else n for n in found.shape),
                np.dtype(found.dtype.as_numpy_dtype),
            )
            for name, found in concrete.structured_outputs.items()
        }
        self.signatures[spec.name] = Signature(inputs, outputs)

    def run(self, signature: str, **inputs: NDArray[Any]) -> dict[str, NDArray[Any]]:
        """Call a signature with arrays, as `lrtflite.runtime.model.Model` does."""
        given = {name: tf.constant(value) for name, value in inputs.items()}
        return {name: value.numpy() for name, value in self.functions[signature](**given).items()}

    def to_tflite(self, *, variables: bool) -> bytes:
        """Return the content of the `.tflite` file; see `to_tflite`."""
        return to_tflite(self, self.functions, variables=variables)


def saved(state: Mapping[str, tf.Variable], zero: tf.Tensor) -> Outputs:
    """Return the tensors of `save`; the smallest uses `zero`, so that the converter keeps it."""
    smallest = min(state, key=lambda name: int(np.prod(state[name].shape)))
    return {
        name: tf.identity(variable) + zero if name == smallest else tf.identity(variable)
        for name, variable in state.items()
    }


def _at_least_1d(value: tf.Tensor) -> tf.Tensor:
    return tf.reshape(value, [1]) if value.shape.rank == 0 else value


def _spec(name: str, tensor: Tensor) -> tf.TensorSpec:
    shape = [None if n == -1 else n for n in tensor.shape]
    return tf.TensorSpec(shape, tf.dtypes.as_dtype(tensor.dtype), name)
