"""Quantisation-aware fine-tuning: the rounded network learns to give the float latents.

The float network is the teacher, so frames need no labels, and latents stay what the layers above
the replay layer were trained on (docs/studies/quantisation.md compares it with labels).
"""

from __future__ import annotations

import numpy as np
import tensorflow as tf
import tf_keras as keras
from numpy.typing import NDArray

from lrtflite.errors import ModelError
from lrtflite_converters.quantise.bias_correction import correct_biases
from lrtflite_converters.quantise.preparation import Preparation
from lrtflite_converters.quantise.wrapping import Ranges, wrap

# First learning rate of Adam, relative to the largest weight of each output channel, because channels
# of a folded network differ in size by a factor of a thousand. One int8 step is 0.008.
RATE = 3e-5
# Adam's decay of the mean gradient and of the mean square, and the smallest root to divide by.
DECAYS, LEAST = (0.9, 0.99), 1e-12
BATCH = 16
# Steps until the learning rate is reached; Adam's first ones have the sign of a single gradient.
WARM_UP = 20
# Every eighth frame decides which epoch is kept.
HELD_OUT = 8
# Frames that go through the network at a time without training.
AT_ONCE = 25


def fine_tune(preparation: Preparation) -> None:
    """Move the weights of the network; keep those of the best epoch, which may be none."""
    model, frames = preparation.model, preparation.frames
    inputs = preparation.scaling(frames)
    ranges = output_ranges(model, inputs)
    student = wrap(model, ranges)  # raises for a layer that cannot be wrapped, before any work
    teacher = _outputs(model, np.asarray(preparation.scale(frames)))
    correct_biases(preparation)
    _copy(model, student)
    held = np.arange(len(frames)) % HELD_OUT == HELD_OUT - 1
    if not held.any() or held.all():
        held = np.ones(len(frames), bool)
    learned = ~held if not held.all() else held
    best, kept = _error(student, inputs[held], teacher[held]), _weights(student)
    rng = np.random.default_rng(0)
    adam = _Adam(student, ranges)
    steps = preparation.epochs * -(-int(learned.sum()) // BATCH)
    done = 0
    for epoch in range(preparation.epochs):
        preparation.stage(f"fine-tuning for int8, epoch {epoch + 1} of {preparation.epochs}")
        order = rng.permutation(np.flatnonzero(learned))
        for start in range(0, len(order), BATCH):
            few = order[start : start + BATCH]
            rate = RATE * min(1, (done + 1) / WARM_UP) * 0.5 * (1 + np.cos(np.pi * done / steps))
            adam.step(*map(tf.constant, (inputs[few], teacher[few], np.float32(rate))))
            done += 1
        error = _error(student, inputs[held], teacher[held])
        if not np.isfinite(error):
            raise ModelError(
                f"Expected a finite loss of fine-tuning, got {error} in epoch {epoch + 1}; use "
                "--quantize int8"
            )
        if error < best:
            best, kept = error, _weights(student)
    for layer in preparation.convolutions:
        layer.set_weights(kept[layer.name])


def output_ranges(model: keras.Model, inputs: NDArray[np.float32]) -> Ranges:
    """Return the smallest and the largest output of each layer, with 0 between them."""
    names = [layer.name for layer in model.layers[1:]]
    probe = keras.Model(model.input, [layer.output for layer in model.layers[1:]])
    low, high = np.zeros(len(names)), np.zeros(len(names))
    for start in range(0, len(inputs), AT_ONCE):
        outputs = probe(inputs[start : start + AT_ONCE])
        outputs = outputs if isinstance(outputs, list) else [outputs]
        low = np.minimum(low, [float(tf.reduce_min(each)) for each in outputs])
        high = np.maximum(high, [float(tf.reduce_max(each)) for each in outputs])
    return {name: (low[i], max(high[i], low[i] + 1e-6)) for i, name in enumerate(names)}


class _Adam(tf.Module):
    """Adam with steps relative to the size of each output channel."""

    def __init__(self, student: keras.Model, ranges: Ranges) -> None:
        super().__init__()
        object.__setattr__(self, "student", student)
        self.variables_of, self.sizes = [], []
        for name, (kernel, *bias) in _variables(student).items():
            depthwise = "depthwise" in kernel.name
            axes = (0, 1) if depthwise else (0, 1, 2)
            self.variables_of += [kernel, *bias]
            self.sizes.append(tf.reduce_max(tf.abs(kernel), axis=axes, keepdims=True))
            self.sizes += [
                tf.constant((ranges[name][1] - ranges[name][0]) / 8.0, tf.float32)
            ] * len(bias)
        self.moments = [
            [tf.Variable(tf.zeros_like(variable)) for variable in self.variables_of] for _ in DECAYS
        ]
        self.count = tf.Variable(0.0)

    @tf.function  # type: ignore[misc]
    def step(self, inputs: tf.Tensor, wanted: tf.Tensor, rate: tf.Tensor) -> None:
        with tf.GradientTape() as tape:
            found = self.student(inputs, training=True)
            loss = tf.reduce_sum(tf.square(found - wanted)) / tf.reduce_sum(tf.square(wanted))
        gradients = tape.gradient(loss, self.variables_of)
        self.count.assign_add(1.0)
        means, squares = self.moments
        for place, gradient in enumerate(gradients):
            mean, square = means[place], squares[place]
            mean.assign_add((1 - DECAYS[0]) * (gradient - mean))
            square.assign_add((1 - DECAYS[1]) * (gradient * gradient - square))
            corrected = mean / (1 - DECAYS[0] ** self.count)
            root = tf.sqrt(square / (1 - DECAYS[1] ** self.count)) + LEAST
            self.variables_of[place].assign_sub(rate * self.sizes[place] * corrected / root)


def _error(student: keras.Model, inputs: NDArray[np.float32], wanted: NDArray[np.float32]) -> float:
    """Return the power of the noise, relative to that of the signal."""
    found = _outputs(student, inputs, training=True)  # rounds with the present weights' ranges
    return float(np.square(found - wanted).sum() / np.square(wanted).sum())


def _outputs(model: keras.Model, inputs: NDArray[np.float32], **mode: bool) -> NDArray[np.float32]:
    parts = [
        model(inputs[start : start + AT_ONCE], **mode).numpy()
        for start in range(0, len(inputs), AT_ONCE)
    ]
    return np.concatenate(parts)


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
