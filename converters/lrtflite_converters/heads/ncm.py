"""Nearest class mean by cosine: a head that keeps one sum for each class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import tensorflow as tf

from lrtflite.bundle.manifest import SOLVE
from lrtflite_converters.gradients.window import Tensor
from lrtflite_converters.heads.class_sums import ClassSums, transform, unit_rows
from lrtflite_converters.heads.head import Head, Rates, softmax_over
from lrtflite_converters.tflite.signature import Outputs

# Minimum divisor of the cosines: a single class has the same direction as the mean of all.
MIN_TEMPERATURE = 1e-4
SCALARS: Mapping[str, Sequence[str]] = {"consolidate": ("temperature",)}


class NcmHead(Head):
    """Class sums; the answer is the class whose mean has the nearest direction."""

    scalars = SCALARS

    def build(self) -> None:
        self.classes = ClassSums(self.slots, self.trunk.features)
        self.temperature = tf.Variable(tf.ones(1), name="temperature")

    @property
    def state(self) -> dict[str, tf.Variable]:
        return {**self.classes.state, "temperature": self.temperature}

    @property
    def merging(self) -> dict[str, str]:
        return {**self.classes.merging, "temperature": SOLVE}

    def learned(self) -> Tensor:
        return self.classes.learned()

    def infer(self, latents: Tensor) -> Outputs:
        z, learned = transform(self.trunk.infer(latents)), self.learned()
        cosines = tf.matmul(z, unit_rows(self.classes.sums), transpose_b=True)
        masked = cosines - 1e9 * (1.0 - learned)
        return {
            "probabilities": softmax_over(cosines / self.temperature, learned),
            "familiarity": self.classes.familiarity(z, masked),
        }

    def gather(self, latents: Tensor, targets: Tensor, rates: Rates) -> None:
        self.classes.gather(self.trunk.infer_parts(latents), targets)

    def consolidate(self, counts: Tensor, rates: Rates) -> None:
        """Set the temperature, relative to the distance of class directions from their mean."""
        learned = self.learned()
        centre = unit_rows(tf.reduce_sum(self.classes.sums, axis=0, keepdims=True))
        away = 1.0 - tf.reduce_sum(unit_rows(self.classes.sums) * centre, axis=-1)
        distance = tf.reduce_sum(away * learned) / tf.maximum(tf.reduce_sum(learned), 1.0)
        warmth = tf.maximum(rates["temperature"] * distance, MIN_TEMPERATURE)
        self.temperature.assign(tf.reshape(warmth, [1]))

    def forget(self, mask: Tensor) -> None:
        self.classes.forget(mask)
