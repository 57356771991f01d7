"""The trunk: the blocks between the replay layer and the classifier, with their variables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from lrtflite_converters.blocks.block import Chain, Limits, Pass, Step, Trace, Values
from lrtflite_converters.gradients.ordering import after as ordered_after
from lrtflite_converters.gradients.window import Tensor
from lrtflite_converters.training.parameter import ObservedStep, Parameter, Sgd, TrunkStep
from lrtflite_converters.training.regularisers.regulariser import Regulariser

# Target size in bytes of the largest array of a part, which should stay in the cache. At most
# MAX_PARTS parts are used, because each makes the graph longer.
PART_BYTES = 2 << 20
MAX_PARTS = 8
# Rates that `train` takes for the trunk, and those for its Batch Renorm.
TRUNK_SCALARS, RENORM_SCALARS = ("trunk_lr",), ("moment_rate", "r_max", "d_max")


class Trunk(tf.Module):
    """A chain of blocks from latents to feature vectors; an empty trunk returns its latents."""

    chain: Chain
    scale: Callable[[Tensor], Tensor] | None

    def __init__(
        self,
        chain: Chain,
        *,
        scale: Callable[[Tensor], Tensor] | None = None,
        latent_dtype: tf.DType | None = None,
    ) -> None:
        """Make the variables of `chain`; `scale` is for latents that are frames or int8.

        Latents with a `scale` are uint8 by default.
        """
        super().__init__()
        object.__setattr__(self, "chain", chain)  # not tracked: it has no variables
        object.__setattr__(self, "scale", scale)
        self.latent_dtype = latent_dtype or (tf.float32 if scale is None else tf.uint8)
        self.state = {
            name: tf.Variable(np.asarray(value, np.float32), name=name)
            for name, value in chain.tensors.items()
        }
        self.parameters = {
            name: Parameter(name, self.state[name], decays=decays)
            for name, decays in chain.trained.items()
        }

    @property
    def latent_shape(self) -> tuple[int, ...]:
        return self.chain.image

    @property
    def features(self) -> int:
        """Return the length of a feature vector."""
        (length,) = self.chain.output
        return length

    @property
    def trains(self) -> bool:
        return bool(self.parameters)

    @property
    def scalars(self) -> tuple[str, ...]:
        """Return the rates that `train` takes for the trunk."""
        if not self.trains:
            return ()
        return (*TRUNK_SCALARS, *(RENORM_SCALARS if self.chain.moments else ()))

    def begin(self, zero: Tensor) -> None:
        """Start a session; see `Parameter.begin`."""
        for parameter in self.parameters.values():
            parameter.begin(zero)

    def infer(self, latents: Tensor) -> Tensor:
        """Turn latents (n, ...) into features (n, F), with the moving moments."""
        return self.infer_scaled(self.first(latents))

    def infer_scaled(self, x: Tensor) -> Tensor:
        """Do the same from the input of the first block."""
        return self.chain.infer(x, self._values())

    def infer_parts(self, latents: Tensor, *, values: Values | None = None) -> Tensor:
        """Run `infer` on a mini-batch part by part, which keeps intermediate arrays small.

        `values` replace the trunk's own weights and moments.
        """
        values = self._values() if values is None else values
        xs = LatentParts(self, latents, self._sizes(latents)).parts()
        return tf.concat([self.chain.infer(x, values) for x in xs], axis=0)

    def train(self, latents: Tensor, rates: Mapping[str, Tensor]) -> TrainingPass:
        """Pass latents (B, ...) forward with the moments of the mini-batch."""
        if not self.trains:
            return TrainingPass(self, None, (latents.shape[0],), self.infer(latents))
        normed = bool(self.chain.moments)
        return self._pass(latents, Limits(rates["r_max"], rates["d_max"]) if normed else None)

    def probe(self, latents: Tensor) -> TrainingPass:
        """Pass latents (B, ...) forward with the moving moments, for `TrainingPass.observe`."""
        if not self.trains:
            return TrainingPass(self, None, (latents.shape[0],), self.infer(latents))
        return self._pass(latents, None)

    def first(self, latents: Tensor) -> Tensor:
        """Return the input of the first block."""
        return latents if self.scale is None else self.scale(latents)

    def _pass(self, latents: Tensor, limits: Limits | None) -> TrainingPass:
        sizes = self._sizes(latents)
        source = LatentParts(self, latents, sizes)
        trace = self.chain.forward(source.parts(), source, Pass(self._values(), limits))
        return TrainingPass(self, trace, sizes, tf.concat(list(trace.outputs), axis=0))

    def _values(self) -> Values:
        return {name: tf.convert_to_tensor(variable) for name, variable in self.state.items()}

    def _sizes(self, latents: Tensor) -> tuple[int, ...]:
        """Return the number of patterns in each part, as even as possible."""
        batch, largest = latents.shape[0], 4 * self.chain.largest
        parts = min(MAX_PARTS, batch, max(1, round(batch * largest / PART_BYTES)))
        return tuple(len(part) for part in np.array_split(np.arange(batch), parts))


@dataclass(frozen=True)
class LatentParts:
    """The input of the first block: parts of a mini-batch of latents."""

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
    """The forward pass of one mini-batch, with its `features` (B, F); `step` goes backward."""

    trunk: Trunk
    trace: Trace | None
    sizes: tuple[int, ...]
    features: Tensor

    def step(
        self,
        dfeatures: Tensor,
        sgd: Sgd,
        rates: Mapping[str, Any],
        *,
        share: Tensor,
        regulariser: Regulariser,
    ) -> None:
        """Go backward and move the trunk's weights and moments, with `share` times their rates."""
        if self.trace is None:
            return
        step = TrunkStep(
            parameters=self.trunk.parameters,
            variables=self.trunk.state,
            sgd=Sgd(rates["trunk_lr"] * share, sgd.momentum, sgd.weight_decay),
            moment_rate=rates.get("moment_rate", 0.0) * share,
            regulariser=regulariser,
            rates=rates,
        )
        self._backward(self.trace, dfeatures, step)

    def observe(self, dfeatures: Tensor, regulariser: Regulariser) -> None:
        """Go backward and show the gradients to `regulariser`, without moving anything."""
        if self.trace is not None:
            step = ObservedStep(self.trunk.parameters, regulariser)
            self._backward(self.trace, dfeatures, step)

    def _backward(self, trace: Trace, dfeatures: Tensor, step: Step) -> None:
        """Go backward from gradients of the features, which may be values of an activation."""
        gradients = tf.split(dfeatures, self.sizes)
        trace.backward([trace.gate(y, d) for y, d in zip(trace.outputs, gradients)], step)
