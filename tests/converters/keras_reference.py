"""What training above a replay layer should do, by Keras, autodiff and SGD written out."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
import tf_keras as keras

from lrtflite.host.batch_renorm import BatchRenorm
from lrtflite.host.mobilenet import conv_name, mobilenet_v1, norm_name, scale_frames
from lrtflite.host.training.renorm_schedule import RenormLimits, set_limits
from lrtflite.layer_names import REPLAY_LAYERS


def small_network(
    *, seed: int, input_size: int, activation: str = "relu6", alpha: float = 0.125
) -> keras.Model:
    """Random weights, and moments, gamma and beta as a training would leave them."""
    keras.utils.set_random_seed(seed)
    model = mobilenet_v1(alpha=alpha, input_size=input_size, classes=0, activation=activation)
    rng = np.random.default_rng(seed)
    images = rng.uniform(-1, 1, (64, input_size, input_size, 3)).astype("f")
    set_limits(model, RenormLimits(r_max=1.0, d_max=0.0, momentum=0.0))
    model(images, training=True)
    for layer in model.layers:
        if isinstance(layer, BatchRenorm):
            layer.gamma.assign(rng.uniform(0.7, 1.5, layer.gamma.shape))
            layer.beta.assign(rng.uniform(-0.3, 0.6, layer.beta.shape))
            # Off by enough that r and d are clipped in some channels and not in others.
            layer.moving_mean.assign_add(rng.normal(0, 0.3, layer.gamma.shape))
            layer.moving_variance.assign(
                layer.moving_variance * rng.uniform(0.05, 2.0, layer.gamma.shape)
            )
    return model


class KerasReference:
    """The layers above the replay layer as Keras has them, a classifier, and plain SGD."""

    def __init__(self, model: keras.Model, replay_layer: str, tw: np.ndarray) -> None:
        start = model.get_layer(replay_layer).output
        self.above = keras.Model(start, model.get_layer("pool6").output)
        self.reads_frames = replay_layer == "images"
        self.units = REPLAY_LAYERS[REPLAY_LAYERS.index(replay_layer) + 1 : -1]
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
        frozen: tuple[str, ...] = (),
    ) -> float:
        set_limits(self.above, RenormLimits(r_max=3.0, d_max=5.0, momentum=1 - moment_rate))
        variables = {name: v for name, v in self.trained().items() if name not in frozen}
        with tf.GradientTape() as tape:
            x = scale_frames(latents) if self.reads_frames else latents
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
        for unit in self.units:
            found[f"{_prefix(unit)}_kernel"] = _kernel(self.above.get_layer(conv_name(unit)))
            norm = self.above.get_layer(norm_name(unit))
            found[f"{_prefix(unit)}_gamma"] = norm.gamma
            found[f"{_prefix(unit)}_beta"] = norm.beta
        return found

    def state(self) -> dict[str, np.ndarray]:
        """The trunk's tensors under the names that `save` gives them."""
        found = {name: v.numpy() for name, v in self.trained().items() if name != "tw"}
        for unit in self.units:
            norm = self.above.get_layer(norm_name(unit))
            found[f"{_prefix(unit)}_mean"] = norm.moving_mean.numpy()
            found[f"{_prefix(unit)}_variance"] = norm.moving_variance.numpy()
        return {name: v[0, 0] if v.shape[:2] == (1, 1) else v for name, v in found.items()}


def _prefix(unit: str) -> str:
    return unit.replace("/", "_")


def _kernel(layer: Any) -> tf.Variable:
    return layer.depthwise_kernel if hasattr(layer, "depthwise_kernel") else layer.kernel
