"""The trunk: the units between the replay layer and the classifier, as they infer and train.

Training takes the mini-batch in parts, which keeps intermediate arrays small, and of each unit it
keeps one array only: what the convolution gave. The backward pass computes the rest anew. For the
units above conv5_4/dw and 128 patterns that is 80 MB kept, instead of 500 MB.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import tensorflow as tf

from lrtflite.host.mobilenet import scale_frames
from lrtflite_converters.differentiable import (
    Renorm,
    RenormPull,
    after,
    global_average_pool,
)
from lrtflite_converters.unit import STATE, Rates, Unit, Weights
from lrtflite_converters.window import Tensor

# Aimed at for the largest array of a part, which should stay in the cache; and how many parts at
# most, because each makes the graph longer.
PART_BYTES = 2 << 20
MOST_PARTS = 8


class Trunk(tf.Module):
    """Units in their order, then global average pooling of what is still an image."""

    units: tuple[Unit, ...]

    def __init__(self, units: Sequence[Unit], *, latent_shape: tuple[int, ...]) -> None:
        super().__init__()
        object.__setattr__(self, "units", tuple(units))  # values, and nothing to track
        self.latent_shape = latent_shape
        self.weights = [Weights(unit) for unit in units]
        # Nothing below the first unit but the camera: latents are frames.
        self.reads_frames = bool(units) and units[0].name == "conv1"

    @property
    def latent_dtype(self) -> tf.DType:
        return tf.uint8 if self.reads_frames else tf.float32

    @property
    def state(self) -> dict[str, tf.Variable]:
        """What outlives a session, by the name of its tensor."""
        return {
            f"{unit.prefix}_{name}": getattr(weights, name)
            for unit, weights in zip(self.units, self.weights)
            for name in STATE
        }

    def begin(self, zero: Tensor) -> None:
        """Start a session: momentum from `zero`, which is not a constant.

        Zeros that are would be in the file, as many as there are weights.
        """
        for weights in self.weights:
            for velocity in weights.velocity.values():
                velocity.assign(tf.fill(velocity.shape, zero))

    def infer(self, latents: Tensor) -> Tensor:
        """(n, *latent_shape) -> (n, F), with the moving moments."""
        x = self._first(latents)
        for unit, weights in zip(self.units, self.weights):
            x = unit.infer(x, weights.read())
        return self.pool(x)

    def pool(self, x: Tensor) -> Tensor:
        """(n, F) of what the last unit gave, or of latents where there is none."""
        shape = self.units[-1].output if self.units else self.latent_shape
        return x if len(shape) == 1 else global_average_pool(tf.reshape(x, [-1, *shape]))[0]

    def train(self, latents: Tensor) -> TrainingPass:
        """(B, *latent_shape): forward with the batch's own moments."""
        return TrainingPass.forward(self, latents)

    def _first(self, latents: Tensor) -> Tensor:
        """What the first unit gets."""
        return scale_frames(latents) if self.reads_frames else latents


@dataclass(frozen=True)
class Trace:
    """What the forward pass keeps of a unit: `zs`, a part each, came from the convolution."""

    values: dict[str, Tensor]
    zs: list[Tensor]
    norm: Renorm


