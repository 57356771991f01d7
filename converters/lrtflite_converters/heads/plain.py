"""A plain softmax layer: fine-tuning, and the base of strategies that only add to it.

The loss is computed over the classes that were learned or are coming. The weights that a session
trains are the ones that `infer` answers from, so each session may overwrite what others taught.
"""

from __future__ import annotations

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from lrtflite_converters.gradients.window import Tensor
from lrtflite_converters.heads.gradient import GradientHead
from lrtflite_converters.heads.head import Rates, present, softmax_over
from lrtflite_converters.tflite.signature import Outputs


class PlainHead(GradientHead):
    """Weights (C, F), and counts of patterns `past` (C,), above a trunk.

    The regulariser protects the last layer like the trunk. There is no double memory here.
    """

    guards_last = True

    def build(self) -> None:
        self.weights = self.make_last("weights")
        self.past = tf.Variable(tf.zeros(self.slots), name="past")
        # 1 for each class that takes part in the session's loss.
        self.open = tf.Variable(tf.zeros(self.slots), name="open")

    def start_from(self, weights: NDArray[np.float32], counts: NDArray[np.float32]) -> None:
        self.weights.assign(weights)
        self.past.assign(counts)

    @property
    def state(self) -> dict[str, tf.Variable]:
        of_trunk = {**self.trunk.state, **self.regulariser.state}
        return {"weights": self.weights, "past": self.past, **of_trunk}

    def learned(self) -> Tensor:
        return present(self.past)

    def infer(self, latents: Tensor) -> Outputs:
        scores = tf.matmul(self.trunk.infer(latents), self.weights, transpose_b=True)
        return {"probabilities": softmax_over(scores, self.learned())}

    def begin(self, counts: Tensor, rates: Rates) -> None:
        self.open.assign(tf.maximum(present(counts), self.learned()))
        self.begin_training(counts, rates)

    def open_scores(self, scores: Tensor) -> Tensor:
        return scores - 1e9 * (1.0 - self.open)

    def consolidate(self, counts: Tensor, rates: Rates) -> None:
        self.past.assign_add(counts)
        self.regulariser.consolidate(rates)

    def forget(self, mask: Tensor) -> None:
        kept = 1.0 - mask
        self.weights.assign(self.weights * kept[:, tf.newaxis])
        self.past.assign(self.past * kept)
        self.regulariser.forget(self.last, mask)
