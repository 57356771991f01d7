"""The nearest class mean, by the cosine: a head that keeps sums and takes no steps."""

from __future__ import annotations

import tensorflow as tf

from lrtflite_converters.gradients.window import Tensor
from lrtflite_converters.heads.head import Head, Rates, present, softmax_over
from lrtflite_converters.tflite.signature import Outputs


class NearestMean(Head):
    def build(self) -> None:
        self.sums = tf.Variable(tf.zeros((self.slots, self.trunk.features)), name="sums")
        self.counts = tf.Variable(tf.zeros(self.slots), name="counts")

    @property
    def state(self) -> dict[str, tf.Variable]:
        return {"sums": self.sums, "counts": self.counts}

    def learned(self) -> Tensor:
        return present(self.counts)

    def infer(self, latents: Tensor) -> Outputs:
        cosines = tf.matmul(unit(self.trunk.infer(latents)), unit(self.sums), transpose_b=True)
        return {"probabilities": softmax_over(20.0 * cosines, self.learned())}

    def gather(self, latents: Tensor, targets: Tensor, rates: Rates) -> None:
        features = unit(self.trunk.infer_parts(latents))
        self.sums.assign_add(tf.matmul(targets, features, transpose_a=True))
        self.counts.assign_add(tf.reduce_sum(targets, axis=0))

    def consolidate(self, counts: Tensor, rates: Rates) -> None:
        pass  # the sums are the whole state

    def forget(self, mask: Tensor) -> None:
        self.sums.assign(self.sums * (1.0 - mask)[:, tf.newaxis])
        self.counts.assign(self.counts * (1.0 - mask))


def unit(x: Tensor) -> Tensor:
    """Return rows of length 1; a row of zeros stays one."""
    return x / tf.maximum(tf.sqrt(tf.reduce_sum(x * x, axis=-1, keepdims=True)), 1e-12)
