"""The seam of everything that trains: a block, what its forward pass leaves, and chains of blocks.

Training takes a mini-batch in parts, which keeps intermediate arrays small, and of each unit it
keeps one array only: the output of its convolution. The backward pass computes the rest again. For
the units above conv5_4/dw and 128 patterns that is 80 MB kept, instead of 500 MB.

Gradients that pass from block to block are those before the activation of the block below: whoever
computes a block's output again, to go backward through the block above it, has at hand what the
activation's slope needs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from lrtflite_converters.window import Tensor

Shape = tuple[int, ...]
Values = Mapping[str, Tensor]


@dataclass(frozen=True)
class Limits:
    """Limits of r and d in Batch Renorm; each is a scalar."""

    r_max: Tensor
    d_max: Tensor


class Step(Protocol):
    """Applies one training step to variables by their names."""

    def weights(self, values: Values, gradients: Mapping[str, Tensor], *, after: Tensor) -> None:
        """Move weights; `values` are what they hold, `after` is there before this is prepared."""
        ...

    def moments(self, norm: Any, names: tuple[str, str], values: Values) -> None:
        """Move the moving mean and variance, called `names`, towards those of a batch."""
        ...


class BlockInput(Protocol):
    """What a block reads: parts of a mini-batch that can be computed again."""

    @property
    def takes_gradient(self) -> bool:
        """Return whether anything below wants the gradient."""
        ...

    def again(self, part: int, *, after: Tensor) -> Tensor:
        """Compute a part again, not before `after` is there."""
        ...

    def gate(self, y: Tensor, dy: Tensor) -> Tensor:
        """Return the gradient before the last activation, from that of its value `y`."""
        ...


class Trace(ABC):
    """The arrays that a forward pass leaves for the backward pass; a source for the next block."""

    takes_gradient = True
    outputs: Sequence[Tensor]  # one for each part

    @abstractmethod
    def again(self, part: int, *, after: Tensor) -> Tensor: ...

    @abstractmethod
    def gate(self, y: Tensor, dy: Tensor) -> Tensor: ...

    def norms(self) -> Iterator[tuple[Any, tuple[str, str]]]:
        """Yield each Batch Renorm of this mini-batch, with the names of its moments."""
        yield from ()

    @abstractmethod
    def backward(self, gradients: Sequence[Tensor], step: Step) -> list[Tensor]:
        """Take a step with the gradients of each part, and return those of the source's parts.

        Both are gradients before an activation. Nothing is returned where the source takes none.
        """


class Block(ABC):
    """A part of a network. Shapes are without the batch.

    `tensors` are the values that its variables begin with, by name; `trained` names those that
    train, and whether weight decay acts on them; `moments` names those that follow the data.
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
        """Return the values of the largest array that one pattern needs."""
        return max(_product(self.image), _product(self.output))

    @abstractmethod
    def infer(self, x: Tensor, values: Values) -> Tensor:
        """Compute the output with the moving moments."""

    @abstractmethod
    def forward(
        self,
        xs: Sequence[Tensor],
        source: BlockInput,
        values: Values,
        limits: Limits,
        *,
        frozen: bool,
    ) -> Trace:
        """Pass the parts of a mini-batch with its own moments; `frozen` weights are constants."""


@dataclass(frozen=True)
class Chain(Block):
    """Blocks one after the other; none at all passes everything on."""

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

    def forward(
        self,
        xs: Sequence[Tensor],
        source: BlockInput,
        values: Values,
        limits: Limits,
        *,
        frozen: bool,
    ) -> Trace:
        traces: list[Trace] = []
        outputs = xs
        for block in self.blocks:
            below = traces[-1] if traces else source
            traces.append(block.forward(outputs, below, values, limits, frozen=frozen))
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
