"""Linear scores that follow from class means and a covariance: weights, bias and temperature."""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf

from lrtflite.bundle.manifest import SOLVE
from lrtflite_converters.gradients.window import Tensor
from lrtflite_converters.heads.conjugate_gradients import solve
from lrtflite_converters.heads.head import softmax_over

# Residual, relative to the target, at which a system counts as solved; and the maximum number of
# steps.
TOLERANCE, MAX_STEPS = 1e-4, 400
# Minimum divisor of the scores: a single class has distance 0 from the mean of all.
MIN_TEMPERATURE = 1e-3


class Discriminant(tf.Module):
    """Weights (C, F) and bias (C,) with A w_c = mean_c, and the divisor of the scores (1,)."""

    def __init__(self, slots: int, features: int) -> None:
        super().__init__()
        self.weights = tf.Variable(tf.zeros((slots, features)), name="weights")
        self.bias = tf.Variable(tf.zeros(slots), name="bias")
        self.temperature = tf.Variable(tf.ones(1), name="temperature")

    @property
    def state(self) -> dict[str, tf.Variable]:
        return {"weights": self.weights, "bias": self.bias, "temperature": self.temperature}

    @property
    def merging(self) -> dict[str, str]:
        return dict.fromkeys(self.state, SOLVE)

    def scores(self, z: Tensor) -> Tensor:
        """Return the scores (n, C) of patterns (n, F)."""
        return tf.matmul(z, self.weights, transpose_b=True) + self.bias

    def probabilities(self, scores: Tensor, learned: Tensor) -> Tensor:
        return softmax_over(scores / self.temperature, learned)

    def solve(
        self,
        means: Tensor,
        learned: Tensor,
        *,
        centre: Tensor,
        covariance: Callable[[Tensor], Tensor],
        diagonal: Tensor,
        temperature: Tensor,
    ) -> None:
        """Solve for the weights of class means (C, F), starting from the previous weights.

        Only differences between classes matter, so subtract the mean of all, `centre` (F,), from
        each class mean first. Patterns have so much in common that float32 would lose the
        differences. `covariance` multiplies rows by A, whose diagonal is (F,). `temperature` is
        relative to the mean distance of a class from the mean of all.
        """
        learned = learned[:, tf.newaxis]
        offsets = (means - centre) * learned
        weights = solve(
            covariance,
            offsets,
            self.weights * learned,
            diagonal=diagonal,
            tolerance=TOLERANCE,
            most_steps=MAX_STEPS,
        )
        self.weights.assign(weights)
        self.bias.assign(-tf.reduce_sum((centre + 0.5 * offsets) * weights, axis=-1))
        # Scores grow with the distances between classes, and so do their errors.
        distance = tf.reduce_sum(offsets * weights) / tf.maximum(tf.reduce_sum(learned), 1.0)
        warmth = tf.maximum(temperature * distance, MIN_TEMPERATURE)
        self.temperature.assign(tf.reshape(warmth, [1]))

    def forget(self, mask: Tensor) -> None:
        kept = 1.0 - mask
        self.weights.assign(self.weights * kept[:, tf.newaxis])
        self.bias.assign(self.bias * kept)
