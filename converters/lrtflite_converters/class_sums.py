"""Sums over patterns, by class: the memory of heads that cannot forget, and of what is familiar.

Patterns are transformed first: z = x / sqrt(|x|), value by value, then scaled to length 1. The
square root keeps a few strong features from deciding alone; signed features keep their sign.
"""

from __future__ import annotations

import tensorflow as tf

from lrtflite.manifest import SUM, SUM_BY_CLASS
from lrtflite_converters.window import Tensor

# Least absolute value that is divided by.
_LEAST = 1e-12
# Spread of a class's cosines relative to that which independent features would have: features vary
# together. Chosen on validation streams so that 5 % of what was taught fall below 0.05
# (docs/studies/closed-form.md).
SPREAD = 2.0
# Logistic approximation of the normal distribution: within 0.01 everywhere.
_LOGISTIC = 1.702


def transform(features: Tensor) -> Tensor:
    """(n, F) -> (n, F): signed square roots, scaled to length 1; a row of zeros stays one."""
    root = features / tf.sqrt(tf.maximum(tf.abs(features), _LEAST))
    return unit_rows(root)


def unit_rows(x: Tensor) -> Tensor:
    """Scale rows to length 1; a row of zeros stays one."""
    length = tf.sqrt(tf.reduce_sum(x * x, axis=-1, keepdims=True))
    return x / tf.maximum(length, _LEAST)


class ClassSums(tf.Module):
    """Sums of transformed patterns: by class (C, F), their counts (C,), and their squares (F,).

    `squares` and `patterns` are of everything that was ever gathered, less the mean part of what
    was forgotten: the variance within classes outlives a class.
    """

    def __init__(self, slots: int, features: int) -> None:
        super().__init__()
        self.sums = tf.Variable(tf.zeros((slots, features)), name="class_sums")
        self.counts = tf.Variable(tf.zeros(slots), name="class_counts")
        self.squares = tf.Variable(tf.zeros(features), name="squares")
        self.patterns = tf.Variable(tf.zeros(1), name="patterns")

    @property
    def state(self) -> dict[str, tf.Variable]:
        return {
            "class_sums": self.sums,
            "class_counts": self.counts,
            "squares": self.squares,
            "patterns": self.patterns,
        }

    @property
    def merging(self) -> dict[str, str]:
        """Return the rule by which each tensor merges with that of another device."""
        return {
            "class_sums": SUM_BY_CLASS,
            "class_counts": SUM_BY_CLASS,
            "squares": SUM,
            "patterns": SUM,
        }

    def gather(self, z: Tensor, targets: Tensor) -> None:
        """Add transformed patterns (B, F) with one-hot targets (B, C); empty places are zeros."""
        self.sums.assign_add(tf.matmul(targets, z, transpose_a=True))
        self.counts.assign_add(tf.reduce_sum(targets, axis=0))
        self.squares.assign_add(tf.reduce_sum(z * z, axis=0))
        self.patterns.assign_add(tf.reshape(tf.reduce_sum(targets), [1]))

    def forget(self, mask: Tensor) -> None:
        """Drop the classes whose mask is 1: their sums, and the part of the squares from means."""
        gone = self.sums * (mask * self.inverse_counts())[:, tf.newaxis] * self.sums
        self.squares.assign_sub(tf.reduce_sum(gone, axis=0))
        self.sums.assign(self.sums * (1.0 - mask)[:, tf.newaxis])
        self.counts.assign(self.counts * (1.0 - mask))

    def learned(self) -> Tensor:
        return tf.cast(self.counts > 0.0, tf.float32)

    def inverse_counts(self) -> Tensor:
        """(C,): 1 / count, 0 for a class without patterns."""
        return self.learned() / tf.maximum(self.counts, 1.0)

    def means(self) -> Tensor:
        """(C, F)."""
        return self.sums * self.inverse_counts()[:, tf.newaxis]

    def within(self) -> Tensor:
        """(F,): squares around the class means, summed over all patterns; never negative."""
        means = self.sums * self.sums * self.inverse_counts()[:, tf.newaxis]
        return tf.maximum(self.squares - tf.reduce_sum(means, axis=0), 0.0)

    def familiarity(self, z: Tensor, scores: Tensor) -> Tensor:
        """(n, F), (n, C) -> (n,): the share of a class's own patterns that are less like its mean.

        The class is the one with the greatest score. Its patterns' cosines with the mean of the
        others are taken as normally distributed; mean and variance follow from the sums.
        """
        directions = unit_rows(self.sums)
        expected, spread = self._expected(directions)
        best = tf.cast(tf.equal(scores, tf.reduce_max(scores, axis=-1, keepdims=True)), tf.float32)
        cosine = tf.reduce_sum(tf.matmul(z, directions, transpose_b=True) * best, axis=-1)
        off = cosine - tf.linalg.matvec(best, expected)
        return tf.sigmoid(_LOGISTIC * off / tf.linalg.matvec(best, spread))

    def _expected(self, directions: Tensor) -> tuple[Tensor, Tensor]:
        """(C,), (C,): mean and standard deviation of the cosines, leaving one pattern out."""
        n = tf.maximum(self.counts, 2.0)
        length2 = tf.reduce_sum(self.sums * self.sums, axis=-1)
        # z . S is |S|^2 / n in the mean, z . z is 1.
        expected = (length2 / n - 1.0) / tf.sqrt(tf.maximum(length2 * (1.0 - 2.0 / n) + 1.0, 1.0))
        variance = self.within() / tf.maximum(self.patterns, 1.0)
        spread2 = tf.linalg.matvec(directions * directions, variance)
        return expected, SPREAD * tf.sqrt(tf.maximum(spread2, 1e-8))
