"""Synaptic Intelligence, as AR1* uses it (the paper's section 5; Zenke et al., 2017).

During a session, T adds up gradient times change of each weight: the part of the loss that the
weight took away, as a negative number. At the end C += w * T / ((change of the session)^2 + xi),
and F = -C, clipped to 0..max_f, is the importance of the weight. Important weights move less, in
one of two ways, or in both:

- `protection` scales each update by 1 - protection * F / max_f. This is what the authors' code
  does, and needs no weight of its own;
- `penalty` adds the gradient of (penalty / 2) * F * (weight - weight before the session)^2, as in
  the article.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import tensorflow as tf

from lrtflite_converters.gradients.window import Tensor
from lrtflite_converters.training.parameter import Parameter
from lrtflite_converters.training.regularisers.regulariser import Regulariser

# Added to the squared change of a weight, so that one that did not move has a finite importance.
XI = 1e-7


class SynapticIntelligence(Regulariser):
    """Protects kernels; gamma and beta of Batch Renorm are free, as in the paper."""

    scalars: Mapping[str, tuple[str, ...]] = {
        "train": ("protection", "penalty", "max_f"),
        "consolidate": ("importance_rate",),
    }

    def protect(self, parameters: Sequence[Parameter]) -> None:
        # Weight decay acts on kernels only.
        self.guarded = [parameter for parameter in parameters if parameter.decays]
        self.importance = {each.label: each.zeros_like("importance") for each in self.guarded}
        self.way = {each.label: each.zeros_like("way") for each in self.guarded}
        self.start = {each.label: each.zeros_like("start") for each in self.guarded}

    @property
    def state(self) -> dict[str, tf.Variable]:
        return {f"{label}_importance": value for label, value in self.importance.items()}

    def begin(self, zero: Tensor) -> None:
        for parameter in self.guarded:
            label = parameter.label
            self.way[label].assign(tf.fill(self.way[label].shape, zero))
            self.start[label].assign(parameter.variable)

    def gradient(
        self, parameter: Parameter, value: Tensor, gradient: Tensor, rates: Mapping[str, Tensor]
    ) -> Tensor:
        if parameter.label not in self.importance:
            return gradient
        pull = self._clipped(parameter, rates) * (value - self.start[parameter.label])
        return gradient + rates["penalty"] * pull

    def update(self, parameter: Parameter, update: Tensor, rates: Mapping[str, Tensor]) -> Tensor:
        if parameter.label not in self.importance:
            return update
        share = self._clipped(parameter, rates) / rates["max_f"]
        return (1.0 - rates["protection"] * share) * update

    def stepped(
        self, parameter: Parameter, gradient: Tensor, before: Tensor, after: Tensor
    ) -> None:
        if parameter.label in self.way:
            self.way[parameter.label].assign_add(gradient * (after - before))

    def forget(self, parameter: Parameter, mask: Tensor) -> None:
        if parameter.label in self.importance:
            importance = self.importance[parameter.label]
            importance.assign(importance * (1.0 - mask)[:, tf.newaxis])

    def consolidate(self, rates: Mapping[str, Tensor]) -> None:
        for parameter in self.guarded:
            label = parameter.label
            change = parameter.variable - self.start[label]
            gained = self.way[label] / (change * change + XI)
            self.importance[label].assign_add(rates["importance_rate"] * gained)

    def _clipped(self, parameter: Parameter, rates: Mapping[str, Tensor]) -> Tensor:
        """Return F, the importance of each weight."""
        gained = -tf.convert_to_tensor(self.importance[parameter.label])
        return tf.minimum(tf.maximum(gained, 0.0), rates["max_f"])
