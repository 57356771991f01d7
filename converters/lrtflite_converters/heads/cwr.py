"""CWR* with SGD above a trunk.

CWR* (the paper's Section 5; algorithm 2 of Lomonaco et al., 2019) keeps the last layer twice:
consolidated weights `cw`, from which inference answers, and working weights `tw`, which a session
trains. `begin` loads `tw` from `cw`. `consolidate` merges `tw` back into `cw`, weighted by the
number of patterns of a class before and in this session. The trunk trains along with `tw`.

Without a trunk, `gather` keeps class sums next to the weights, from which `infer` computes how
familiar a pattern is. A head with a trunk has neither, because its sums would come from older
features.
"""

from __future__ import annotations

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from lrtflite_converters.gradients.window import Tensor
from lrtflite_converters.heads.class_sums import ClassSums, transform
from lrtflite_converters.heads.gradient import GradientHead
from lrtflite_converters.heads.head import Rates, present, softmax_over
from lrtflite_converters.tflite.signature import Outputs


class CwrHead(GradientHead):
    """Consolidated weights `cw` (C, F) and counts of patterns `past` (C,), above a trunk.

    `classes` are the sums that familiarity is computed from; None if a trunk trains.
    """

    begin_scalars = ("head_start",)

    def build(self) -> None:
        shape = (self.slots, self.trunk.features)
        self.cw = tf.Variable(tf.zeros(shape), name="cw")
        self.past = tf.Variable(tf.zeros(self.slots), name="past")
        self.tw = self.make_last("tw")
        self.classes = None if self.trunk.trains else ClassSums(*shape)

    def start_from(self, weights: NDArray[np.float32], counts: NDArray[np.float32]) -> None:
        # The training on the host was the first session, so consolidate it like any other.
        self.tw.assign(weights)
        self._fuse(tf.constant(counts))
        self.tw.assign(tf.zeros_like(self.tw))

    @property
    def state(self) -> dict[str, tf.Variable]:
        of_trunk = {**self.trunk.state, **self.regulariser.state}
        sums = {} if self.classes is None else self.classes.state
        return {"cw": self.cw, "past": self.past, **sums, **of_trunk}

    @property
    def merging(self) -> dict[str, str]:
        return {**super().merging, **(self.classes.merging if self.classes is not None else {})}

    @property
    def gathers(self) -> bool:
        return self.classes is not None or super().gathers

    def learned(self) -> Tensor:
        return present(self.past)

    def infer(self, latents: Tensor) -> Outputs:
        features = self.trunk.infer(latents)
        scores = tf.matmul(features, self.cw, transpose_b=True)
        learned = self.learned()
        outputs = {"probabilities": softmax_over(scores, learned)}
        if self.classes is not None:
            masked = scores - 1e9 * (1.0 - learned)
            outputs["familiarity"] = self.classes.familiarity(transform(features), masked)
        return outputs

    def begin(self, counts: Tensor, rates: Rates) -> None:
        """Load the working weights of the classes that the session will see; zero the others.

        A new class among known ones starts from `head_start` times their mean. With 0, as in the
        paper, its scores have to rise above all others, and it then wins on every uncertain frame.
        """
        coming, learned = present(counts), self.learned()
        known = (coming * learned)[:, tf.newaxis]
        mean = tf.reduce_sum(self.cw * known, axis=0) / tf.maximum(tf.reduce_sum(known), 1.0)
        new = (coming * (1.0 - learned))[:, tf.newaxis]
        self.tw.assign(self.cw * coming[:, tf.newaxis] + new * (rates["head_start"] * mean))
        self.begin_training(counts, rates)

    def gather(self, latents: Tensor, targets: Tensor, rates: Rates) -> None:
        super().gather(latents, targets, rates)
        if self.classes is not None:
            self.classes.gather(self.trunk.infer_parts(latents), targets)

    def consolidate(self, counts: Tensor, rates: Rates) -> None:
        self._fuse(counts)
        self.regulariser.consolidate(rates)

    def _fuse(self, counts: Tensor) -> None:
        """Fuse the working weights of the session's classes into the consolidated ones."""
        coming = present(counts)[:, tf.newaxis]
        classes = tf.maximum(tf.reduce_sum(coming), 1.0)
        average = tf.reduce_sum(self.tw * coming) / (classes * self.tw.shape[1])
        past_weight = tf.sqrt(self.past / tf.maximum(counts, 1.0))[:, tf.newaxis]
        fused = (self.cw * past_weight + (self.tw - average)) / (past_weight + 1.0)
        self.cw.assign(coming * fused + (1.0 - coming) * self.cw)
        self.past.assign_add(counts)

    def forget(self, mask: Tensor) -> None:
        kept = 1.0 - mask
        self.cw.assign(self.cw * kept[:, tf.newaxis])
        self.past.assign(self.past * kept)
        if self.classes is not None:
            self.classes.forget(mask)
