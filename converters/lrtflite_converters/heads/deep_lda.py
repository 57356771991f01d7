"""A closed form above a trunk that trains, next to one on the original trunk.

Two closed forms answer together. The frozen one stands on the trunk as it was converted, and its
sums count every pattern once, so no session can overwrite them. The trained one stands on the trunk
as it is now; its sums are gathered again in each session, from the session and the memory. The
log-probabilities are mixed, the trained one with the share N / (N + F): N patterns of F features
say little while N is small.

The trunk trains against the trained closed form itself, whose weights do not move in the meantime:
the loss is a cross entropy of its scores, among the classes that it knew before the session. A new
class joins in the next session, through the memory. So a session cannot pull the trunk towards its
own new class. The scores are divided by `softness` times the temperature of the frozen form. The
trained form's own temperature would grow as the trunk moves classes apart, and the loss would never
end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import tensorflow as tf

from lrtflite_converters.class_sums import transform
from lrtflite_converters.differentiable import matmul, softmax_cross_entropy
from lrtflite_converters.heads.head import Head, HeadPlan, Rates
from lrtflite_converters.lda_sums import LdaSums
from lrtflite_converters.parameter import Sgd
from lrtflite_converters.regularisers.regulariser import Regulariser
from lrtflite_converters.signature import Outputs
from lrtflite_converters.transform_gradient import transform_pullback
from lrtflite_converters.trunk import Trunk
from lrtflite_converters.window import Tensor

# Score of a class that takes no part.
_NEVER = 1e9


class DeepLdaHead(Head):
    """A frozen and a trained closed form; `trunk` ends where the trained one begins."""

    tells_replayed = True
    # The trunk trains as soon as two classes are known, which is after two sessions.
    golden_sessions = 1

    def __init__(self, plan: HeadPlan) -> None:
        assert plan.original is not None
        object.__setattr__(self, "original", Trunk(plan.original, scale=plan.trunk.scale))
        self.scalars: Mapping[str, Sequence[str]] = {
            "begin": ("rest_below",),
            "train": (*plan.trunk.scalars, "momentum", "weight_decay", "softness"),
            "consolidate": ("temperature",),
        }
        super().__init__(plan)

    original: Trunk

    def build(self) -> None:
        self.frozen = LdaSums(self.slots, self.original.features)
        self.trained = LdaSums(self.slots, self.trunk.features)
        # 1 for each class that the trained form has an answer for; patterns that it stands on.
        self.refitted = tf.Variable(tf.zeros(self.slots), name="refitted")
        self.refit_count = tf.Variable(tf.zeros(1), name="refit_count")
        self.share = tf.Variable([0.0], name="share")
        self.unguarded = Regulariser()

    @property
    def state(self) -> dict[str, tf.Variable]:
        trained = {f"trained_{name}": each for name, each in self.trained.answer.state.items()}
        refit = {"refitted": self.refitted, "refit_count": self.refit_count}
        return {**self.frozen.state, **trained, **refit, **self.trunk.state}

    def learned(self) -> Tensor:
        return self.frozen.classes.learned()

    def infer(self, latents: Tensor) -> Outputs:
        z, learned = transform(self._frozen_features(latents)), self.learned()
        scores = self.frozen.answer.scores(z)
        logs = _log_softmax(scores / self.frozen.answer.temperature, learned)
        refitted = self.refitted * learned
        answer = self.trained.answer
        own = answer.scores(transform(self.trunk.infer(latents))) / answer.temperature
        # A class without patterns in the memory has the frozen answer only.
        others = _log_softmax(own, refitted) * refitted + logs * (1.0 - refitted)
        share = self.refit_count / (self.refit_count + float(self.trunk.features))
        mixed = tf.exp(share * others + (1.0 - share) * logs) * learned
        total = tf.maximum(tf.reduce_sum(mixed, axis=-1, keepdims=True), 1e-30)
        masked = scores - _NEVER * (1.0 - learned)
        return {
            "probabilities": mixed / total,
            "familiarity": self.frozen.classes.familiarity(z, masked),
        }

    def more_trains(self, counts: Tensor, rates: Rates) -> Tensor:
        """Return 1 if enough of the session's and the memory's classes are known already."""
        return super().more_trains(counts * self.refitted, rates)

    def begin(self, counts: Tensor, rates: Rates) -> None:
        zero = tf.minimum(tf.reduce_min(counts), 0.0)
        self.trunk.begin(zero)
        self.trained.clear(zero)
        self.share.assign(tf.reshape(self.more_trains(counts, rates), [1]))

    def train(self, latents: Tensor, targets: Tensor, rates: Rates) -> Outputs:
        """Move the trunk by one SGD step; the closed form stays as it is."""
        passed = self.trunk.train(latents, rates)
        z, pull_z = transform_pullback(passed.features)
        answer, known = self.trained.answer, self.refitted
        divisor = rates["softness"] * tf.reshape(self.frozen.answer.temperature, [])
        weights = tf.convert_to_tensor(answer.weights) / divisor
        scores = matmul(z, weights, transpose_b=True) + answer.bias / divisor
        wanted = targets * known
        loss, pull = softmax_cross_entropy(scores - _NEVER * (1.0 - known), wanted)
        (error,) = pull(tf.ones([]))
        share = tf.reshape(tf.convert_to_tensor(self.share), [])
        sgd = Sgd(rates["trunk_lr"], rates["momentum"], rates["weight_decay"])
        gradient = pull_z(matmul(error, weights))
        passed.step(gradient, sgd, rates, share=share, regulariser=self.unguarded)
        hits = tf.equal(tf.argmax(scores, axis=-1), tf.argmax(targets, axis=-1))
        return {"loss": loss, "accuracy": tf.reduce_mean(tf.cast(hits, tf.float32))}

    def train_last(self, latents: Tensor, targets: Tensor, rates: Rates) -> Outputs:
        """Do nothing: the last layer is solved in `consolidate`, and the trunk rests."""
        nothing = tf.minimum(tf.reduce_max(targets), 0.0)
        return {"loss": nothing, "accuracy": nothing}

    def gather(self, latents: Tensor, targets: Tensor, rates: Rates) -> None:
        """Add patterns of the session."""
        self.gather_from(latents, targets, rates, tf.zeros([]))

    def gather_from(self, latents: Tensor, targets: Tensor, rates: Rates, replayed: Tensor) -> None:
        self.trained.gather(self.trunk.infer_parts(latents), targets)

        def count_once() -> Tensor:
            self.frozen.gather(self._frozen_features(latents), targets)
            return tf.zeros([])

        # Patterns of the memory are in the frozen sums since their own session.
        tf.cond(replayed < 0.5, count_once, lambda: tf.zeros([]))

    def consolidate(self, counts: Tensor, rates: Rates) -> None:
        self.frozen.solve(rates["temperature"])
        self.trained.solve(rates["temperature"])
        self.refitted.assign(self.trained.classes.learned())
        self.refit_count.assign(self.trained.classes.patterns)

    def forget(self, mask: Tensor) -> None:
        self.frozen.forget(mask)
        self.trained.answer.forget(mask)
        self.refitted.assign(self.refitted * (1.0 - mask))

    def _frozen_features(self, latents: Tensor) -> Tensor:
        chain = self.original.chain
        values = {name: tf.constant(value, tf.float32) for name, value in chain.tensors.items()}
        return chain.infer(self.original.first(latents), values)


def _log_softmax(scores: Tensor, classes: Tensor) -> Tensor:
    """Return the logarithms of a softmax over the given classes; far below 0 for all others."""
    return tf.nn.log_softmax(scores - _NEVER * (1.0 - classes))
