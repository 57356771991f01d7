"""The reference for training above a replay layer: Keras, autodiff and plain SGD."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
import tf_keras as keras

from lrtflite.host.batch_renorm import BatchRenorm
from lrtflite.host.mobilenet import mobilenet_v1, scale_frames
from lrtflite.host.network import Network
from lrtflite.host.training.renorm_schedule import RenormLimits, set_limits
from lrtflite.networks.mobilenet_v1 import MOBILENET_V1


def small_network(
    *, seed: int, input_size: int, activation: str = "relu6", alpha: float = 0.125
) -> Network:
    """Return a network with random weights, and with moments, gamma and beta as after training."""
    keras.utils.set_random_seed(seed)
    model = mobilenet_v1(alpha=alpha, input_size=input_size, classes=0, activation=activation)
    settle(model, seed=seed)
    return as_network(model)


def as_network(model: keras.Model) -> Network:
    """Return a MobileNetV1 in the form that the converter takes."""
    return Network(MOBILENET_V1, model, scale_frames, "a test")


def settle(model: keras.Model, *, seed: int, bounded: bool = True) -> None:
    """Set moments that nearly fit a model's weights.

    With `bounded`, activations have an upper limit. Without one, values would grow from layer to
    layer with moments so far off, so they are measured once more and changed by less.
    """
    rng = np.random.default_rng(seed)
    size = model.input_shape[1]
    images = rng.uniform(-1, 1, (64, size, size, 3)).astype("f")
    set_limits(model, RenormLimits(r_max=1.0, d_max=0.0, momentum=0.0))
    model(images, training=True)
    for layer in model.layers:
        if isinstance(layer, BatchRenorm):
            layer.gamma.assign(rng.uniform(0.7, 1.5, layer.gamma.shape))
            layer.beta.assign(rng.uniform(-0.3, 0.6, layer.beta.shape))
            # Wrong by enough that r and d are clipped in some channels and not in others.
            layer.moving_mean.assign_add(rng.normal(0, 0.3, layer.gamma.shape))
            layer.moving_variance.assign(
                layer.moving_variance * rng.uniform(0.05, 2.0, layer.gamma.shape)
            )
    if bounded:
        return
    model(images, training=True)
    for layer in model.layers:
        if isinstance(layer, BatchRenorm):
            factors = rng.uniform(0.7, 1.4, layer.gamma.shape)
            layer.moving_variance.assign(layer.moving_variance * factors)


def extracted(network: Network, replay_layer: str, frames: np.ndarray) -> np.ndarray:
    """Return the latents of frames, which at the first layer are the frames themselves."""
    if network.architecture.reads_frames(replay_layer):
        return frames
    below = keras.Model(network.model.input, network.layer(replay_layer).output)
    return below(network.scale(frames)).numpy()


class KerasReference:
    """The Keras layers above the replay layer, a classifier, and plain SGD."""

    def __init__(self, network: Network, replay_layer: str, tw: np.ndarray) -> None:
        # Do this before `above` is made, which gives each layer a second input.
        units = _units(network.model)
        self.network = network
        start = network.layer(replay_layer).output
        self.above = keras.Model(start, network.layer(network.architecture.pooled).output)
        self.reads_frames = network.architecture.reads_frames(replay_layer)
        above = {id(layer) for layer in self.above.layers}
        self.units = {name: pair for name, pair in units.items() if id(pair[1]) in above}
        self.tw = tf.Variable(tw)
        self.velocity: dict[str, Any] = {}

    def train(
        self,
        latents: Any,
        targets: Any,
        *,
        lr: float,
        trunk_lr: float,
        momentum: float,
        weight_decay: float,
        moment_rate: float,
        r_max: float,
        d_max: float,
        frozen: tuple[str, ...] = (),
    ) -> float:
        set_limits(self.above, RenormLimits(r_max=r_max, d_max=d_max, momentum=1 - moment_rate))
        variables = {name: v for name, v in self.trained().items() if name not in frozen}
        with tf.GradientTape() as tape:
            x = self.network.scale(latents) if self.reads_frames else latents
            scores = tf.matmul(self.above(x, training=True), self.tw, transpose_b=True)
            loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(targets, scores))
        gradients = tape.gradient(loss, variables)
        for name, variable in variables.items():
            decay = weight_decay if name == "tw" or name.endswith("_kernel") else 0.0
            moved = momentum * self.velocity.get(name, 0.0) + gradients[name] + decay * variable
            self.velocity[name] = moved
            variable.assign_sub((lr if name == "tw" else trunk_lr) * moved)
        return float(loss)

    def trained(self) -> dict[str, tf.Variable]:
        found = {"tw": self.tw}
        for name, (convolution, norm) in self.units.items():
            found[f"{name}_kernel"] = _kernel(convolution)
            found[f"{name}_gamma"] = norm.gamma
            found[f"{name}_beta"] = norm.beta
        return found

    def state(self) -> dict[str, np.ndarray]:
        """Return the trunk's tensors under their names in `save`."""
        found = {name: v.numpy() for name, v in self.trained().items() if name != "tw"}
        for name, (_, norm) in self.units.items():
            found[f"{name}_mean"] = norm.moving_mean.numpy()
            found[f"{name}_variance"] = norm.moving_variance.numpy()
        return {name: v[0, 0] if v.shape[:2] == (1, 1) else v for name, v in found.items()}


def assert_same_changes(
    found: dict[str, Any], expected: dict[str, np.ndarray], before: dict[str, Any]
) -> None:
    """Compare the change of each tensor, as a vector: a comparison of weights would hide it.

    Rounding leaves some 1e-4 of a change. But where rounding moves one value of a hundred across
    the kink of a ReLU, all gradients below it differ by a tenth of one value; a gradient that is
    wrong in any unit is off by far more. The ops by themselves are held to 1e-4 elsewhere.
    """
    for name, value in expected.items():
        change = np.linalg.norm(value - before[name])
        off = np.linalg.norm(np.asarray(found[name]) - value)
        last_bit = 3e-7 * np.linalg.norm(value)
        assert off <= 0.05 * change + last_bit, name


def _units(model: keras.Model) -> dict[str, tuple[Any, Any]]:
    """Return the convolution and the Batch Renorm of each unit, by the unit's name."""
    kinds = keras.layers.Conv2D, keras.layers.DepthwiseConv2D
    below = {id(layer.output): layer for layer in model.layers if isinstance(layer, kinds)}
    relus = [layer for layer in model.layers if isinstance(layer, keras.layers.ReLU)]
    above = {id(layer.input): str(layer.name) for layer in relus}
    return {
        above.get(id(norm.output), str(norm.name)).replace("/", "_"): (below[id(norm.input)], norm)
        for norm in model.layers
        if isinstance(norm, BatchRenorm)
    }


def _kernel(layer: Any) -> tf.Variable:
    return layer.depthwise_kernel if hasattr(layer, "depthwise_kernel") else layer.kernel
