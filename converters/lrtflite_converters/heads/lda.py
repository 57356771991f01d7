"""A head that does not overwrite: linear discriminant analysis from sums over the patterns.

Sums do not depend on the order of sessions, so nothing is overwritten, nothing needs to be
replayed, and the sums of two devices add up. The within-class covariance is shrunk towards its mean
variance, e = F / (F + N), and the weights of each class solve A w = mean
(docs/studies/closed-form.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import tensorflow as tf

from lrtflite_converters.gradients.window import Tensor
from lrtflite_converters.heads.class_sums import transform
from lrtflite_converters.heads.head import Head, Rates
from lrtflite_converters.heads.lda_sums import LdaSums
from lrtflite_converters.tflite.signature import Outputs


class LdaHead(Head):
    """Sums over all patterns ever seen, and the answer that follows from them."""

    scalars: Mapping[str, Sequence[str]] = {"consolidate": ("temperature",)}

    def build(self) -> None:
        self.sums = LdaSums(self.slots, self.trunk.features)

    @property
    def state(self) -> dict[str, tf.Variable]:
        return self.sums.state

    @property
    def merging(self) -> dict[str, str]:
        return self.sums.merging

    def learned(self) -> Tensor:
        return self.sums.classes.learned()

    def infer(self, latents: Tensor) -> Outputs:
        z = transform(self.trunk.infer(latents))
        learned, scores = self.learned(), self.sums.answer.scores(z)
        masked = scores - 1e9 * (1.0 - learned)
        return {
            "probabilities": self.sums.answer.probabilities(scores, learned),
            "familiarity": self.sums.familiarity(z, masked),
        }

    def gather(self, latents: Tensor, targets: Tensor, rates: Rates) -> None:
        self.sums.gather(self.trunk.infer_parts(latents), targets)

    def consolidate(self, counts: Tensor, rates: Rates) -> None:
        self.sums.solve(rates["temperature"])

    def forget(self, mask: Tensor) -> None:
        self.sums.forget(mask)
