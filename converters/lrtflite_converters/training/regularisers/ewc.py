"""Elastic Weight Consolidation (Kirkpatrick et al., 2017), after each session.

`gather` passes each pattern of a session through the trained weights once. The Fisher information
of a weight is the mean, over these mini-batches, of its squared gradient. F adds it up over the
sessions, up to max_f. Training adds the gradient of
(penalty / 2) * F * (weight - weight before the session)^2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import tensorflow as tf

from lrtflite_converters.gradients.window import Tensor
from lrtflite_converters.training.parameter import Parameter
from lrtflite_converters.training.regularisers.regulariser import Regulariser


class ElasticWeights(Regulariser):
    """Protects every weight that trains, by its Fisher information."""

    scalars: Mapping[str, tuple[str, ...]] = {
        "train": ("penalty",),
        "consolidate": ("importance_rate", "max_f"),
    }
    observes = True

    def protect(self, parameters: Sequence[Parameter]) -> None:
        self.guarded = list(parameters)
        self.fisher = {each.label: each.zeros_like("fisher") for each in self.guarded}
        self.squares = {each.label: each.zeros_like("squares") for each in self.guarded}
        self.start = {each.label: each.zeros_like("start") for each in self.guarded}
        # Mini-batches that `gather` has seen in this session.
        self.seen = {each.label: tf.Variable([0.0], name="seen") for each in self.guarded}

    @property
    def state(self) -> dict[str, tf.Variable]:
        return {f"{label}_fisher": value for label, value in self.fisher.items()}

    def begin(self, zero: Tensor) -> None:
        for parameter in self.guarded:
            label = parameter.label
            self.squares[label].assign(tf.fill(self.squares[label].shape, zero))
            self.seen[label].assign(tf.reshape(zero, [1]))
            self.start[label].assign(parameter.variable)

    def gradient(
        self, parameter: Parameter, value: Tensor, gradient: Tensor, rates: Mapping[str, Tensor]
    ) -> Tensor:
        pull = self.fisher[parameter.label] * (value - self.start[parameter.label])
        return gradient + rates["penalty"] * pull

    def observe(self, parameter: Parameter, gradient: Tensor) -> None:
        self.squares[parameter.label].assign_add(gradient * gradient)
        self.seen[parameter.label].assign_add([1.0])

    def forget(self, parameter: Parameter, mask: Tensor) -> None:
        fisher = self.fisher[parameter.label]
        fisher.assign(fisher * (1.0 - mask)[:, tf.newaxis])

    def consolidate(self, rates: Mapping[str, Tensor]) -> None:
        for label, fisher in self.fisher.items():
            mean = self.squares[label] / tf.maximum(self.seen[label], 1.0)
            fisher.assign(tf.minimum(fisher + rates["importance_rate"] * mean, rates["max_f"]))
