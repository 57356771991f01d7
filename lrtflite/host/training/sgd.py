"""Training steps on the host: SGD with momentum, and weight decay on kernels only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf
import tf_keras as keras
from numpy.typing import NDArray

from lrtflite.host.mobilenet import scale_frames
from lrtflite.host.training.streamed import StreamedFrames


class SgdTrainer:
    """Trains a classifier whose outputs are logits.

    v <- momentum * v - lr * (gradient + weight_decay * w), w <- w + v. The decay is part of the
    gradient, as in Caffe; gamma and beta have none. `velocities` are in the order of
    `model.trainable_weights`. With `latents` the model starts above the frozen layers and takes
    their outputs, `(B, ...)` float32, instead of frames, which `scale` turns into inputs.
    """

    def __init__(
        self,
        model: keras.Model,
        *,
        momentum: float,
        weight_decay: float,
        latents: bool = False,
        scale: Callable[[Any], Any] = scale_frames,
    ) -> None:
        self.model = model
        self._momentum = momentum
        self._latents = latents
        self._scale = scale
        self._decays = [
            weight_decay if weight.name.endswith("kernel:0") else 0.0
            for weight in model.trainable_weights
        ]
        self.velocities = [
            tf.Variable(tf.zeros_like(weight), trainable=False)
            for weight in model.trainable_weights
        ]
        last = {weight.ref() for weight in model.layers[-1].weights}
        self._is_last = [weight.ref() in last for weight in model.trainable_weights]
        frames = tf.TensorSpec((None, *model.input_shape[1:]), tf.float32 if latents else tf.uint8)
        labels = tf.TensorSpec((None,), tf.int64)
        rate = tf.TensorSpec((), tf.float32)
        self._step = tf.function(self._train, input_signature=[frames, labels, rate, rate])
        self._predict = tf.function(self._infer, input_signature=[frames])

    def step(
        self, frames: NDArray[Any], labels: NDArray[np.int64], *, lr: float, lower_lr: float
    ) -> tuple[float, int]:
        """Take one step on `(B, S, S, 3)` frames and `(B,)` slots.

        `lr` is the learning rate of the last layer, `lower_lr` the learning rate of the layers
        below it. Return the mean loss and the number of correct frames, both before the step.
        """
        loss, hits = self._step(frames, labels, np.float32(lr), np.float32(lower_lr))
        return float(loss), int(hits)

    def accuracy(
        self, frames: NDArray[Any] | StreamedFrames, labels: NDArray[np.int64], *, batch_size: int
    ) -> float:
        """Return the share of `(N, S, S, 3)` frames classified correctly; NaN without frames."""
        hits = 0
        for start in range(0, len(frames), batch_size):
            logits = self._predict(frames[start : start + batch_size]).numpy()
            hits += int((logits.argmax(axis=1) == labels[start : start + batch_size]).sum())
        return hits / len(frames) if len(frames) else float("nan")

    def _train(
        self, frames: tf.Tensor, labels: tf.Tensor, lr: tf.Tensor, lower_lr: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        weights = self.model.trainable_weights
        with tf.GradientTape() as tape:
            logits = self.model(self._prepare(frames), training=True)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
            loss = tf.reduce_mean(losses)
        gradients = tape.gradient(loss, weights)
        for weight, gradient, velocity, decay, is_last in zip(
            weights, gradients, self.velocities, self._decays, self._is_last
        ):
            rate = lr if is_last else lower_lr
            velocity.assign(self._momentum * velocity - rate * (gradient + decay * weight))
            weight.assign_add(velocity)
        return loss, tf.reduce_sum(tf.cast(tf.argmax(logits, axis=1) == labels, tf.int64))

    def _infer(self, frames: tf.Tensor) -> tf.Tensor:
        return self.model(self._prepare(frames), training=False)

    def _prepare(self, frames: tf.Tensor) -> tf.Tensor:
        return frames if self._latents else self._scale(frames)
