"""Linear discriminant analysis from sums: the scatter, the class sums, and the scores they give."""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf

from lrtflite.bundle.manifest import SUM
from lrtflite_converters.gradients.window import Tensor
from lrtflite_converters.heads.class_sums import ClassSums
from lrtflite_converters.heads.discriminant import Discriminant

# Minimum variance of patterns of length 1; any shortfall is added evenly to all features. Identical
# frames have no variance, so rounding would decide. Photographs have about 0.3.
MIN_VARIANCE = 0.01


class LdaSums(tf.Module):
    """Scatter (F, F) and class sums; an answer, weights and bias, that follows from them."""

    def __init__(self, slots: int, features: int) -> None:
        super().__init__()
        self.features = features
        self.classes = ClassSums(slots, features)
        self.scatter = tf.Variable(tf.zeros((features, features)), name="scatter")
        self.answer = Discriminant(slots, features)

    @property
    def state(self) -> dict[str, tf.Variable]:
        return {"scatter": self.scatter, **self.classes.state, **self.answer.state}

    @property
    def merging(self) -> dict[str, str]:
        return {"scatter": SUM, **self.classes.merging, **self.answer.merging}

    def clear(self, zero: Tensor) -> None:
        """Empty the sums, but not the answer; `zero` must not be a constant (`Parameter.begin`)."""
        for variable in (self.scatter, *self.classes.state.values()):
            variable.assign(tf.fill(variable.shape, zero))

    def gather(self, features: Tensor, targets: Tensor) -> None:
        """Add patterns (B, F) with one-hot targets (B, C); rows of zeros are empty places."""
        z = self.classes.gather(features, targets)
        self.scatter.assign_add(tf.matmul(z, z, transpose_a=True))

    def solve(self, temperature: Tensor) -> None:
        """Compute the answer; `temperature` is relative, see `Discriminant.solve`."""
        total = tf.maximum(tf.reduce_sum(self.classes.counts), 1.0)
        covariance, diagonal = self._covariance()
        self.answer.solve(
            self.classes.means(),
            self.classes.learned(),
            centre=tf.reduce_sum(self.classes.sums, axis=0) / total,
            covariance=covariance,
            diagonal=diagonal,
            temperature=temperature,
        )

    def familiarity(self, z: Tensor, scores: Tensor) -> Tensor:
        """Return how familiar patterns (n, F) are, given their scores among the learned classes."""
        return self.classes.familiarity(z, scores, tf.convert_to_tensor(self.answer.weights))

    def forget(self, mask: Tensor) -> None:
        """Drop classes. The scatter around their means stays: it is shared by all classes."""
        sums = tf.convert_to_tensor(self.classes.sums)
        gone = sums * (mask * self.classes.inverse_counts())[:, tf.newaxis]
        self.scatter.assign_sub(tf.matmul(gone, sums, transpose_a=True))
        self.classes.forget(mask)
        self.answer.forget(mask)

    def _covariance(self) -> tuple[Callable[[Tensor], Tensor], Tensor]:
        """Return a function that multiplies rows by the shrunk covariance, and its diagonal."""
        features = float(self.features)
        patterns = tf.maximum(tf.reshape(self.classes.patterns, []), 1.0)
        shrinkage = features / (features + patterns)
        within = self.classes.within()
        total = tf.reduce_sum(within) / patterns
        missing = tf.maximum(MIN_VARIANCE - total, 0.0)
        ridge = (shrinkage * total + missing) / features
        share = (1.0 - shrinkage) / patterns
        sums = tf.convert_to_tensor(self.classes.sums)
        scaled = sums * (share * self.classes.inverse_counts())[:, tf.newaxis]
        matrix = share * self.scatter - tf.matmul(scaled, sums, transpose_a=True)

        def multiply(rows: Tensor) -> Tensor:
            return tf.matmul(rows, matrix) + ridge * rows

        return multiply, share * within + ridge
