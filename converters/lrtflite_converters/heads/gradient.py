"""The interface of a head that trains by SGD: its last layer, and the trunk below it.

Subclasses decide what the last layer starts from, what `infer` answers from, and how a session ends
up in the state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import tensorflow as tf

from lrtflite_converters.gradients.differentiable import matmul, softmax_cross_entropy
from lrtflite_converters.gradients.window import Tensor
from lrtflite_converters.heads.head import Head, HeadPlan, Rates
from lrtflite_converters.tflite.signature import Outputs
from lrtflite_converters.training.parameter import Parameter, Sgd
from lrtflite_converters.training.regularisers.regulariser import Regulariser

LAST_SCALARS = ("lr", "momentum", "weight_decay")
# Rates of a learner's first session, in heads that have them, and the rate that each replaces.
FIRST_SCALARS = {"first_lr": "lr", "first_trunk_lr": "trunk_lr"}


class GradientHead(Head):
    """A head whose last layer, `last` (C, F), trains by SGD, together with the trunk.

    `begin_scalars` are the rates that a subclass takes in `begin`. With `guards_last`, the
    regulariser protects the last layer too, not only the trunk.
    """

    begin_scalars: Sequence[str] = ()
    guards_last = False
    last: Parameter

    def __init__(self, plan: HeadPlan) -> None:
        trunk, self.regulariser = plan.trunk, plan.regulariser
        guarded = self.regulariser.scalars if trunk.trains or self.guards_last else {}
        first = tuple(FIRST_SCALARS) if plan.first_rates else ()
        self.first_rates = {
            name: replaced
            for name, replaced in FIRST_SCALARS.items()
            if name in first and (trunk.trains or replaced in LAST_SCALARS)
        }
        of_last = guarded.get("train", ()) if self.guards_last else ()
        of_trunk = (*trunk.scalars, *guarded.get("train", ())) if trunk.trains else ()
        first_last = [name for name, of in self.first_rates.items() if of in LAST_SCALARS]
        self.scalars: Mapping[str, Sequence[str]] = {
            "begin": (*self.begin_scalars, *(("rest_below",) if trunk.trains else ())),
            "train": _once(*LAST_SCALARS, *of_last, *of_trunk, *self.first_rates),
            "train_last": _once(*LAST_SCALARS, *of_last, *first_last),
            "gather": guarded.get("gather", ()),
            "consolidate": guarded.get("consolidate", ()),
        }
        super().__init__(plan)

    def make_last(self, name: str) -> tf.Variable:
        """Make the last layer and what training needs; a subclass calls it in `build`."""
        variable = tf.Variable(tf.zeros((self.slots, self.trunk.features)), name=name)
        self.last = Parameter(name, variable, decays=True)
        # 1 in a session that trains the trunk, 0 in one that trains only the last layer.
        self.share = tf.Variable([0.0], name="share")
        if self.first_rates:
            # 1 in the first session of a learner.
            self.is_first = tf.Variable([0.0], name="is_first")
        self.unguarded = Regulariser()
        guarded = [*self.trunk.parameters.values(), *([self.last] if self.guards_last else [])]
        self.regulariser.protect(guarded)
        return variable

    def begin_training(self, counts: Tensor, rates: Rates) -> None:
        """Reset momentum, and decide what trains in a session with these counts."""
        # Not a constant, which would be written to the file as one zero per weight.
        zero = tf.minimum(tf.reduce_min(counts), 0.0)
        self.last.begin(zero)
        self.trunk.begin(zero)
        self.regulariser.begin(zero)
        self.share.assign(tf.reshape(self.more_trains(counts, rates), [1]))
        if self.first_rates:
            self.is_first.assign(tf.reshape(1.0 - tf.reduce_max(self.learned()), [1]))

    @property
    def gathers(self) -> bool:
        """Return whether the head has something to gather."""
        return self.regulariser.observes

    def open_scores(self, scores: Tensor) -> Tensor:
        """Return the scores (B, C) that the loss is computed from; by default, of all slots."""
        return scores

    def soften(self, latents: Tensor, targets: Tensor) -> Tensor:
        """Return the targets (B, C) to train towards; by default, the given ones."""
        return targets

    def train(self, latents: Tensor, targets: Tensor, rates: Rates) -> Outputs:
        """Take one SGD step on the cross entropy; targets may be soft."""
        rates = self._current(rates)
        passed = self.trunk.train(latents, rates)
        wanted = self.soften(latents, targets)
        error, weights, outputs = self._step_last(passed.features, targets, wanted, rates)
        if self.trunk.trains:
            share = tf.reshape(tf.convert_to_tensor(self.share), [])
            gradient = matmul(error, weights)
            passed.step(gradient, _sgd(rates), rates, share=share, regulariser=self.regulariser)
        return outputs

    def train_last(self, latents: Tensor, targets: Tensor, rates: Rates) -> Outputs:
        rates = self._current(rates)
        features = self.trunk.infer_parts(latents)
        return self._step_last(features, targets, self.soften(latents, targets), rates)[2]

    def gather(self, latents: Tensor, targets: Tensor, rates: Rates) -> None:
        if self.regulariser.observes:
            self._observe(latents, targets)

    def _observe(self, latents: Tensor, targets: Tensor) -> None:
        """Show the regulariser the gradients of a gathered mini-batch, with moving moments."""
        passed = self.trunk.probe(latents)
        weights = tf.convert_to_tensor(self.last.variable)
        scores = self.open_scores(matmul(passed.features, weights, transpose_b=True))
        _, pull = softmax_cross_entropy(scores, targets)
        # The loss is a mean over all places, of which some may be empty.
        filled = tf.maximum(tf.reduce_sum(targets), 1.0)
        (error,) = pull(float(latents.shape[0]) / filled)
        if self.guards_last:
            gradient = matmul(tf.transpose(error), passed.features)
            self.regulariser.observe(self.last, gradient)
        passed.observe(matmul(error, weights), self.regulariser)

    def _step_last(
        self, features: Tensor, targets: Tensor, wanted: Tensor, rates: Rates
    ) -> tuple[Tensor, Tensor, Outputs]:
        """Move the last layer; return the scores' gradient, the old weights, the outputs."""
        weights = tf.convert_to_tensor(self.last.variable)
        scores = self.open_scores(matmul(features, weights, transpose_b=True))
        loss, pull = softmax_cross_entropy(scores, wanted)
        (error,) = pull(tf.ones([]))
        gradient = matmul(tf.transpose(error), features)
        guard = self.regulariser if self.guards_last else self.unguarded
        self.last.step(weights, gradient, _sgd(rates), guard, rates)
        hits = tf.equal(tf.argmax(scores, axis=-1), tf.argmax(targets, axis=-1))
        accuracy = tf.reduce_mean(tf.cast(hits, tf.float32))
        return error, weights, {"loss": loss, "accuracy": accuracy}

    def _current(self, rates: Rates) -> Rates:
        """Return the rates of this session, in heads with other rates in the first one."""
        if not self.first_rates:
            return rates
        first = tf.reshape(tf.convert_to_tensor(self.is_first), [])
        changed = {
            replaced: rates[replaced] + first * (rates[name] - rates[replaced])
            for name, replaced in self.first_rates.items()
            if name in rates
        }
        return {**rates, **changed}

    def _overrides(self, name: str) -> bool:
        # Without a trunk, `train` moves only the last layer anyway.
        unfit = (name == "train_last" and not self.trunk.trains) or (
            name == "gather" and not self.gathers
        )
        return super()._overrides(name) and not unfit


def _once(*names: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


def _sgd(rates: Rates) -> Sgd:
    return Sgd(rates["lr"], rates["momentum"], rates["weight_decay"])
