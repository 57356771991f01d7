"""Batch Renormalization (Ioffe, 2017), which normalises every layer of the paper's network."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
import tf_keras as keras

from lrtflite.errors import ModelError


@keras.utils.register_keras_serializable(package="lrtflite")
class BatchRenorm(keras.layers.Layer):
    """Normalises over every axis but the last; training output stays close to inference output.

    mu_B and sigma_B are the mean and standard deviation of the mini-batch, mu and sigma the moving
    ones, with sigma = sqrt(variance + epsilon):

        r = clip(sigma_B / sigma, 1 / r_max, r_max)
        d = clip((mu_B - mu) / sigma, -d_max, d_max)
        y = gamma * ((x - mu_B) / sigma_B * r + d) + beta

    No gradient flows through r and d, and both use the moments from before the step's update.
    The moving variance averages the unbiased batch variance, m / (m - 1) times sigma_B^2.
    Inference uses the moving moments instead of the batch moments. `r_max=1, d_max=0` is Batch
    Norm.

    The limits and the momentum are scalar weights: `set_limits` changes them during training, and
    a saved layer keeps them. A layer with `trainable=False` normalises as in inference. With
    `adapt_moments` such a layer still moves its moments while gamma and beta stay, as the paper
    does below the replay layer.

    Args:
        momentum: share of the old moment kept at each step (paper: 0.99995 with latent replay).
        epsilon: added to a variance before its square root.
        r_max: limit of r, at least 1 (paper: 1.25).
        d_max: limit of d, at least 0 (paper: 0.5).
        adapt_moments: True moves the moments even while the layer is frozen.

    Shapes: `(N, ..., C) float32` in and out.

    >>> import numpy as np
    >>> layer = BatchRenorm(momentum=0.9, r_max=1.0, d_max=0.0)
    >>> y = layer(np.array([[1.0], [3.0]], np.float32), training=True)
    >>> np.round(y.numpy(), 3).tolist()  # (x - 2) / sqrt(1 + epsilon)
    [[-1.0], [1.0]]
    >>> layer.moving_mean.numpy().round(3)  # 0.9 * 0 + 0.1 * 2
    array([0.2], dtype=float32)
    >>> layer.set_limits(r_max=3.0, d_max=5.0)
    >>> layer.get_config()["r_max"]
    3.0
    """

    def __init__(
        self,
        *,
        momentum: float = 0.99,
        epsilon: float = 1e-5,
        r_max: float = 1.25,
        d_max: float = 0.5,
        adapt_moments: bool = False,
        **base: Any,
    ) -> None:
        super().__init__(**base)
        _check_limits(momentum=momentum, r_max=r_max, d_max=d_max)
        if not epsilon > 0:
            raise ModelError(f"Expected an epsilon above 0, got {epsilon}", "the paper uses 1e-5")
        self.epsilon = float(epsilon)
        self.adapt_moments = bool(adapt_moments)
        self._initial = {"momentum": momentum, "r_max": r_max, "d_max": d_max}
        self.supports_masking = True

    def build(self, input_shape: Any) -> None:
        channels = tf.TensorShape(input_shape)[-1]
        if channels is None:
            raise ModelError(
                f"Expected a known last axis, got {input_shape}", "give the input a fixed size"
            )

        def moment(name: str, initial: str) -> tf.Variable:
            return self.add_weight(name, (channels,), initializer=initial, trainable=False)

        def scalar(name: str) -> tf.Variable:
            initial = keras.initializers.Constant(self._initial[name])
            return self.add_weight(name, (), initializer=initial, trainable=False)

        self.gamma = self.add_weight("gamma", (channels,), initializer="ones")
        self.beta = self.add_weight("beta", (channels,), initializer="zeros")
        self.moving_mean = moment("moving_mean", "zeros")
        self.moving_variance = moment("moving_variance", "ones")
        self.momentum = scalar("momentum")
        self.r_max = scalar("r_max")
        self.d_max = scalar("d_max")
        super().build(input_shape)

    def call(self, inputs: tf.Tensor, training: bool | None = None) -> tf.Tensor:
        if not training or not (self.trainable or self.adapt_moments):
            return tf.nn.batch_normalization(
                inputs,
                self.moving_mean,
                self.moving_variance,
                self.beta,
                self.gamma,
                self.epsilon,
            )
        mean, variance = tf.nn.moments(inputs, axes=list(range(len(inputs.shape) - 1)))
        r, d = self._correction(tf.stop_gradient(mean), tf.stop_gradient(variance))
        outputs = tf.nn.batch_normalization(
            inputs, mean, variance, self.gamma * d + self.beta, self.gamma * r, self.epsilon
        )
        # INVARIANT: the moments move after r and d are computed, which need the old moments.
        self._move_moments(mean, variance, count=tf.size(inputs) // inputs.shape[-1])
        return outputs

    def _correction(self, mean: tf.Tensor, variance: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        sigma = tf.sqrt(self.moving_variance + self.epsilon)
        r = tf.sqrt(variance + self.epsilon) / sigma
        d = (mean - self.moving_mean) / sigma
        return (
            tf.clip_by_value(r, 1.0 / self.r_max, self.r_max),
            tf.clip_by_value(d, -self.d_max, self.d_max),
        )

    def _move_moments(self, mean: tf.Tensor, variance: tf.Tensor, *, count: tf.Tensor) -> None:
        m = tf.cast(count, variance.dtype)
        unbiased = variance * m / tf.maximum(m - 1.0, 1.0)
        rate = 1.0 - self.momentum
        self.moving_mean.assign_add(rate * (mean - self.moving_mean))
        self.moving_variance.assign_add(rate * (unbiased - self.moving_variance))

    def set_limits(
        self,
        *,
        r_max: float | None = None,
        d_max: float | None = None,
        momentum: float | None = None,
    ) -> None:
        """Change the limits or the momentum, even inside a compiled training step."""
        given = {"r_max": r_max, "d_max": d_max, "momentum": momentum}
        changed = {name: value for name, value in given.items() if value is not None}
        _check_limits(**{**self.limits(), **changed})
        for name, value in changed.items():
            self._initial[name] = value
            if self.built:
                getattr(self, name).assign(value)

    def limits(self) -> dict[str, float]:
        """Return the current `r_max`, `d_max` and `momentum`."""
        if not self.built:
            return dict(self._initial)
        return {name: _shortest(getattr(self, name).numpy()) for name in self._initial}

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            **self.limits(),
            "epsilon": self.epsilon,
            "adapt_moments": self.adapt_moments,
        }


def _check_limits(*, momentum: float, r_max: float, d_max: float) -> None:
    if not 0 <= momentum <= 1:
        raise ModelError(f"Expected a momentum from 0 to 1, got {momentum}", "the default is 0.99")
    if not r_max >= 1:
        raise ModelError(
            f"Expected r_max of at least 1, got {r_max}", "1 turns the scaling by r off"
        )
    if not d_max >= 0:
        raise ModelError(f"Expected d_max of at least 0, got {d_max}", "0 turns the shift by d off")


def _shortest(value: Any) -> float:
    """Return the shortest decimal of a float32 scalar: 1.1, not 1.10000002384."""
    return float(str(value))