@dataclass(frozen=True)
class TrainingPass:
    """One mini-batch on its way through the trunk: `features` (B, F), then `step`."""

    trunk: Trunk
    latents: Tensor
    sizes: tuple[int, ...]
    traces: tuple[Trace, ...]
    features: Tensor

    @classmethod
    def forward(cls, trunk: Trunk, latents: Tensor) -> TrainingPass:
        if not trunk.units:
            return cls(trunk, latents, (), (), trunk.pool(latents))
        sizes = _part_sizes(trunk.units, latents.shape[0])
        rest = latents.shape[1:]
        xs = [
            trunk._first(tf.slice(latents, [start, *[0] * len(rest)], [size, *rest]))
            for start, size in zip(_starts(sizes), sizes)
        ]
        traces = []
        for unit, weights in zip(trunk.units, trunk.weights):
            values = weights.read()
            zs = [unit.convolve(x, values["kernel"])[0] for x in xs]
            norm = unit.renorm(zs, values)
            xs = [unit.activation.value(norm(z)) for z in zs]
            traces.append(Trace(values, zs, norm))
        features = tf.concat([trunk.pool(x) for x in xs], axis=0)
        return cls(trunk, latents, sizes, tuple(traces), features)

    def step(self, dfeatures: Tensor, rates: Rates, *, moment_rate: Tensor) -> None:
        """Backward: move every weight of the trunk, and its moments."""
        ds = self._pull_pool(dfeatures)
        for index in reversed(range(len(self.traces))):
            trace = self.traces[index]
            pulled = trace.norm.pull(trace.zs, ds)
            ds, dkernel = self._pull_convolution(index, pulled.after(pulled.b, apart=True), ds)
            self._update(
                index,
                {"kernel": dkernel, "gamma": pulled.dgamma, "beta": pulled.dbeta},
                rates.after(pulled.dbeta if dkernel is None else dkernel),
                moment_rate=moment_rate,
            )

    def _pull_pool(self, dfeatures: Tensor) -> list[Tensor]:
        """The gradient of each part before the last activation."""
        last = len(self.traces) - 1
        ds = []
        for part, dpooled in enumerate(tf.split(dfeatures, self.sizes)):
            y = self._output(last, part, trigger=dfeatures)
            image = tf.reshape(y, [-1, *self.trunk.units[last].output])
            (dimage,) = global_average_pool(image)[1](dpooled)
            ds.append(tf.reshape(self._slope(last, image) * dimage, y.shape))
        return ds

    def _pull_convolution(
        self, index: int, pulled: RenormPull, ds: Sequence[Tensor]
    ) -> tuple[list[Tensor], Tensor | None]:
        """From the gradient of each part before a unit's activation to that before the last one's.

        None of the parts below the first unit. And the gradient of the kernel, where it trains.
        """
        unit, trace = self.trunk.units[index], self.traces[index]
        below: list[Tensor] = []
        dkernel = None
        for part, (z, d) in enumerate(zip(trace.zs, ds)):
            # One part after the other, so that one part's arrays are about at a time.
            done = [array for array in (dkernel, *below[-1:]) if array is not None]
            dz = pulled.after(*done)(z, d)
            x = self._output(index - 1, part, trigger=dz)
            dx, more = unit.convolve(x, trace.values["kernel"])[1](dz)
            if unit.trains_kernel:
                dkernel = more if dkernel is None else dkernel + more
            if index:
                below.append(self._slope(index - 1, x) * tf.reshape(dx, x.shape))
        return below, dkernel

    def _slope(self, index: int, y: Tensor) -> Tensor:
        return self.trunk.units[index].activation.slope(y)

    def _output(self, index: int, part: int, *, trigger: Tensor) -> Tensor:
        """What a unit gave, computed again after `trigger`; -1 stands for the latents."""
        if index >= 0:
            unit, trace = self.trunk.units[index], self.traces[index]
            return unit.activation.value(trace.norm.after(trigger)(trace.zs[part]))
        start = _starts(self.sizes)[part]
        rows = np.arange(start, start + self.sizes[part], dtype=np.int32)
        late = tf.cast(after(tf.zeros([1]), trigger), tf.int32)
        # Of a gradient that is no number the cast makes no zero.
        places = tf.clip_by_value(rows + late, rows[0], rows[-1])
        return self.trunk._first(tf.gather(self.latents, places))

    def _update(
        self, index: int, gradients: dict[str, Tensor], rates: Rates, *, moment_rate: Tensor
    ) -> None:
        weights, trace = self.trunk.weights[index], self.traces[index]
        for name, velocity in weights.velocity.items():
            rates.step(
                getattr(weights, name),
                trace.values[name],
                velocity,
                gradients[name],
                decays=name == "kernel",
            )
        mean, variance = trace.norm.moved(
            trace.values["mean"], trace.values["variance"], rate=moment_rate
        )
        weights.mean.assign(mean)
        weights.variance.assign(variance)


def _starts(sizes: Sequence[int]) -> list[int]:
    return [sum(sizes[:part]) for part in range(len(sizes))]


def _part_sizes(units: Sequence[Unit], batch: int) -> tuple[int, ...]:
    """Patterns in each part, as even as can be."""
    largest = max(4 * int(np.prod(shape)) for unit in units for shape in (unit.image, unit.output))
    parts = min(MOST_PARTS, batch, max(1, round(batch * largest / PART_BYTES)))
    return tuple(len(part) for part in np.array_split(np.arange(batch), parts))
