"""A unit: a convolution, Batch Renorm and an activation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from lrtflite_converters.blocks.block import Block, BlockInput, Pass, Shape, Step, Trace, Values
from lrtflite_converters.blocks.convolving import Convolving
from lrtflite_converters.gradients.differentiable import Activation
from lrtflite_converters.gradients.renorm import Renorm
from lrtflite_converters.gradients.window import Edges, Tensor

TENSORS = ("kernel", "gamma", "beta", "mean", "variance")


@dataclass(frozen=True)
class Unit(Convolving, Block):
    """A convolution with Batch Renorm and an activation, and its initial values.

    The kind "none" is Batch Renorm alone, without a kernel.
    """

    name: str
    kind: str
    image: Shape
    output: Shape
    stride: int
    edges: Edges
    activation: Activation
    epsilon: float
    trains_kernel: bool
    arrays: Mapping[str, Any]  # one per name in TENSORS; no kernel if the kind is "none"

    @property
    def tensors(self) -> dict[str, Any]:
        return {self.named(tensor): value for tensor, value in self.arrays.items()}

    @property
    def trained(self) -> dict[str, bool]:
        kernel = {self.named("kernel"): True} if self.trains_kernel else {}
        return {**kernel, self.named("gamma"): False, self.named("beta"): False}

    @property
    def moments(self) -> tuple[str, str]:
        return self.named("mean"), self.named("variance")

    def infer(self, x: Tensor, values: Values) -> Tensor:
        kernel, gamma, beta, mean, variance = self._own(values)
        z, _ = self.convolve(x, kernel)
        scale = gamma / tf.sqrt(variance + self.epsilon)
        return self.activation.value(z * scale + (beta - mean * scale))

    def forward(self, xs: Sequence[Tensor], source: BlockInput, run: Pass) -> UnitTrace:
        kernel, *rest = self._own(run.values)
        zs = [self.convolve(x, kernel, constant=run.frozen)[0] for x in xs]
        if run.limits is None:
            norm = Renorm.fixed(*rest, epsilon=self.epsilon)
        else:
            within = {"r_max": run.limits.r_max, "d_max": run.limits.d_max}
            norm = Renorm.of(zs, *rest, **within, epsilon=self.epsilon)
        outputs = [self.activation.value(norm(z)) for z in zs]
        return UnitTrace(self, source, run.values, zs, norm, outputs)

    def _own(self, values: Values) -> list[Tensor]:
        return [values.get(self.named(tensor)) for tensor in TENSORS]


@dataclass(frozen=True)
class UnitTrace(Trace):
    """The trace of a unit; `zs` are the outputs of the convolution, one per part."""

    unit: Unit
    source: BlockInput
    values: Values
    zs: Sequence[Tensor]
    norm: Renorm
    outputs: Sequence[Tensor]

    def again(self, part: int, *, after: Tensor) -> Tensor:
        return self.unit.activation.value(self.norm.after(after)(self.zs[part]))

    def gate(self, y: Tensor, dy: Tensor) -> Tensor:
        return self.unit.activation.gate(y, dy)

    def norms(self) -> Iterator[tuple[Renorm, tuple[str, str]]]:
        yield self.norm, self.unit.moments

    def backward(self, gradients: Sequence[Tensor], step: Step) -> list[Tensor]:
        unit = self.unit
        pulled = self.norm.pull(self.zs, gradients)
        late = pulled.after(pulled.b, apart=True)
        kernel = self.values.get(unit.named("kernel"))
        below: list[Tensor] = []
        dkernel = None
        for part, (z, d) in enumerate(zip(self.zs, gradients)):
            # Wait for the part before, so that only one part's arrays exist at a time.
            done = [array for array in (dkernel, *below[-1:]) if array is not None]
            dz = late.after(*done)(z, d)
            x = self.source.again(part, after=dz)
            dx, more = unit.convolve(x, kernel)[1](dz)
            if unit.trains_kernel:
                dkernel = more if dkernel is None else dkernel + more
            if self.source.takes_gradient:
                below.append(self.source.gate(x, tf.reshape(dx, x.shape)))
        found = {"kernel": dkernel, "gamma": pulled.dgamma, "beta": pulled.dbeta}
        step.weights(
            self.values,
            {
                unit.named(name): gradient
                for name, gradient in found.items()
                if gradient is not None
            },
            after=pulled.dbeta if dkernel is None else dkernel,
        )
        step.moments(self.norm, unit.moments, self.values)
        return below
