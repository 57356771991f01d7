"""Deep streaming linear discriminant analysis (Hayes & Kanan, 2020), as the paper compares it.

Each pattern x of class y updates, in this order, the covariance and the mean of its class:
S <- (t S + D) / (t + 1), with D = t / (t + 1) (x - m_y)(x - m_y)^T and t patterns before; then
m_y += (x - m_y) / (c_y + 1). The weights solve ((1 - e) S + e I) w_y = m_y. Features are raw and
e is 1e-4; `lda` differs in both, and does better (docs/studies/closed-form.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import tensorflow as tf

from lrtflite_converters.gradients.window import Tensor
from lrtflite_converters.heads.discriminant import Discriminant
from lrtflite_converters.heads.head import Head, Rates, present
from lrtflite_converters.tflite.signature import Outputs


class DsldaHead(Head):
    """Sums (C, F) and counts (C,) of each class, and the scatter (F, F), which is t S."""

    scalars: Mapping[str, Sequence[str]] = {"consolidate": ("shrinkage", "temperature")}

    def build(self) -> None:
        slots, features = self.slots, self.trunk.features
        self.sums = tf.Variable(tf.zeros((slots, features)), name="class_sums")
        self.counts = tf.Variable(tf.zeros(slots), name="class_counts")
        self.scatter = tf.Variable(tf.zeros((features, features)), name="scatter")
        self.patterns = tf.Variable(tf.zeros(1), name="pattern_count")
        self.answer = Discriminant(slots, features)

    @property
    def state(self) -> dict[str, tf.Variable]:
        return {
            "class_sums": self.sums,
            "class_counts": self.counts,
            "scatter": self.scatter,
            "pattern_count": self.patterns,
            **self.answer.state,
        }

    def learned(self) -> Tensor:
        return present(self.counts)

    def infer(self, latents: Tensor) -> Outputs:
        scores = self.answer.scores(self.trunk.infer(latents))
        return {"probabilities": self.answer.probabilities(scores, self.learned())}

    def gather(self, latents: Tensor, targets: Tensor, rates: Rates) -> None:
        """Add patterns one after the other, in three products.

        Row i of `earlier` marks the patterns before i in the mini-batch, so products with it give
        the mean of a class, and the number of patterns, at the moment when pattern i arrives.
        """
        x = self.trunk.infer_parts(latents)
        size = int(targets.shape[0])
        earlier = tf.constant(np.tril(np.ones((size, size), np.float32), -1))
        taken = tf.reduce_sum(targets, axis=-1, keepdims=True)
        same_class = earlier * tf.matmul(targets, targets, transpose_b=True)
        seen = tf.matmul(targets, self.counts[:, tf.newaxis])
        seen += tf.reduce_sum(same_class, axis=-1, keepdims=True)
        sums = tf.matmul(targets, self.sums) + tf.matmul(same_class, x)
        off = (x - sums / tf.maximum(seen, 1.0)) * taken
        before = self.patterns + tf.matmul(earlier, taken)
        self.scatter.assign_add(tf.matmul(off * (before / (before + 1.0)), off, transpose_a=True))
        self.sums.assign_add(tf.matmul(targets, x, transpose_a=True))
        self.counts.assign_add(tf.reduce_sum(targets, axis=0))
        self.patterns.assign_add(tf.reshape(tf.reduce_sum(targets), [1]))

    def consolidate(self, counts: Tensor, rates: Rates) -> None:
        total = tf.maximum(tf.reduce_sum(self.counts), 1.0)
        scatter = tf.convert_to_tensor(self.scatter)
        share = (1.0 - rates["shrinkage"]) / tf.maximum(tf.reshape(self.patterns, []), 1.0)
        features = self.trunk.features
        places = np.arange(features, dtype=np.int32) * (features + 1)
        diagonal = tf.gather(tf.reshape(scatter, [-1]), places)
        self.answer.solve(
            self.sums / tf.maximum(self.counts, 1.0)[:, tf.newaxis],
            self.learned(),
            centre=tf.reduce_sum(self.sums, axis=0) / total,
            covariance=lambda rows: share * tf.matmul(rows, scatter) + rates["shrinkage"] * rows,
            diagonal=share * diagonal + rates["shrinkage"],
            temperature=rates["temperature"],
        )

    def forget(self, mask: Tensor) -> None:
        """Drop classes. The scatter is around class means, and is shared by all classes."""
        kept = 1.0 - mask
        self.sums.assign(self.sums * kept[:, tf.newaxis])
        self.counts.assign(self.counts * kept)
        self.answer.forget(mask)
