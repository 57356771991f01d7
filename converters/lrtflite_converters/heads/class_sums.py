"""Sums over patterns by class: the knowledge of closed-form heads, and the basis of familiarity.

Patterns are transformed first: z = x / sqrt(|x|), value by value, then scaled to length 1. The
square root keeps a few strong features from dominating; negative features stay negative.
"""

from __future__ import annotations

import tensorflow as tf

from lrtflite.bundle.manifest import SUM, SUM_BY_CLASS
from lrtflite_converters.gradients.window import Tensor

# Minimum absolute value to divide by.
LEAST = 1e-12
# Share of the mean direction of all classes that is subtracted from the direction of each class:
# features that all patterns share say little about one class. Chosen on validation streams, like
# SPREAD (benchmarks/unknown.py).
CONTRAST = 0.5
# Spread of typicality, relative to the variance within classes over sqrt(F). Cosines fall off with
# the squared distance from the mean, a sum of F terms. Chosen so that about 5 % of the taught
# patterns, each left out in turn, have a familiarity below 0.05.
SPREAD = 4.2
# Minimum spread: identical frames have no spread, so rounding would decide.
MIN_SPREAD = 1e-3
# Factor of the logistic approximation of the normal distribution, which is accurate to 0.01.
_LOGISTIC = 1.702


def transform(features: Tensor) -> Tensor:
    """Return signed square roots, scaled to length 1, (n, F) -> (n, F); rows of zeros stay zero."""
    root = features / tf.sqrt(tf.maximum(tf.abs(features), LEAST))
    return unit_rows(root)


def unit_rows(x: Tensor) -> Tensor:
    """Scale rows to length 1; rows of zeros stay zero."""
    length = tf.sqrt(tf.reduce_sum(x * x, axis=-1, keepdims=True))
    return x / tf.maximum(length, LEAST)


class ClassSums(tf.Module):
    """Sums of transformed patterns: by class (C, F), their counts (C,), and their squares (F,).

    `squares` and `patterns` include forgotten classes, without their means: the variance within
    classes remains after a class is forgotten.
    """

    def __init__(self, slots: int, features: int) -> None:
        super().__init__()
        self.sums = tf.Variable(tf.zeros((slots, features)), name="class_sums")
        self.counts = tf.Variable(tf.zeros(slots), name="class_counts")
        self.squares = tf.Variable(tf.zeros(features), name="squares")
        self.patterns = tf.Variable(tf.zeros(1), name="pattern_count")

    @property
    def state(self) -> dict[str, tf.Variable]:
        return {
            "class_sums": self.sums,
            "class_counts": self.counts,
            "squares": self.squares,
            "pattern_count": self.patterns,
        }

    @property
    def merging(self) -> dict[str, str]:
        """Return the rule by which each tensor merges with that of another device."""
        return {
            "class_sums": SUM_BY_CLASS,
            "class_counts": SUM_BY_CLASS,
            "squares": SUM,
            "pattern_count": SUM,
        }

    def gather(self, features: Tensor, targets: Tensor) -> Tensor:
        """Add patterns (B, F) with one-hot targets (B, C); return them transformed.

        A row of zeros in `targets` is an empty place, which adds nothing and becomes zeros.
        """
        z = transform(features) * tf.reduce_max(targets, axis=-1, keepdims=True)
        self.sums.assign_add(tf.matmul(targets, z, transpose_a=True))
        self.counts.assign_add(tf.reduce_sum(targets, axis=0))
        self.squares.assign_add(tf.reduce_sum(z * z, axis=0))
        self.patterns.assign_add(tf.reshape(tf.reduce_sum(targets), [1]))
        return z

    def forget(self, mask: Tensor) -> None:
        """Drop the classes whose mask is 1: their sums, and their means' part of the squares."""
        gone = self.sums * (mask * self.inverse_counts())[:, tf.newaxis] * self.sums
        self.squares.assign_sub(tf.reduce_sum(gone, axis=0))
        self.sums.assign(self.sums * (1.0 - mask)[:, tf.newaxis])
        self.counts.assign(self.counts * (1.0 - mask))

    def learned(self) -> Tensor:
        return tf.cast(self.counts > 0.0, tf.float32)

    def inverse_counts(self) -> Tensor:
        """Return (C,): 1 / count, 0 for a class without patterns."""
        return self.learned() / tf.maximum(self.counts, 1.0)

    def means(self) -> Tensor:
        """Return the class means, (C, F)."""
        return self.sums * self.inverse_counts()[:, tf.newaxis]

    def within(self) -> Tensor:
        """Return (F,): squares around the class means, summed over all patterns; never negative."""
        means = self.sums * self.sums * self.inverse_counts()[:, tf.newaxis]
        return tf.maximum(self.squares - tf.reduce_sum(means, axis=0), 0.0)

    def familiarity(self, z: Tensor, scores: Tensor) -> Tensor:
        """Return (n,): the share of a class's own patterns that are less typical than this one.

        The class is the one with the highest score (n, C). The typicality of a pattern (n, F) is
        its cosine with the class mean, minus CONTRAST times its cosine with the mean direction of
        all classes. Typicality is assumed to be normally distributed with one spread for all
        classes. Its centre is halfway between the expectation of the class and that of all classes,
        because a few patterns say little about their class. Patterns of a class without sums count
        as familiar.
        """
        directions = unit_rows(self.sums)
        share = CONTRAST * self.learned() / tf.maximum(tf.reduce_sum(self.learned()), 1.0)
        common = tf.linalg.matvec(directions, share, transpose_a=True)
        expected = self._expected(directions, common, share)
        patterns = tf.maximum(tf.reduce_sum(self.counts), 1.0)
        overall = tf.reduce_sum(expected * self.counts) / patterns
        best = tf.cast(tf.equal(scores, tf.reduce_max(scores, axis=-1, keepdims=True)), tf.float32)
        best = best / tf.reduce_sum(best, axis=-1, keepdims=True)
        cosine = tf.reduce_sum(tf.matmul(z, directions, transpose_b=True) * best, axis=-1)
        centre = 0.5 * (tf.linalg.matvec(best, expected) + overall)
        off = cosine - tf.linalg.matvec(z, common) - centre
        unseen = 1.0 - tf.linalg.matvec(best, self.learned())
        return tf.maximum(tf.sigmoid(_LOGISTIC * off / self._spread()), unseen)

    def _expected(self, directions: Tensor, common: Tensor, share: Tensor) -> Tensor:
        """Return (C,): mean typicality of the patterns of each class, leaving out one at a time."""
        n = tf.maximum(self.counts, 2.0)
        length2 = tf.reduce_sum(self.sums * self.sums, axis=-1)
        # On average, z . S is |S|^2 / n, and z . z is 1.
        left_out = (length2 / n - 1.0) / tf.sqrt(tf.maximum(length2 * (1.0 - 2.0 / n) + 1.0, 1.0))
        means = self.means()
        own = tf.reduce_sum(means * directions, axis=-1)
        others = tf.linalg.matvec(means, common) - share * own
        return (1.0 - share) * left_out - others

    def _spread(self) -> Tensor:
        """Return (1,): the standard deviation of typicality."""
        free = tf.maximum(self.patterns - tf.reduce_sum(self.learned()), 1.0)
        features = float(self.sums.shape[1])
        spread = SPREAD / features**0.5 * tf.reduce_sum(self.within()) / free
        return tf.maximum(spread, MIN_SPREAD)
