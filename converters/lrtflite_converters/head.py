"""The trainable head: CWR* with SGD above a trunk, as TFLite signatures.

CWR* (the paper's Section 5; algorithm 2 of Lomonaco et al., 2019) keeps the last layer twice:
consolidated weights `cw`, from which inference answers, and working weights `tw`, which a session
trains. `begin` loads one from the other, `consolidate` fuses them back, weighted by how many
patterns of a class came before and in this session. The trunk trains along with `tw`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from lrtflite.manifest import TRUNK_RATES
from lrtflite_converters.differentiable import matmul, softmax_cross_entropy
from lrtflite_converters.signature import SCALAR, signature
from lrtflite_converters.tflite import to_tflite
from lrtflite_converters.trunk import Trunk
from lrtflite_converters.unit import Rates

SIGNATURES = ("infer", "begin", "train", "consolidate", "save", "restore")


class Head(tf.Module):
    """Classifier with C class slots above features of F values, trained on mini-batches of B.

    The same module runs in TensorFlow itself: its signatures are plain functions.
    """

    def __init__(
        self,
        *,
        cw: NDArray[np.float32],
        past: NDArray[np.float32],
        batch_size: int,
        trunk: Trunk | None = None,
    ) -> None:
        """`cw` (C, F) float32 and `past` (C,) float32 are the state it starts with.

        Without a trunk, latents are features.
        """
        super().__init__()
        slots, features = cw.shape
        self.trunk = trunk or Trunk((), latent_shape=(features,))
        self.cw = tf.Variable(cw, name="cw")
        self.past = tf.Variable(past, name="past")
        self.tw = tf.Variable(tf.zeros_like(cw), name="tw")
        self.velocity = tf.Variable(tf.zeros_like(cw), name="velocity")
        shape, dtype = self.trunk.latent_shape, self.trunk.latent_dtype
        of_the_trunk = TRUNK_RATES if self.trunk.units else ()
        self.rates = ("lr", "momentum", "weight_decay", *of_the_trunk)
        self.infer = signature(self._infer, latents=((None, *shape), dtype))
        self.begin = signature(self._begin, counts=((slots,), tf.float32), head_start=SCALAR)
        self.train = signature(
            self._train,
            latents=((batch_size, *shape), dtype),
            targets=((batch_size, slots), tf.float32),
            **dict.fromkeys(self.rates, SCALAR),
        )
        self.consolidate = signature(self._consolidate, counts=((slots,), tf.float32))
        self.save = signature(self._save)
        self.restore = signature(
            self._restore,
            **{name: (tuple(value.shape), tf.float32) for name, value in self.state.items()},
        )

    @property
    def state(self) -> dict[str, tf.Variable]:
        """What outlives a session, by the name of its tensor."""
        return {"cw": self.cw, "past": self.past, **self.trunk.state}

    def _infer(self, latents: tf.Tensor) -> dict[str, tf.Tensor]:
        """Probabilities (n, C) over the classes learned so far; 0 for slots never learned."""
        learned = _present(self.past)
        # A free slot's score is 0, which may be the greatest: it must not set the scale.
        features = self.trunk.infer(latents)
        scores = tf.matmul(features, self.cw, transpose_b=True) - 1e9 * (1.0 - learned)
        weights = tf.exp(scores - tf.reduce_max(scores, axis=-1, keepdims=True)) * learned
        # The sum is at least 1, or 0 where nothing is learned yet.
        total = tf.maximum(tf.reduce_sum(weights, axis=-1, keepdims=True), 1.0)
        return {"probabilities": weights / total}

    def _begin(self, counts: tf.Tensor, head_start: tf.Tensor) -> dict[str, tf.Tensor]:
        """Load the working weights of the classes that the session will see; zero the others.

        A class that is new among known ones starts from `head_start` times their mean. From nothing
        (0, as in the paper) it has to climb above all of them, and then wins wherever they are not
        sure.
        """
        present, learned = _present(counts), _present(self.past)
        known = (present * learned)[:, tf.newaxis]
        mean = tf.reduce_sum(self.cw * known, axis=0) / tf.maximum(tf.reduce_sum(known), 1.0)
        new = (present * (1.0 - learned))[:, tf.newaxis]
        self.tw.assign(self.cw * present[:, tf.newaxis] + new * (head_start * mean))
        self.velocity.assign(tf.zeros_like(self.velocity))
        self.trunk.begin(tf.minimum(tf.reduce_min(counts), 0.0))
        return {"classes": tf.reduce_sum(present)}

    def _train(
        self, latents: tf.Tensor, targets: tf.Tensor, **given: tf.Tensor
    ) -> dict[str, tf.Tensor]:
        """One SGD step on the cross entropy with soft targets, over all C slots."""
        passed = self.trunk.train(latents)
        weights = tf.convert_to_tensor(self.tw)
        scores = matmul(passed.features, weights, transpose_b=True)
        loss, pull = softmax_cross_entropy(scores, targets)
        (error,) = pull(tf.ones([]))
        gradient = matmul(tf.transpose(error), passed.features)
        rates = Rates(given["lr"], given["momentum"], given["weight_decay"])
        rates.step(self.tw, weights, self.velocity, gradient, decays=True)
        if self.trunk.units:
            passed.step(
                matmul(error, weights),
                replace(rates, lr=given["trunk_lr"]),
                moment_rate=given["moment_rate"],
            )
        hits = tf.equal(tf.argmax(scores, axis=-1), tf.argmax(targets, axis=-1))
        return {
            "loss": loss,
            "accuracy": tf.reduce_mean(tf.cast(hits, tf.float32)),
        }

    def _consolidate(self, counts: tf.Tensor) -> dict[str, tf.Tensor]:
        """Fuse the working weights of the session's classes into the consolidated ones."""
        present = _present(counts)[:, tf.newaxis]
        classes = tf.maximum(tf.reduce_sum(present), 1.0)
        average = tf.reduce_sum(self.tw * present) / (classes * self.tw.shape[1])
        past_weight = tf.sqrt(self.past / tf.maximum(counts, 1.0))[:, tf.newaxis]
        fused = (self.cw * past_weight + (self.tw - average)) / (past_weight + 1.0)
        self.cw.assign(present * fused + (1.0 - present) * self.cw)
        self.past.assign_add(counts)
        return {"average": average}

    def _save(self) -> dict[str, tf.Tensor]:
        return {name: tf.identity(value) for name, value in self.state.items()}

    def _restore(self, **state: tf.Tensor) -> dict[str, tf.Tensor]:
        for name, value in self.state.items():
            value.assign(state[name])
        return {"classes": tf.reduce_sum(_present(state["past"]))}


def convert_head(head: Head) -> bytes:
    """The content of `head.tflite`."""
    return to_tflite(head, {name: getattr(head, name) for name in SIGNATURES}, variables=True)


def _present(counts: tf.Tensor) -> tf.Tensor:
    """(C,) float32: 1 where a class has patterns, else 0."""
    return tf.cast(counts > 0, tf.float32)
