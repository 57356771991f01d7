"""Learning without Forgetting: the head's own answers from before the session are soft targets.

A pattern trains towards (1 - l) * one-hot + l * softmax of the model before the session, which the
graph keeps a copy of. The share l is that of the patterns seen before, at most `distil_most`
(Li & Hoiem, 2016, as Maltoni & Lomonaco, 2019, use it with a single head).
"""

from __future__ import annotations

import tensorflow as tf

from lrtflite_converters.gradients.window import Tensor
from lrtflite_converters.heads.head import Rates, softmax_over
from lrtflite_converters.heads.plain import PlainHead


class LwfHead(PlainHead):
    """A plain head with a teacher: its own weights, and those of its trunk, before the session."""

    begin_scalars = ("distil_most",)

    def build(self) -> None:
        super().build()
        shape = self.weights.shape
        self.teacher = tf.Variable(tf.zeros(shape), name="teacher")
        self.teacher_knows = tf.Variable(tf.zeros(self.slots), name="teacher_knows")
        self.distilled = tf.Variable([0.0], name="distilled")
        # A copy of the weights adds nothing to the file, which holds them already.
        self.teacher_trunk = {
            name: tf.Variable(variable, name=f"{name}_teacher")
            for name, variable in (self.trunk.state.items() if self.trunk.trains else ())
        }

    def begin(self, counts: Tensor, rates: Rates) -> None:
        super().begin(counts, rates)
        self.teacher.assign(self.weights)
        self.teacher_knows.assign(self.learned())
        for name, copy in self.teacher_trunk.items():
            copy.assign(self.trunk.state[name])
        before = tf.reduce_sum(self.past)
        share = before / tf.maximum(before + tf.reduce_sum(counts), 1.0)
        self.distilled.assign(tf.reshape(tf.minimum(share, rates["distil_most"]), [1]))

    def soften(self, latents: Tensor, targets: Tensor) -> Tensor:
        features = self.trunk.infer_parts(latents, values=self.teacher_trunk or None)
        scores = tf.matmul(features, self.teacher, transpose_b=True)
        answers = softmax_over(scores, self.teacher_knows)
        return (1.0 - self.distilled) * targets + self.distilled * answers
