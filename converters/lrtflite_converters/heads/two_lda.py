"""Two closed forms on two layers of one network, whose scores are added.

A latent has the vectors of both layers, one after the other. Each form keeps its own sums. The
lower layer separates more classes once there are many patterns, and fewer while there are few, so
the scores of the second form have the weight min(1, (N / F)^2) for N patterns of F features
(docs/studies/closed-form.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

import tensorflow as tf

from lrtflite_converters.gradients.window import Tensor
from lrtflite_converters.heads.class_sums import transform
from lrtflite_converters.heads.head import Head, HeadPlan, Rates, softmax_over
from lrtflite_converters.heads.lda_sums import LdaSums
from lrtflite_converters.tflite.signature import Outputs

T = TypeVar("T")


class TwoLdaHead(Head):
    """A closed form on each of two layers; their scores are added."""

    scalars: Mapping[str, Sequence[str]] = {"consolidate": ("temperature",)}
    lengths: tuple[int, ...]

    def __init__(self, plan: HeadPlan) -> None:
        object.__setattr__(self, "lengths", plan.parts)
        super().__init__(plan)

    def build(self) -> None:
        first, second = self.lengths
        self.first = LdaSums(self.slots, first)
        self.second = LdaSums(self.slots, second)

    @property
    def state(self) -> dict[str, tf.Variable]:
        return {**self.first.state, **_second(self.second.state)}

    @property
    def merging(self) -> dict[str, str]:
        return {**self.first.merging, **_second(self.second.merging)}

    def learned(self) -> Tensor:
        return self.first.classes.learned()

    def infer(self, latents: Tensor) -> Outputs:
        one, two = (transform(part) for part in self._parts(self.trunk.infer(latents)))
        learned, weight = self.learned(), self.weight()
        # Divided by the sum of the weights, because both forms make the same errors: added, they
        # would be too sure.
        added = self.first.answer.scores(one) / self.first.answer.temperature
        added += weight * self.second.answer.scores(two) / self.second.answer.temperature
        masked = added - 1e9 * (1.0 - learned)
        return {
            "probabilities": softmax_over(added / (1.0 + weight), learned),
            # Measured by the first form, for the class that the added scores choose.
            "familiarity": self.first.familiarity(one, masked),
        }

    def weight(self) -> Tensor:
        """Return (1,): the weight of the second form's scores."""
        share = self.second.classes.patterns / float(self.second.features)
        return tf.minimum(share * share, 1.0)

    def gather(self, latents: Tensor, targets: Tensor, rates: Rates) -> None:
        one, two = self._parts(self.trunk.infer_parts(latents))
        self.first.gather(one, targets)
        self.second.gather(two, targets)

    def consolidate(self, counts: Tensor, rates: Rates) -> None:
        self.first.solve(rates["temperature"])
        self.second.solve(rates["temperature"])

    def forget(self, mask: Tensor) -> None:
        self.first.forget(mask)
        self.second.forget(mask)

    def _parts(self, features: Tensor) -> tuple[Tensor, Tensor]:
        first = self.lengths[0]
        return features[:, :first], features[:, first:]


def _second(named: Mapping[str, T]) -> dict[str, T]:
    """Return tensors of the second form under names of their own."""
    return {f"second_{name}": each for name, each in named.items()}
