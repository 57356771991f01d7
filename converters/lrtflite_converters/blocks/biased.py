"""A convolution or a dense layer with a bias and an activation, without Batch Renorm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from lrtflite_converters.blocks.block import Block, BlockInput, Pass, Shape, Step, Trace, Values
from lrtflite_converters.blocks.convolving import Convolving
from lrtflite_converters.gradients.differentiable import Activation, column_sums
from lrtflite_converters.gradients.ordering import after as ordered_after
from lrtflite_converters.gradients.window import Edges, Tensor


@dataclass(frozen=True)
class Biased(Convolving, Block):
    """A linear layer, its bias if it has one, and an activation, with initial values."""

    name: str
    kind: str
    image: Shape
    output: Shape
    stride: int
    edges: Edges
    activation: Activation
    trains_kernel: bool
    arrays: Mapping[str, Any]  # "kernel", and "bias" if there is one

    @property
    def tensors(self) -> dict[str, Any]:
        return {self.named(tensor): value for tensor, value in self.arrays.items()}

    @property
    def trained(self) -> dict[str, bool]:
        kernel = {self.named("kernel"): True} if self.trains_kernel else {}
        return {**kernel, **({self.named("bias"): False} if "bias" in self.arrays else {})}

    def add_bias(self, z: Tensor, values: Values, *, after: Tensor | None = None) -> Tensor:
        """Return the activation of a convolution's output, once `after` is available."""
        if "bias" in self.arrays:
            bias = values[self.named("bias")]
            z = z + (bias if after is None else ordered_after(bias, after))
        return self.activation.value(z)

    def infer(self, x: Tensor, values: Values) -> Tensor:
        return self.add_bias(self.convolve(x, values[self.named("kernel")])[0], values)

    def forward(self, xs: Sequence[Tensor], source: BlockInput, run: Pass) -> Trace:
        values, kernel = run.values, run.values[self.named("kernel")]
        zs = [self.convolve(x, kernel, constant=run.frozen)[0] for x in xs]
        return BiasedTrace(self, source, values, zs, [self.add_bias(z, values) for z in zs])


@dataclass(frozen=True)
class BiasedTrace(Trace):
    """The trace of a biased layer; `zs` are the outputs of the convolution, one per part."""

    block: Biased
    source: BlockInput
    values: Values
    zs: Sequence[Tensor]
    outputs: Sequence[Tensor]

    def again(self, part: int, *, after: Tensor) -> Tensor:
        return self.block.add_bias(self.zs[part], self.values, after=after)

    def gate(self, y: Tensor, dy: Tensor) -> Tensor:
        return self.block.activation.gate(y, dy)

    def backward(self, gradients: Sequence[Tensor], step: Step) -> list[Tensor]:
        block, kernel = self.block, self.values[self.block.named("kernel")]
        below: list[Tensor] = []
        dkernel = dbias = None
        for part, dz in enumerate(gradients):
            # Wait for the previous part, so that only one part's arrays exist at a time.
            x = self.source.again(part, after=dz if dkernel is None else dkernel)
            dx, more = block.convolve(x, kernel)[1](dz)
            if block.trains_kernel:
                dkernel = more if dkernel is None else dkernel + more
            sums = column_sums(dz)
            dbias = sums if dbias is None else dbias + sums
            if self.source.takes_gradient:
                below.append(self.source.gate(x, tf.reshape(dx, x.shape)))
        found = {"kernel": dkernel, "bias": dbias if "bias" in block.arrays else None}
        moved = {block.named(name): value for name, value in found.items() if value is not None}
        if moved:
            step.weights(self.values, moved, after=next(iter(moved.values())))
        return below
