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

from collections.abc import Mapping, Sequence

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from lrtflite_converters.class_sums import ClassSums, transform
from lrtflite_converters.differentiable import matmul, softmax_cross_entropy
from lrtflite_converters.heads.head import Head, HeadPlan, Rates, present, softmax_over
from lrtflite_converters.parameter import Parameter, Sgd
from lrtflite_converters.regularisers.regulariser import Regulariser
from lrtflite_converters.signature import Outputs
from lrtflite_converters.trunk import TRUNK_SCALARS
from lrtflite_converters.window import Tensor

LAST_SCALARS = ("lr", "momentum", "weight_decay")


class CwrHead(Head):
    """Consolidated weights `cw` (C, F) and counts of patterns `past` (C,), above a trunk.

    `classes` are the sums that familiarity is computed from; None if a trunk trains.
    """

    def __init__(self, plan: HeadPlan) -> None:
        trunk = plan.trunk
        of_trunk = (*TRUNK_SCALARS, *trunk.regulariser.scalars.get("train", ()))
        self.scalars: Mapping[str, Sequence[str]] = {
            "begin": ("head_start",),
            "train": (*LAST_SCALARS, *(of_trunk if trunk.trains else ())),
            "train_last": LAST_SCALARS,
            "consolidate": trunk.regulariser.scalars.get("consolidate", ()),
        }
        super().__init__(plan)

    def build(self) -> None:
        shape = (self.slots, self.trunk.features)
        self.cw = tf.Variable(tf.zeros(shape), name="cw")
        self.past = tf.Variable(tf.zeros(self.slots), name="past")
        self.tw = tf.Variable(tf.zeros(shape), name="tw")
        self.last = Parameter("tw", self.tw, decays=True)
        self.unguarded = Regulariser()
        self.classes = None if self.trunk.trains else ClassSums(*shape)
        # 1 in a session that trains the trunk, 0 in one that trains only the last layer.
        self.share = tf.Variable([0.0], name="share")

    def start_from(self, weights: NDArray[np.float32], counts: NDArray[np.float32]) -> None:
        # The training on the host was the first session, so consolidate it like any other.
        self.tw.assign(weights)
        self._fuse(tf.constant(counts))
        self.tw.assign(tf.zeros_like(self.tw))

    @property
    def state(self) -> dict[str, tf.Variable]:
        of_trunk = {**self.trunk.state, **self.trunk.regulariser.state}
        sums = {} if self.classes is None else self.classes.state
        return {"cw": self.cw, "past": self.past, **sums, **of_trunk}

    @property
    def merging(self) -> dict[str, str]:
        return {**super().merging, **(self.classes.merging if self.classes is not None else {})}

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
        zero = tf.minimum(tf.reduce_min(counts), 0.0)
        self.last.begin(zero)
        self.trunk.begin(zero)
        self.share.assign(tf.reshape(self.more_trains(counts), [1]))

    def train(self, latents: Tensor, targets: Tensor, rates: Rates) -> Outputs:
        """Take one SGD step on the cross entropy with soft targets, over all C slots."""
        passed = self.trunk.train(latents, rates)
        error, weights, outputs = self._step_last(passed.features, targets, rates)
        if self.trunk.trains:
            share = tf.reshape(tf.convert_to_tensor(self.share), [])
            passed.step(matmul(error, weights), _sgd(rates), rates, share=share)
        return outputs

    def train_last(self, latents: Tensor, targets: Tensor, rates: Rates) -> Outputs:
        return self._step_last(self.trunk.infer_parts(latents), targets, rates)[2]

    def gather(self, latents: Tensor, targets: Tensor, rates: Rates) -> None:
        assert self.classes is not None  # a head with a trunk that trains lacks this signature
        taken = tf.reduce_max(targets, axis=-1, keepdims=True)
        self.classes.gather(transform(self.trunk.infer_parts(latents)) * taken, targets)

    def consolidate(self, counts: Tensor, rates: Rates) -> None:
        self._fuse(counts)
        self.trunk.regulariser.consolidate(rates)

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

    def _step_last(
        self, features: Tensor, targets: Tensor, rates: Rates
    ) -> tuple[Tensor, Tensor, Outputs]:
        """Move the working weights; return the scores' gradient, the old weights, the outputs."""
        weights = tf.convert_to_tensor(self.tw)
        scores = matmul(features, weights, transpose_b=True)
        loss, pull = softmax_cross_entropy(scores, targets)
        (error,) = pull(tf.ones([]))
        gradient = matmul(tf.transpose(error), features)
        self.last.step(weights, gradient, _sgd(rates), self.unguarded, rates)
        hits = tf.equal(tf.argmax(scores, axis=-1), tf.argmax(targets, axis=-1))
        accuracy = tf.reduce_mean(tf.cast(hits, tf.float32))
        return error, weights, {"loss": loss, "accuracy": accuracy}

    def _overrides(self, name: str) -> bool:
        # Without a trunk, `train` moves only the last layer anyway.
        unfit = "gather" if self.trunk.trains else "train_last"
        return super()._overrides(name) and name != unfit


def _sgd(rates: Rates) -> Sgd:
    return Sgd(rates["lr"], rates["momentum"], rates["weight_decay"])
