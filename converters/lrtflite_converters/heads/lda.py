"""A head that cannot forget: linear discriminant analysis from sums over the patterns.

Sums do not depend on the order of sessions, so there is nothing to forget and nothing to replay,
and the sums of two devices add up. The within-class covariance is shrunk towards its mean variance,
e = F / (F + N), and the weights of each class solve A w = mean (docs/studies/closed-form.md).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import tensorflow as tf

from lrtflite.manifest import SOLVE, SUM
from lrtflite_converters.class_sums import ClassSums, transform
from lrtflite_converters.conjugate_gradients import solve
from lrtflite_converters.heads.head import Head, Rates, softmax_over
from lrtflite_converters.signature import Outputs
from lrtflite_converters.window import Tensor

# Residual, relative to the target, at which a system counts as solved; and the maximum number of
# steps.
TOLERANCE, MOST_STEPS = 1e-4, 400
# Minimum divisor of the scores: a single class has distance 0 from the mean of all.
LEAST_TEMPERATURE = 1e-3
# Minimum variance of patterns of length 1; any shortfall is added evenly to all features. Identical
# frames have no variance, so rounding would decide. Photographs have about 0.3.
LEAST_VARIANCE = 0.01

SCALARS: Mapping[str, Sequence[str]] = {"consolidate": ("temperature",)}


class LdaHead(Head):
    """Scatter (F, F) and class sums; weights (C, F) and bias (C,) that follow from them."""

    scalars = SCALARS

    def build(self) -> None:
        slots, features = self.slots, self.trunk.features
        self.classes = ClassSums(slots, features)
        self.scatter = tf.Variable(tf.zeros((features, features)), name="scatter")
        self.weights = tf.Variable(tf.zeros((slots, features)), name="weights")
        self.bias = tf.Variable(tf.zeros(slots), name="bias")
        # Divisor of the scores.
        self.temperature = tf.Variable(tf.ones(1), name="temperature")

    @property
    def state(self) -> dict[str, tf.Variable]:
        return {"scatter": self.scatter, **self.classes.state, **self._solved}

    @property
    def _solved(self) -> dict[str, tf.Variable]:
        return {"weights": self.weights, "bias": self.bias, "temperature": self.temperature}

    @property
    def merging(self) -> dict[str, str]:
        return {"scatter": SUM, **self.classes.merging, **dict.fromkeys(self._solved, SOLVE)}

    def learned(self) -> Tensor:
        return self.classes.learned()

    def infer(self, latents: Tensor) -> Outputs:
        z = transform(self.trunk.infer(latents))
        learned = self.learned()
        scores = tf.matmul(z, self.weights, transpose_b=True) + self.bias
        masked = scores - 1e9 * (1.0 - learned)
        return {
            "probabilities": softmax_over(scores / self.temperature, learned),
            "familiarity": self.classes.familiarity(z, masked),
        }

    def gather(self, latents: Tensor, targets: Tensor, rates: Rates) -> None:
        taken = tf.reduce_max(targets, axis=-1, keepdims=True)
        z = transform(self.trunk.infer_parts(latents)) * taken
        self.scatter.assign_add(tf.matmul(z, z, transpose_a=True))
        self.classes.gather(z, targets)

    def consolidate(self, counts: Tensor, rates: Rates) -> None:
        """Solve for the weights, starting from the previous ones.

        Only differences between classes matter, so subtract the mean of all from each class mean
        first. Patterns have so much in common that float32 would lose the differences.
        """
        learned = self.learned()[:, tf.newaxis]
        total = tf.maximum(tf.reduce_sum(self.classes.counts), 1.0)
        centre = tf.reduce_sum(self.classes.sums, axis=0) / total
        offsets = (self.classes.means() - centre) * learned
        covariance, diagonal = self._covariance()
        weights = solve(
            covariance,
            offsets,
            self.weights * learned,
            diagonal=diagonal,
            tolerance=TOLERANCE,
            most_steps=MOST_STEPS,
        )
        self.weights.assign(weights)
        self.bias.assign(-tf.reduce_sum((centre + 0.5 * offsets) * weights, axis=-1))
        # Scores grow with the distances between classes, and so do their errors.
        distance = tf.reduce_sum(offsets * weights) / tf.maximum(tf.reduce_sum(learned), 1.0)
        warmth = tf.maximum(rates["temperature"] * distance, LEAST_TEMPERATURE)
        self.temperature.assign(tf.reshape(warmth, [1]))

    def forget(self, mask: Tensor) -> None:
        """Drop classes. The scatter around their means stays: it is shared by all classes."""
        sums = tf.convert_to_tensor(self.classes.sums)
        gone = sums * (mask * self.classes.inverse_counts())[:, tf.newaxis]
        self.scatter.assign_sub(tf.matmul(gone, sums, transpose_a=True))
        self.classes.forget(mask)
        kept = 1.0 - mask
        self.weights.assign(self.weights * kept[:, tf.newaxis])
        self.bias.assign(self.bias * kept)

    def _covariance(self) -> tuple[Callable[[Tensor], Tensor], Tensor]:
        """Return a function that multiplies rows by the shrunk covariance, and its diagonal."""
        features = float(self.trunk.features)
        patterns = tf.maximum(tf.reshape(self.classes.patterns, []), 1.0)
        shrinkage = features / (features + patterns)
        within = self.classes.within()
        total = tf.reduce_sum(within) / patterns
        missing = tf.maximum(LEAST_VARIANCE - total, 0.0)
        ridge = (shrinkage * total + missing) / features
        share = (1.0 - shrinkage) / patterns
        sums = tf.convert_to_tensor(self.classes.sums)
        scaled = sums * (share * self.classes.inverse_counts())[:, tf.newaxis]
        matrix = share * self.scatter - tf.matmul(scaled, sums, transpose_a=True)

        def multiply(rows: Tensor) -> Tensor:
            return tf.matmul(rows, matrix) + ridge * rows

        return multiply, share * within + ridge
