"""A weight that trains: its variable, its momentum, and its step under a regulariser."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import tensorflow as tf

from lrtflite_converters.blocks.block import Values
from lrtflite_converters.gradients.ordering import after as ordered_after
from lrtflite_converters.gradients.window import Tensor
from lrtflite_converters.training.regularisers.regulariser import Regulariser


@dataclass(frozen=True)
class Sgd:
    """Rates of one step of SGD with momentum; each is a scalar."""

    lr: Tensor
    momentum: Tensor
    weight_decay: Tensor

    def after(self, trigger: Tensor) -> Sgd:
        """Return the same rates, for a step that must wait for `trigger`."""
        return replace(
            self,
            momentum=ordered_after(self.momentum, trigger, apart=True),
            weight_decay=ordered_after(self.weight_decay, trigger, apart=True),
        )


class Parameter(tf.Module):
    """A variable with its momentum."""

    def __init__(self, name: str, variable: tf.Variable, *, decays: bool) -> None:
        super().__init__()
        self.label = name
        self.decays = decays
        self.variable = variable
        # The initial value is never used, because `begin` sets it. A copy of the weights adds
        # nothing to the file, which holds them already.
        self.velocity = tf.Variable(variable, name=f"{name}_v")

    def zeros_like(self, name: str) -> tf.Variable:
        """Return a variable of zeros in the shape of this one, for a regulariser."""
        return tf.Variable(tf.zeros(self.variable.shape), name=f"{self.label}_{name}")

    def begin(self, zero: Tensor) -> None:
        """Start a session: set the momentum to `zero`, which must not be a constant.

        A constant would be written to the file as one zero per weight.
        """
        self.velocity.assign(tf.fill(self.velocity.shape, zero))

    def step(
        self,
        value: Tensor,
        gradient: Tensor,
        sgd: Sgd,
        regulariser: Regulariser,
        rates: Mapping[str, Tensor],
    ) -> None:
        """Compute v = momentum * v + gradient [+ decay * w], w = w - lr * v; `value` is w."""
        plain = gradient
        gradient = regulariser.gradient(self, value, gradient, rates)
        if self.decays:
            gradient = gradient + sgd.weight_decay * value
        moved = sgd.momentum * self.velocity + gradient
        self.velocity.assign(moved)
        new = value - regulariser.update(self, sgd.lr * moved, rates)
        self.variable.assign(new)
        regulariser.stepped(self, plain, value, new)


@dataclass(frozen=True)
class TrunkStep:
    """One step on all parameters of a trunk, and on its moments."""

    parameters: Mapping[str, Parameter]
    variables: Mapping[str, tf.Variable]
    sgd: Sgd
    moment_rate: Tensor
    regulariser: Regulariser
    rates: Mapping[str, Tensor]

    def weights(self, values: Values, gradients: Mapping[str, Tensor], *, after: Tensor) -> None:
        late = self.sgd.after(after)
        for name, gradient in gradients.items():
            self.parameters[name].step(values[name], gradient, late, self.regulariser, self.rates)

    def moments(self, norm: Any, names: tuple[str, str], values: Values) -> None:
        moved = norm.moved(*(values[name] for name in names), rate=self.moment_rate)
        for name, value in zip(names, moved):
            self.variables[name].assign(value)


@dataclass(frozen=True)
class ObservedStep:
    """A backward pass that moves nothing: a regulariser sees the gradients of all parameters."""

    parameters: Mapping[str, Parameter]
    regulariser: Regulariser

    def weights(self, values: Values, gradients: Mapping[str, Tensor], *, after: Tensor) -> None:
        for name, gradient in gradients.items():
            self.regulariser.observe(self.parameters[name], gradient)

    def moments(self, norm: Any, names: tuple[str, str], values: Values) -> None:
        """Leave the moments as they are."""
