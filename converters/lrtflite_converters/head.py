"""The trainable head: CWR* with SGD, as TFLite signatures.

CWR* (the paper's Section 5; algorithm 2 of Lomonaco et al., 2019) keeps the last layer twice:
consolidated weights `cw`, from which inference answers, and working weights `tw`, which a session
trains. `begin` loads one from the other, `consolidate` fuses them back, weighted by how many
patterns of a class came before and in this session.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from lrtflite_converters.differentiable import matmul, softmax_cross_entropy
from lrtflite_converters.tflite import to_tflite

SIGNATURES = ("infer", "begin", "train", "consolidate", "save", "restore")


class Head(tf.Module):
    """Classifier above latents of F values, with C class slots, trained on mini-batches of B.

    The same module runs in TensorFlow itself: its signatures are plain `tf.function`s.
    """

    def __init__(
        self, *, cw: NDArray[np.float32], past: NDArray[np.float32], batch_size: int
    ) -> None:
        """`cw` (C, F) float32 and `past` (C,) float32 are the state it starts with."""
        super().__init__()
        slots, features = cw.shape
        self.cw = tf.Variable(cw, name="cw")
        self.past = tf.Variable(past, name="past")
        self.tw = tf.Variable(tf.zeros_like(cw), name="tw")
        self.velocity = tf.Variable(tf.zeros_like(cw), name="velocity")

        def spec(name: str, *shape: int | None) -> tf.TensorSpec:
            return tf.TensorSpec(shape, tf.float32, name)

        def signature(function: Any, *inputs: tf.TensorSpec) -> Any:
            return tf.function(function, input_signature=inputs)

        self.infer = signature(self._infer, spec("latents", None, features))
        self.begin = signature(self._begin, spec("counts", slots))
        self.train = signature(
            self._train,
            spec("latents", batch_size, features),
            spec("targets", batch_size, slots),
            spec("lr"),
            spec("momentum"),
            spec("weight_decay"),
        )
        self.consolidate = signature(self._consolidate, spec("counts", slots))
        self.save = signature(self._save)
        self.restore = signature(self._restore, spec("cw", slots, features), spec("past", slots))

    def _infer(self, latents: tf.Tensor) -> dict[str, tf.Tensor]:
        """Probabilities (n, C) over the classes learned so far; 0 for slots never learned."""
        learned = _present(self.past)
        # A free slot's score is 0, which may be the greatest: it must not set the scale.
        scores = tf.matmul(latents, self.cw, transpose_b=True) - 1e9 * (1.0 - learned)
        weights = tf.exp(scores - tf.reduce_max(scores, axis=-1, keepdims=True)) * learned
        # The sum is at least 1, or 0 where nothing is learned yet.
        total = tf.maximum(tf.reduce_sum(weights, axis=-1, keepdims=True), 1.0)
        return {"probabilities": weights / total}

    def _begin(self, counts: tf.Tensor) -> dict[str, tf.Tensor]:
        """Load the working weights of the classes that the session will see; zero the others."""
        present = _present(counts)
        self.tw.assign(self.cw * present[:, tf.newaxis])
        self.velocity.assign(tf.zeros_like(self.velocity))
        return {"classes": tf.reduce_sum(present)}

    def _train(
        self,
        latents: tf.Tensor,
        targets: tf.Tensor,
        lr: tf.Tensor,
        momentum: tf.Tensor,
        weight_decay: tf.Tensor,
    ) -> dict[str, tf.Tensor]:
        """One SGD step on the cross entropy with soft targets, over all C slots."""
        weights = tf.convert_to_tensor(self.tw)
        scores = matmul(latents, weights, transpose_b=True)
        loss, pull = softmax_cross_entropy(scores, targets)
        (error,) = pull(tf.ones([]))
        gradient = matmul(tf.transpose(error), latents)
        velocity = momentum * self.velocity + gradient + weight_decay * weights
        self.velocity.assign(velocity)
        self.tw.assign(weights - lr * velocity)
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
        return {"cw": tf.identity(self.cw), "past": tf.identity(self.past)}

    def _restore(self, cw: tf.Tensor, past: tf.Tensor) -> dict[str, tf.Tensor]:
        self.cw.assign(cw)
        self.past.assign(past)
        return {"classes": tf.reduce_sum(_present(past))}


def convert_head(head: Head) -> bytes:
    """The content of `head.tflite`."""
    return to_tflite(head, {name: getattr(head, name) for name in SIGNATURES}, variables=True)


def _present(counts: tf.Tensor) -> tf.Tensor:
    """(C,) float32: 1 where a class has patterns, else 0."""
    return tf.cast(counts > 0, tf.float32)
