"""A closed form above a trunk that trains, next to one on the original trunk.

Two closed forms answer together. The frozen one uses the trunk as it was converted. Its sums count
every pattern once, so no session can overwrite them. The trained one uses the trunk as it is now.
Its sums are gathered again in each session, from the session and the memory. The log-probabilities
are mixed, the trained ones with the share N / (N + F): N patterns of F features say little while N
is small. A class that left the memory keeps its frozen probability.

The trunk trains against the trained form itself, whose weights do not move in the meantime:
the loss is a cross entropy of its scores, among the classes that it knew before the session. A new
class joins in the next session, through the memory. So a session cannot pull the trunk towards its
own new class. The scores are divided by `softness` times the temperature of the frozen form. The
trained form's own temperature would grow as the trunk moves classes apart, and the loss would never
converge.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import tensorflow as tf

from lrtflite_converters.gradients.differentiable import matmul, softmax_cross_entropy
from lrtflite_converters.gradients.window import Tensor
from lrtflite_converters.heads.class_sums import transform
from lrtflite_converters.heads.head import Head, HeadPlan, Rates, softmax_over
from lrtflite_converters.heads.lda_sums import LdaSums
from lrtflite_converters.heads.transform_gradient import transform_pullback
from lrtflite_converters.tflite.signature import Outputs
from lrtflite_converters.training.parameter import Sgd
from lrtflite_converters.training.regularisers.regulariser import Regulariser
from lrtflite_converters.training.trunk import Trunk

# Score of a class that takes no part.
_NEVER = 1e9


class DeepLdaHead(Head):
    """A frozen and a trained closed form; `trunk` ends where the trained one begins."""

    tells_replayed = True
    # The trunk trains as soon as two classes are known, which is after two sessions.
    golden_sessions = 1

    def __init__(self, plan: HeadPlan) -> None:
        assert plan.original is not None
        trunk = plan.trunk
        original = Trunk(plan.original, scale=trunk.scale, latent_dtype=trunk.latent_dtype)
        object.__setattr__(self, "original", original)
        self.scalars: Mapping[str, Sequence[str]] = {
            "begin": ("rest_below",),
            "train": (*trunk.scalars, "momentum", "weight_decay", "softness"),
            "consolidate": ("temperature",),
        }
        super().__init__(plan)

    original: Trunk

    def build(self) -> None:
        self.frozen = LdaSums(self.slots, self.original.features)
        self.trained = LdaSums(self.slots, self.trunk.features)
        # 1 for each class that the trained form has an answer for; number of its patterns.
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
        frozen, refitted = scores / self.frozen.answer.temperature, self.refitted * learned
        answer = self.trained.answer
        own = answer.scores(transform(self.trunk.infer(latents))) / answer.temperature
        share = self.refit_count / (self.refit_count + float(self.trunk.features))
        refit = softmax_over(share * own + (1.0 - share) * frozen, refitted)
        # A class without patterns in the memory keeps its frozen answer, so the trained form
        # divides only the probability that the frozen one gives to its classes.
        alone = softmax_over(frozen, learned)
        divided = tf.reduce_sum(alone * refitted, axis=-1, keepdims=True)
        masked = scores - _NEVER * (1.0 - learned)
        return {
            "probabilities": divided * refit + (1.0 - refitted) * alone,
            "familiarity": self.frozen.familiarity(z, masked),
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
        scores -= _NEVER * (1.0 - known)
        loss, pull = softmax_cross_entropy(scores, targets * known)
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

        # Patterns of the memory have been in the frozen sums since their own session.
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
