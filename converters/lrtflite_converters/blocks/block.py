"""The interface of everything that trains: a block, the trace of its forward pass, and chains.

Training splits a mini-batch into parts, so that intermediate arrays stay small. It keeps one array
of each unit, the output of the convolution, and computes the rest again in the backward pass. For
the units above conv5_4/dw and 128 patterns, this keeps 80 MB instead of 500 MB.

A block passes down the gradient before the activation of the block below it. The slope of that
activation depends on the lower block's output, which the upper block has just computed again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from lrtflite_converters.gradients.window import Tensor

Shape = tuple[int, ...]
Values = Mapping[str, Tensor]


@dataclass(frozen=True)
class Limits:
    """Limits of r and d in Batch Renorm; each is a scalar."""

    r_max: Tensor
    d_max: Tensor


@dataclass(frozen=True)
class Pass:
    """One forward pass in training: the variables by name, and how it normalises.

    Without `limits`, the moving moments are used, as in `Block.infer`. `frozen` weights are
    constants.
    """

    values: Values
    limits: Limits | None
    frozen: bool = False


class Step(Protocol):
    """One training step, applied to variables by their names."""

    def weights(self, values: Values, gradients: Mapping[str, Tensor], *, after: Tensor) -> None:
        """Move weights from their current `values`; wait for `after` before preparing the step."""
        ...

    def moments(self, norm: Any, names: tuple[str, str], values: Values) -> None:
        """Move the moving mean and variance, called `names`, towards those of a batch."""
        ...


class BlockInput(Protocol):
    """The input of a block: parts of a mini-batch that can be computed again."""

    @property
    def takes_gradient(self) -> bool:
        """Return whether any layer below needs the gradient."""
        ...

    def again(self, part: int, *, after: Tensor) -> Tensor:
        """Compute a part again, once `after` is available."""
        ...

    def gate(self, y: Tensor, dy: Tensor) -> Tensor:
        """Turn the gradient `dy` of an activation's output `y` into that of its input."""
        ...


class Trace(ABC):
    """The arrays that a forward pass keeps for the backward pass; an input of the next block."""

    takes_gradient = True
    outputs: Sequence[Tensor]  # one per part

    @abstractmethod
    def again(self, part: int, *, after: Tensor) -> Tensor: ...

    @abstractmethod
    def gate(self, y: Tensor, dy: Tensor) -> Tensor: ...

    def norms(self) -> Iterator[tuple[Any, tuple[str, str]]]:
        """Yield each Batch Renorm with the names of its moments."""
        yield from ()

    @abstractmethod
    def backward(self, gradients: Sequence[Tensor], step: Step) -> list[Tensor]:
        """Take a step with the gradients of each part, and return those of the input's parts.

        Both are gradients before an activation. The list is empty if the input needs no gradient.
        """


class Block(ABC):
    """A part of a network. Shapes do not include the batch axis.

    `tensors` are the initial values of its variables, by name. `trained` maps the names of those
    that train to whether weight decay acts on them. `moments` are the names of the moving moments.
    """

    image: Shape
    output: Shape

    @property
    @abstractmethod
    def tensors(self) -> dict[str, Any]: ...

    @property
    def trained(self) -> dict[str, bool]:
        return {}

    @property
    def moments(self) -> tuple[str, ...]:
        return ()

    @property
    def largest(self) -> int:
        """Return the number of values in the largest array that one pattern needs."""
        return max(_product(self.image), _product(self.output))

    @abstractmethod
    def infer(self, x: Tensor, values: Values) -> Tensor:
        """Return the output, computed with the moving moments."""

    @abstractmethod
    def forward(self, xs: Sequence[Tensor], source: BlockInput, run: Pass) -> Trace:
        """Pass the parts `xs` of `source` forward, and keep what the backward pass needs."""


@dataclass(frozen=True)
class Chain(Block):
    """Blocks in sequence; an empty chain returns its input."""

    blocks: tuple[Block, ...]
    image: Shape

    @property
    def output(self) -> Shape:  # type: ignore[override]
        return self.blocks[-1].output if self.blocks else self.image

    @property
    def tensors(self) -> dict[str, Any]:
        return {name: value for block in self.blocks for name, value in block.tensors.items()}

    @property
    def trained(self) -> dict[str, bool]:
        return {name: decays for block in self.blocks for name, decays in block.trained.items()}

    @property
    def moments(self) -> tuple[str, ...]:
        return tuple(name for block in self.blocks for name in block.moments)

    @property
    def largest(self) -> int:
        return max([block.largest for block in self.blocks], default=_product(self.image))

    def infer(self, x: Tensor, values: Values) -> Tensor:
        for block in self.blocks:
            x = block.infer(x, values)
        return x

    def forward(self, xs: Sequence[Tensor], source: BlockInput, run: Pass) -> Trace:
        traces: list[Trace] = []
        outputs = xs
        for block in self.blocks:
            below = traces[-1] if traces else source
            traces.append(block.forward(outputs, below, run))
            outputs = traces[-1].outputs
        return ChainTrace(source, tuple(traces), outputs)


@dataclass(frozen=True)
class ChainTrace(Trace):
    source: BlockInput
    traces: tuple[Trace, ...]
    outputs: Sequence[Tensor]

    @property
    def _last(self) -> BlockInput:
        return self.traces[-1] if self.traces else self.source

    def again(self, part: int, *, after: Tensor) -> Tensor:
        return self._last.again(part, after=after)

    def gate(self, y: Tensor, dy: Tensor) -> Tensor:
        return self._last.gate(y, dy)

    def norms(self) -> Iterator[tuple[Any, tuple[str, str]]]:
        for trace in self.traces:
            yield from trace.norms()

    def backward(self, gradients: Sequence[Tensor], step: Step) -> list[Tensor]:
        found = list(gradients)
        for trace in reversed(self.traces):
            found = trace.backward(found, step)
        return found


def _product(shape: Shape) -> int:
    found = 1
    for side in shape:
        found *= side
    return found
