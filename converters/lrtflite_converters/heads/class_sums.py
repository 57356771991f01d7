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
# Minimum distance of a class's own patterns from the other classes, as a cosine, relative to that
# of its mean. A single pattern says nothing about how close the next one will be.
MIN_REACH = 0.25
# Limits of the way from the other classes to a class: rounding decides it where both are the same.
MIN_WAY, MAX_WAY = -1.0, 2.0
# Spread of cosines with the mean of a lone class, relative to the variance within it over sqrt(F).
# Cosines fall off with the squared distance from the mean, a sum of F terms.
SPREAD = 8.4
# Minimum spread: identical frames have no spread, so rounding would decide.
MIN_SPREAD = 1e-3
# Share of a lone class's own patterns that are less typical of it than a pattern as familiar as 1.
WHOLE = 0.1
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

    def familiarity(self, z: Tensor, scores: Tensor, weights: Tensor | None = None) -> Tensor:
        """Return (n,): the place of each pattern (n, F) between other classes, 0, and its own, 1.

        Its class is the one with the highest score (n, C). The other classes count by the mean of
        their means, which is independent of how many patterns and how many classes there are. The
        place is the mean of three: the share of the way from the others to the class, measured
        along the class's `weights` (C, F) if the head has them; the cosine with the mean of the
        class, relative to that of the others and to that of its own patterns; and the cosine of the
        angle, seen from the others, between the pattern and the mean of the class.

        Without other classes it is the share of the class's patterns that are less typical,
        relative to WHOLE. Patterns of a class without sums are familiar.
        """
        slot = tf.argmax(scores, axis=-1, output_type=tf.int32)
        means, classes = self.means(), tf.reduce_sum(self.learned())
        mean = tf.gather(means, slot)
        others = (tf.reduce_sum(means, axis=0) - mean) / tf.maximum(classes - 1.0, 1.0)
        apart, off = mean - others, z - others
        along = apart if weights is None else tf.gather(weights, slot)
        way = _dot(off, along) / tf.maximum(_dot(apart, along), LEAST)
        direction = unit_rows(mean)
        low, own = _dot(others, direction), self._own_cosine(mean, tf.gather(self.counts, slot))
        cosine = _dot(z, direction)
        near = (cosine - low) / tf.maximum(own - low, MIN_REACH * (1.0 - low) + LEAST)
        angle = _dot(unit_rows(off), unit_rows(apart))
        place = (tf.clip_by_value(way, MIN_WAY, MAX_WAY) + near + angle) / 3.0
        typical = tf.sigmoid(_LOGISTIC * (cosine - own) / self._spread())
        found = tf.where(classes > 1.5, place, typical / WHOLE)
        unseen = 1.0 - tf.gather(self.learned(), slot)
        return tf.maximum(tf.clip_by_value(found, 0.0, 1.0), unseen)

    def _own_cosine(self, mean: Tensor, counts: Tensor) -> Tensor:
        """Return (n,): mean cosine of a class's patterns with its mean, leaving out one at a time.

        On average, z . S is |S|^2 / n for the sum S of n patterns, and z . z is 1.
        """
        n = tf.maximum(counts, 2.0)
        length2 = counts * counts * _dot(mean, mean)
        return (length2 / n - 1.0) / tf.sqrt(tf.maximum(length2 * (1.0 - 2.0 / n) + 1.0, 1.0))

    def _spread(self) -> Tensor:
        """Return (1,): the standard deviation of the cosines of patterns with their class mean."""
        free = tf.maximum(self.patterns - tf.reduce_sum(self.learned()), 1.0)
        features = float(self.sums.shape[1])
        spread = SPREAD / features**0.5 * tf.reduce_sum(self.within()) / free
        return tf.maximum(spread, MIN_SPREAD)


def _dot(a: Tensor, b: Tensor) -> Tensor:
    """Return the product of each pair of rows: (n, F), (n, F) -> (n,)."""
    return tf.reduce_sum(a * b, axis=-1)
