"""The feature model: camera frames in, latents out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf
import tf_keras as keras

from lrtflite.contract.signatures import FEATURES, Sizes, signatures_of
from lrtflite.host.network import Network
from lrtflite_converters.blocks.block import Chain, Limits, Pass
from lrtflite_converters.features.crops import latents_of
from lrtflite_converters.gradients.window import Tensor
from lrtflite_converters.tflite.signature import Outputs, SignedModule, saved

# Inputs of `adapt`: its rate, the number of epochs that one pass stands for, and limits of r and d.
ADAPT_SCALARS = ("adapt_rate", "epochs", "r_max", "d_max")
# Maximum rate per epoch, below 1 because of the logarithm in `over_epochs`.
MAX_ADAPT_RATE = 1.0 - 1e-6
# Argument below which three or five terms of a series are exact in float32.
SMALL = 0.1


class Features(SignedModule):
    """The network below the replay layer, with its preprocessing, frozen."""

    below: keras.Model
    network: Network
    # Difference between runtimes, relative to the size of latents; 0 for a float model.
    rounding = 0.0

    def __init__(
        self,
        network: Network,
        replay_layer: str,
        *,
        pooled: bool = False,
        second: str | None = None,
        crops: bool = False,
    ) -> None:
        super().__init__()
        self.second, self.crops = second, crops
        output = network.output(replay_layer, pooled=pooled, second=second)
        # Track only the variables. Saving a tracked Keras model traces each layer several times,
        # which takes most of a conversion's time and does not change the file.
        object.__setattr__(self, "below", keras.Model(network.model.input, output, name="below"))
        object.__setattr__(self, "network", network)
        self.tracked = self.below.variables
        self.reads_frames = network.architecture.reads_frames(replay_layer)
        self.declare_all(group=1)

    @property
    def latent_shape(self) -> tuple[int, ...]:
        return tuple(int(n) for n in self.below.output_shape[1:])

    @property
    def input_size(self) -> int:
        return self.network.input_size

    @property
    def latent_dtype(self) -> str:
        return "uint8" if self.reads_frames else "float32"

    @property
    def head_scale(self) -> Callable[[Tensor], Tensor] | None:
        """Return the function that the head applies to latents first; None if there is none."""
        scale: Callable[[Tensor], Tensor] = self.network.scale
        return scale if self.reads_frames else None

    def declare_all(self, *, group: int) -> None:
        """Declare the signatures; `adapt` takes `group` frames at a time."""
        self.sizes = Sizes(
            input_size=self.network.input_size,
            latent_shape=self.latent_shape,
            slots=0,  # the features have no classes
            batch_size=0,
            group=group,
            extracted=self.latent_dtype,
        )
        self.declare(signatures_of(FEATURES)["extract"], self.sizes, self.extract)

    def extract(self, frames: Tensor) -> Outputs:
        """Return latents (n, ...) of frames (n, H, W, 3) uint8 RGB.

        If the replay layer is the input, the latents are the frames themselves.
        """
        if self.reads_frames:
            return {"latents": tf.identity(frames)}
        return {"latents": latents_of(self.below, self.network.scale(frames), crops=self.crops)}

    def to_bytes(self) -> bytes:
        """Return the content of `features.tflite`."""
        return self.to_tflite(variables="save" in self.functions)


class AdaptingFeatures(Features):
    """Features whose moments move: `adapt` passes frames forward as in training.

    Weights, gamma and beta are constants. The moments are variables, with `save` and `restore`.
    """

    chain: Chain

    def __init__(
        self, network: Network, replay_layer: str, chain: Chain, *, group: int, pooled: bool = False
    ) -> None:
        """Make the variables; `chain` has the blocks from the frames to the latents."""
        object.__setattr__(self, "chain", chain)
        self.group = group
        self.moments = {
            name: tf.Variable(tf.constant(chain.tensors[name], tf.float32), name=name)
            for name in chain.moments
        }
        super().__init__(network, replay_layer, pooled=pooled)

    def declare_all(self, *, group: int) -> None:
        super().declare_all(group=self.group)
        specs = signatures_of(FEATURES)
        self.declare(specs["adapt"], self.sizes, self.adapt, rates=ADAPT_SCALARS)
        self.declare(specs["save"], self.sizes, lambda zero: saved(self.moments, zero))
        self.declare(specs["restore"], self.sizes, self.restore, tensors=self.moments)

    def extract(self, frames: Tensor) -> Outputs:
        x = self.chain.infer(self.network.scale(frames), self._values())
        return {"latents": tf.reshape(x, [-1, *self.latent_shape])}

    def adapt(self, frames: Tensor, rates: Mapping[str, Tensor]) -> Outputs:
        """Move the moments towards those of these frames; return the largest change."""
        values, x = self._values(), self.network.scale(frames)
        limits = Limits(rates["r_max"], rates["d_max"])
        trace = self.chain.forward([x], _FrameInput(), Pass(values, limits, frozen=True))
        mover = _Mover(self.moments, over_epochs(rates["adapt_rate"], rates["epochs"]))
        for norm, names in trace.norms():
            mover.moments(norm, names, values)
        return {"moved": tf.reduce_max(tf.stack(mover.moves))}

    def restore(self, tensors: Mapping[str, Tensor]) -> Outputs:
        for name, value in self.moments.items():
            value.assign(tensors[name])
        return {"restored": tf.constant([float(len(self.moments))])}

    def _values(self) -> dict[str, Tensor]:
        """Return all tensors: the moments as they are, the others as constants."""
        constants = {
            name: tf.constant(np.asarray(value, np.float32))
            for name, value in self.chain.tensors.items()
            if name not in self.moments
        }
        moments = {name: tf.convert_to_tensor(value) for name, value in self.moments.items()}
        return {**constants, **moments}


def over_epochs(rate: Tensor, epochs: Tensor) -> Tensor:
    """Return 1 - (1 - rate)^epochs, the rate of one pass that stands for several.

    In float32, 1 - rate keeps few digits of a small rate, and log1p and expm1 are not built-in ops,
    so small arguments use the first terms of a series. The trick (1 + x) - 1 does not work,
    because graph optimisers cancel it.
    """
    rate = tf.minimum(rate, MAX_ADAPT_RATE)
    s = rate / (2.0 - rate)
    s2 = s * s
    # -log(1 - rate) = 2 artanh(s)
    near = 2.0 * s * (1.0 + s2 * (1.0 / 3.0 + s2 * (1.0 / 5.0)))
    u = epochs * tf.where(rate < SMALL, near, -tf.math.log(1.0 - rate))
    near = u * (1.0 - u / 2.0 * (1.0 - u / 3.0 * (1.0 - u / 4.0 * (1.0 - u / 5.0))))
    return tf.where(u < SMALL, near, 1.0 - tf.exp(-u))


class _FrameInput:
    """The input of the first block; there is no backward pass here."""

    takes_gradient = False

    def again(self, part: int, *, after: Tensor) -> Any:
        raise TypeError("Expected no backward pass through the features, got one; use forward only")

    def gate(self, y: Tensor, dy: Tensor) -> Tensor:
        return dy


class _Mover:
    """Moves moments at one rate, and records the changes."""

    def __init__(self, variables: Mapping[str, tf.Variable], rate: Tensor) -> None:
        self.variables, self.rate = variables, rate
        self.moves: list[Tensor] = []

    def moments(self, norm: Any, names: tuple[str, str], values: Mapping[str, Tensor]) -> None:
        moved = norm.moved(*(values[name] for name in names), rate=self.rate)
        for name, value in zip(names, moved):
            self.variables[name].assign(value)
            self.moves.append(tf.reduce_max(tf.abs(value - values[name])))
