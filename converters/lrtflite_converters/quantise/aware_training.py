"""Quantisation-aware fine-tuning: the rounded network learns to give the float latents.

The float network is the teacher, so frames need no labels, and latents stay what the layers above
the replay layer were trained on (docs/studies/quantisation.md).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
import tf_keras as keras
from numpy.typing import NDArray

from lrtflite.errors import ModelError
from lrtflite_converters.quantise.bias_correction import correct_biases
from lrtflite_converters.quantise.preparation import Preparation
from lrtflite_converters.quantise.wrapping import Ranges, wrap

Frames = NDArray[np.uint8]
# Learning rate of Adam, relative to the largest weight of each output channel, because channels of
# a folded network differ in size by a factor of a thousand. One int8 step is 0.008.
RATE = 3e-5
# Size of a bias, relative to the range of the convolution's output.
BIAS_SHARE = 1 / 8
# Adam's decay of the mean gradient and of the mean square, and the smallest root to divide by.
DECAYS, LEAST = (0.9, 0.99), 1e-12
BATCH = 16
# Steps until the learning rate is reached; Adam's first ones have the sign of a single gradient.
WARM_UP = 20
# Every eighth frame decides which epoch is kept.
HELD_OUT = 8


def fine_tune(preparation: Preparation) -> None:
    """Move the weights of the network; keep those of the best epoch, which may be none."""
    model, frames = preparation.model, preparation.frames
    ranges = output_ranges(preparation)
    student = wrap(model, ranges)  # raises for a layer that cannot be wrapped, before any work
    teacher = keras.models.clone_model(model)
    teacher.set_weights(model.get_weights())
    correct_biases(preparation)
    _copy(model, student)
    lesson = _Lesson(preparation, teacher, student, ranges)
    learned, held = _split(frames)
    best, kept = lesson.error(held), _weights(student)
    order, steps = np.random.default_rng(0), preparation.epochs * -(-len(learned) // BATCH)
    for epoch in range(1, preparation.epochs + 1):
        preparation.stage(f"fine-tuning for int8, epoch {epoch} of {preparation.epochs}")
        shuffled = learned[order.permutation(len(learned))]
        for start in range(0, len(shuffled), BATCH):
            lesson.step(shuffled[start : start + BATCH], steps)
        error = lesson.error(held)
        if not np.isfinite(error):
            raise ModelError(
                f"Expected a finite loss of fine-tuning, got {error} in epoch {epoch}",
                "use --quantize int8",
            )
        if error < best:
            best, kept = error, _weights(student)
    for layer in preparation.convolutions:
        layer.set_weights(kept[layer.name])


def output_ranges(preparation: Preparation) -> Ranges:
    """Return the smallest and the largest output of each layer, with 0 between them."""
    model = preparation.model
    names = [layer.name for layer in model.layers[1:]]
    probe = keras.Model(model.input, [layer.output for layer in model.layers[1:]])
    low, high = np.zeros(len(names)), np.zeros(len(names))
    for start in range(0, len(preparation.frames), BATCH):
        outputs = probe(preparation.scaling(preparation.frames[start : start + BATCH]))
        outputs = outputs if isinstance(outputs, list) else [outputs]
        low = np.minimum(low, [float(tf.reduce_min(each)) for each in outputs])
        high = np.maximum(high, [float(tf.reduce_max(each)) for each in outputs])
    return {name: (low[i], max(high[i], low[i] + 1e-6)) for i, name in enumerate(names)}


class _Lesson:
    """Steps of Adam that bring the student's outputs closer to the teacher's."""

    def __init__(
        self, preparation: Preparation, teacher: keras.Model, student: keras.Model, ranges: Ranges
    ) -> None:
        self._scale, self._scaling = preparation.scale, preparation.scaling
        self._teacher, self._student = teacher, student
        self._variables: list[tf.Variable] = []
        self._sizes: list[tf.Tensor] = []
        for name, (kernel, *bias) in _variables(student).items():
            axes = (0, 1) if "depthwise" in kernel.name else (0, 1, 2)
            low, high = ranges[name]
            self._variables += [kernel, *bias]
            self._sizes.append(tf.reduce_max(tf.abs(kernel), axis=axes, keepdims=True))
            self._sizes += [tf.constant(BIAS_SHARE * (high - low), tf.float32)] * len(bias)
        self._moments = [[tf.Variable(tf.zeros_like(v)) for v in self._variables] for _ in DECAYS]
        self._count = 0
        self._move = tf.function(self._move_eagerly)

    def error(self, frames: Frames) -> float:
        """Return the power of the student's noise, relative to that of the signal."""
        noise = signal = 0.0
        for start in range(0, len(frames), BATCH):
            inputs, wanted = self._batch(frames[start : start + BATCH])
            # In training mode, the student rounds in the ranges of its present weights.
            found = self._student(inputs, training=True)
            noise += float(tf.reduce_sum(tf.square(found - wanted)))
            signal += float(tf.reduce_sum(tf.square(wanted)))
        return noise / max(signal, LEAST)

    def step(self, frames: Frames, steps: int) -> None:
        """Take one of `steps` steps; the rate rises at first and then falls along a cosine."""
        falling = 0.5 * (1 + np.cos(np.pi * self._count / steps))
        self._count += 1
        rate = RATE * min(1, self._count / WARM_UP) * falling
        numbers = tf.constant([rate, *(1 - decay**self._count for decay in DECAYS)], tf.float32)
        self._move(*self._batch(frames), numbers)

    def _batch(self, frames: Frames) -> tuple[Any, Any]:
        return tf.constant(self._scaling(frames)), self._teacher(self._scale(frames))

    def _move_eagerly(self, inputs: tf.Tensor, wanted: tf.Tensor, numbers: tf.Tensor) -> None:
        with tf.GradientTape() as tape:
            found = self._student(inputs, training=True)
            loss = tf.reduce_sum(tf.square(found - wanted)) / tf.reduce_sum(tf.square(wanted))
        gradients = tape.gradient(loss, self._variables)
        for variable, size, gradient, mean, square in zip(
            self._variables, self._sizes, gradients, *self._moments
        ):
            mean.assign_add((1 - DECAYS[0]) * (gradient - mean))
            square.assign_add((1 - DECAYS[1]) * (gradient * gradient - square))
            root = tf.sqrt(square / numbers[2]) + LEAST
            variable.assign_sub(numbers[0] * size * (mean / numbers[1]) / root)


def _split(frames: Frames) -> tuple[Frames, Frames]:
    """Return the frames to learn from and those to judge by; a few frames serve for both."""
    held = np.arange(len(frames)) % HELD_OUT == HELD_OUT - 1
    return (frames[~held], frames[held]) if held.any() else (frames, frames)


def _variables(student: keras.Model) -> dict[str, list[tf.Variable]]:
    """Return kernel and bias of each wrapped convolution, by the name of the original layer."""
    return {
        layer.layer.name: sorted(layer.trainable_weights, key=lambda each: -each.shape.rank)
        for layer in student.layers
        if layer.trainable_weights
    }


def _copy(model: keras.Model, student: keras.Model) -> None:
    """Copy weights of a folded network into its wrapped copy."""
    for name, variables in _variables(student).items():
        for variable, value in zip(variables, model.get_layer(name).get_weights()):
            variable.assign(value)


def _weights(student: keras.Model) -> dict[str, list[NDArray[np.float32]]]:
    return {
        name: [variable.numpy() for variable in variables]
        for name, variables in _variables(student).items()
    }
