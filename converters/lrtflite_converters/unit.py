"""A unit of the network: a convolution, Batch Renorm and an activation, with its variables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import tensorflow as tf

from lrtflite_converters import differentiable as ops
from lrtflite_converters.differentiable import Activation, Pullback, Renorm
from lrtflite_converters.window import Edges, Tensor

STATE = ("kernel", "gamma", "beta", "mean", "variance")
# Limits of r and d, those that the authors' code ends its first batch with. The paper's 1.25 and
# 0.5 are for later, for a network whose moments know the data already: with a backbone from
# elsewhere they let a session train on other features than inference will see
# (docs/replay-layers.md).
R_MAX, D_MAX = 3.0, 5.0


@dataclass(frozen=True)
class Unit:
    """What a unit computes, and the values it begins with. Shapes are without the batch."""

    name: str
    kind: str  # "pointwise", "depthwise" or "convolution"
    image: tuple[int, int, int]  # height, width and channels that come in
    output: tuple[int, int, int]
    stride: int
    edges: Edges
    activation: Activation
    epsilon: float
    trains_kernel: bool
    values: Mapping[str, Any]  # an array for each name in STATE

    def convolve(
        self, x: Tensor, kernel: Tensor, *, constant: bool = False
    ) -> tuple[Tensor, Pullback]:
        """The convolution, in whatever rank suits it; `constant` if the kernel never changes."""
        if self.kind == "pointwise":
            return ops.pointwise(tf.reshape(x, [1, -1, self.image[2]]), kernel)
        x = tf.reshape(x, [-1, *self.image])
        if self.kind == "convolution":
            return ops.convolution(x, kernel, stride=self.stride, edges=self.edges)
        return ops.depthwise(x, kernel, stride=self.stride, edges=self.edges, constant=constant)

    def infer(self, x: Tensor, values: Mapping[str, Tensor]) -> Tensor:
        """The whole unit with its moving moments; `values` has a tensor for each name in STATE."""
        z, _ = self.convolve(x, values["kernel"])
        scale = values["gamma"] / tf.sqrt(values["variance"] + self.epsilon)
        return self.activation.value(z * scale + (values["beta"] - values["mean"] * scale))

    def renorm(self, zs: Sequence[Tensor], values: Mapping[str, Tensor]) -> Renorm:
        """Batch Renorm of what the convolution gave, the parts of one batch."""
        moments = (values[name] for name in STATE[1:])
        return Renorm.of(zs, *moments, r_max=R_MAX, d_max=D_MAX, epsilon=self.epsilon)

    @property
    def prefix(self) -> str:
        """What the names of its tensors begin with; a signature's names cannot have slashes."""
        return self.name.replace("/", "_")


class Weights(tf.Module):
    """A unit's variables: its state, and momentum for what trains."""

    def __init__(self, unit: Unit) -> None:
        super().__init__()
        self.kernel, self.gamma, self.beta, self.mean, self.variance = (
            tf.Variable(np.asarray(unit.values[name], np.float32), name=f"{unit.prefix}_{name}")
            for name in STATE
        )
        trained = ("kernel", "gamma", "beta") if unit.trains_kernel else ("gamma", "beta")
        # What it begins with does not matter, `begin` comes first; but the file holds it, and these
        # values it holds anyhow.
        self.velocity = {
            name: tf.Variable(getattr(self, name), name=f"{unit.prefix}_{name}_v")
            for name in trained
        }

    def read(self) -> dict[str, Tensor]:
        return {name: tf.convert_to_tensor(getattr(self, name)) for name in STATE}


@dataclass(frozen=True)
class Rates:
    """Of one SGD step; each is a scalar."""

    lr: Tensor
    momentum: Tensor
    weight_decay: Tensor

    def after(self, trigger: Tensor) -> Rates:
        """The same, for a step that should not be prepared before `trigger` is there."""
        return replace(
            self,
            momentum=ops.after(self.momentum, trigger, apart=True),
            weight_decay=ops.after(self.weight_decay, trigger, apart=True),
        )

    def step(
        self,
        variable: tf.Variable,
        value: Tensor,
        velocity: tf.Variable,
        gradient: Tensor,
        *,
        decays: bool,
    ) -> None:
        """v = momentum * v + gradient [+ decay * w]; w = w - lr * v. `value` is what w holds."""
        if decays:
            gradient = gradient + self.weight_decay * value
        moved = self.momentum * velocity + gradient
        velocity.assign(moved)
        variable.assign(value - self.lr * moved)
