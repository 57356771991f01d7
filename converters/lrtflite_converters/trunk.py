"""The trunk: the blocks between the replay layer and the classifier, with their variables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from lrtflite_converters.blocks.block import Chain, Limits, Trace, Values
from lrtflite_converters.ordering import after as ordered_after
from lrtflite_converters.parameter import Parameter, Sgd, TrunkStep
from lrtflite_converters.regularisers.regulariser import Regulariser
from lrtflite_converters.window import Tensor

# Bytes aimed at for the largest array of a part, which should stay in the cache; and how many parts
# there are at most, because each makes the graph longer.
PART_BYTES = 2 << 20
MOST_PARTS = 8
# Rates that `train` takes for a trunk.
TRUNK_SCALARS = ("trunk_lr", "moment_rate", "r_max", "d_max")


class Trunk(tf.Module):
    """A chain of blocks that ends in a vector of features; an empty one passes latents on."""

    chain: Chain
    scale: Callable[[Tensor], Tensor] | None

    def __init__(
        self,
        chain: Chain,
        *,
        scale: Callable[[Tensor], Tensor] | None = None,
        regulariser: Regulariser | None = None,
    ) -> None:
        """`scale` is given where latents are frames."""
        super().__init__()
        object.__setattr__(self, "chain", chain)  # values, and nothing to track
        object.__setattr__(self, "scale", scale)
        self.state = {
            name: tf.Variable(np.asarray(value, np.float32), name=name)
            for name, value in chain.tensors.items()
        }
        self.parameters = {
            name: Parameter(name, self.state[name], decays=decays)
            for name, decays in chain.trained.items()
        }
        self.regulariser = Regulariser() if regulariser is None else regulariser
        self.regulariser.protect(list(self.parameters.values()))

    @property
    def latent_shape(self) -> tuple[int, ...]:
        return self.chain.image

    @property
    def latent_dtype(self) -> tf.DType:
        return tf.float32 if self.scale is None else tf.uint8

    @property
    def features(self) -> int:
        """Return the length of what comes out."""
        (length,) = self.chain.output
        return length

    @property
    def trains(self) -> bool:
        return bool(self.parameters)

    def begin(self, zero: Tensor) -> None:
        """Start a session; see `Parameter.begin`."""
        for parameter in self.parameters.values():
            parameter.begin(zero)
        self.regulariser.begin(zero)

    def infer(self, latents: Tensor) -> Tensor:
        """(n, *latent_shape) -> (n, F), with the moving moments."""
        return self.chain.infer(self.first(latents), self._values())

    def infer_parts(self, latents: Tensor) -> Tensor:
        """`infer` for a whole mini-batch, in parts: large arrays are there one part at a time."""
        values = self._values()
        xs = Latents(self, latents, self._sizes(latents)).parts()
        return tf.concat([self.chain.infer(x, values) for x in xs], axis=0)

    def train(self, latents: Tensor, rates: Mapping[str, Tensor]) -> TrainingPass:
        """(B, *latent_shape): pass forward with the batch's own moments."""
        if not self.trains:
            return TrainingPass(self, None, (latents.shape[0],), self.infer(latents))
        sizes = self._sizes(latents)
        source = Latents(self, latents, sizes)
        limits = Limits(rates["r_max"], rates["d_max"])
        trace = self.chain.forward(source.parts(), source, self._values(), limits, frozen=False)
        return TrainingPass(self, trace, sizes, tf.concat(list(trace.outputs), axis=0))

    def first(self, latents: Tensor) -> Tensor:
        """Return what the first block gets."""
        return latents if self.scale is None else self.scale(latents)

    def _values(self) -> Values:
        return {name: tf.convert_to_tensor(variable) for name, variable in self.state.items()}

    def _sizes(self, latents: Tensor) -> tuple[int, ...]:
        """Return the patterns in each part, as even as can be."""
        batch, largest = latents.shape[0], 4 * self.chain.largest
        parts = min(MOST_PARTS, batch, max(1, round(batch * largest / PART_BYTES)))
        return tuple(len(part) for part in np.array_split(np.arange(batch), parts))


@dataclass(frozen=True)
class Latents:
    """The source of the first block: parts of a mini-batch of latents."""

    trunk: Trunk
    latents: Tensor
    sizes: tuple[int, ...]

    takes_gradient = False

    def parts(self) -> list[Tensor]:
        rest = self.latents.shape[1:]
        return [
            self.trunk.first(tf.slice(self.latents, [start, *[0] * len(rest)], [size, *rest]))
            for start, size in zip(self._starts(), self.sizes)
        ]

    def again(self, part: int, *, after: Tensor) -> Tensor:
        start = self._starts()[part]
        rows = np.arange(start, start + self.sizes[part], dtype=np.int32)
        late = tf.cast(ordered_after(tf.zeros([1]), after), tf.int32)
        # A NaN gradient does not cast to 0, so clamp the row numbers.
        places = tf.clip_by_value(rows + late, rows[0], rows[-1])
        return self.trunk.first(tf.gather(self.latents, places))

    def gate(self, y: Tensor, dy: Tensor) -> Tensor:
        return dy

    def _starts(self) -> Sequence[int]:
        return [sum(self.sizes[:part]) for part in range(len(self.sizes))]


@dataclass(frozen=True)
class TrainingPass:
    """One mini-batch on its way through the trunk: `features` (B, F), then `step`."""

    trunk: Trunk
    trace: Trace | None
    sizes: tuple[int, ...]
    features: Tensor

    def step(self, dfeatures: Tensor, sgd: Sgd, rates: Mapping[str, Any], *, share: Tensor) -> None:
        """Go backward: move every weight of the trunk, and its moments, by `share` of its rates."""
        if self.trace is None:
            return
        step = TrunkStep(
            parameters=self.trunk.parameters,
            variables=self.trunk.state,
            sgd=Sgd(rates["trunk_lr"] * share, sgd.momentum, sgd.weight_decay),
            moment_rate=rates["moment_rate"] * share,
            regulariser=self.trunk.regulariser,
            rates=rates,
        )
        self.trace.backward(tf.split(dfeatures, self.sizes), step)
