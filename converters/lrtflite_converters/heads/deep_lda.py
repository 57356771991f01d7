"""Closed forms above a trunk that trains, next to one on the original trunk.

Several closed forms answer together. The frozen one uses the trunk as it was converted. Its sums
count every pattern once, so no session can overwrite them. The trained ones use the trunk as it is
now: the average of its output, and, if it ends below the pooled layer, that layer too, computed
with the original layers in between. Their sums are gathered again in each session, from the session
and the memory. The log-probabilities are mixed, each trained form with the weight N, the number of
its patterns, and the frozen form with the weight F, the number of features: N patterns of F
features say little while N is small. A class that left the memory keeps its frozen probability.

The trunk trains against the first trained form itself, whose weights do not move in the meantime:
the loss is a cross entropy of its scores, among the classes that it knew before the session. A new
class joins in the next session, through the memory. So a session cannot pull the trunk towards its
own new class. The scores are divided by `softness` times the temperature of the frozen form. The
trained form's own temperature would grow as the trunk moves classes apart, and the loss would never
converge.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import tensorflow as tf

from lrtflite_converters.blocks.block import Chain
from lrtflite_converters.class_sums import transform
from lrtflite_converters.differentiable import matmul, softmax_cross_entropy
from lrtflite_converters.heads.head import Head, HeadPlan, Rates, softmax_over
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
    """Frozen and trained closed forms; `trunk` ends where the first trained one begins.

    `rest` are the original blocks from the trunk's output to the pooled layer; empty if the trunk
    ends there.
    """

    tells_replayed = True
    # The trunk trains as soon as two classes are known, which is after two sessions.
    golden_sessions = 1

    def __init__(self, plan: HeadPlan) -> None:
        assert plan.original is not None
        original, trunk = plan.original, plan.trunk
        # The last block of a trunk averages its output.
        depth, image = len(trunk.chain.blocks), trunk.chain.blocks[-1].image
        rest = original.blocks[depth - 1 :] if len(original.blocks) > depth else ()
        frozen = Trunk(original, scale=trunk.scale, latent_dtype=trunk.latent_dtype)
        object.__setattr__(self, "original", frozen)
        object.__setattr__(self, "rest", Chain(rest, image))
        self.scalars: Mapping[str, Sequence[str]] = {
            "begin": ("rest_below",),
            "train": (*trunk.scalars, "momentum", "weight_decay", "softness"),
            "consolidate": ("temperature",),
        }
        super().__init__(plan)

    original: Trunk
    rest: Chain

    def build(self) -> None:
        self.frozen = LdaSums(self.slots, self.original.features)
        self.trained = {"trained": LdaSums(self.slots, self.trunk.features)}
        if self.rest.blocks:
            self.trained["trained_last"] = LdaSums(self.slots, self.original.features)
        # 1 for each class that trained forms have an answer for; patterns that they stand on.
        self.refitted = tf.Variable(tf.zeros(self.slots), name="refitted")
        self.refit_count = tf.Variable(tf.zeros(1), name="refit_count")
        self.share = tf.Variable([0.0], name="share")
        self.unguarded = Regulariser()

    @property
    def state(self) -> dict[str, tf.Variable]:
        trained = {
            f"{form}_{name}": each
            for form, sums in self.trained.items()
            for name, each in sums.answer.state.items()
        }
        refit = {"refitted": self.refitted, "refit_count": self.refit_count}
        return {**self.frozen.state, **trained, **refit, **self.trunk.state}

    def learned(self) -> Tensor:
        return self.frozen.classes.learned()

    def infer(self, latents: Tensor) -> Outputs:
        z, learned = transform(self._frozen_features(latents)), self.learned()
        scores = self.frozen.answer.scores(z)
        frozen, refitted = scores / self.frozen.answer.temperature, self.refitted * learned
        found = self._trained_features([self.trunk.first(latents)])
        mixed = float(self.trunk.features) * frozen
        for sums, features in zip(self.trained.values(), found):
            own = sums.answer.scores(transform(features)) / sums.answer.temperature
            mixed += self.refit_count * own
        whole = float(self.trunk.features) + self.refit_count * float(len(self.trained))
        refit = softmax_over(mixed / whole, refitted)
        # A class without patterns in the memory keeps its frozen answer, so trained forms divide
        # only the probability that the frozen one gives to their classes.
        alone = softmax_over(frozen, learned)
        divided = tf.reduce_sum(alone * refitted, axis=-1, keepdims=True)
        masked = scores - _NEVER * (1.0 - learned)
        return {
            "probabilities": divided * refit + (1.0 - refitted) * alone,
            "familiarity": self.frozen.classes.familiarity(z, masked),
        }

    def more_trains(self, counts: Tensor, rates: Rates) -> Tensor:
        """Return 1 if enough of the session's and the memory's classes are known already."""
        return super().more_trains(counts * self.refitted, rates)

    def begin(self, counts: Tensor, rates: Rates) -> None:
        zero = tf.minimum(tf.reduce_min(counts), 0.0)
        self.trunk.begin(zero)
        for sums in self.trained.values():
            sums.clear(zero)
        self.share.assign(tf.reshape(self.more_trains(counts, rates), [1]))

    def train(self, latents: Tensor, targets: Tensor, rates: Rates) -> Outputs:
        """Move the trunk by one SGD step; the closed form stays as it is."""
        passed = self.trunk.train(latents, rates)
        z, pull_z = transform_pullback(passed.features)
        answer, known = self.trained["trained"].answer, self.refitted
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
        found = self._trained_features(self.trunk.parts(latents))
        for sums, features in zip(self.trained.values(), found):
            sums.gather(features, targets)

        def count_once() -> Tensor:
            self.frozen.gather(self._frozen_features(latents), targets)
            return tf.zeros([])

        # Patterns of the memory have been in the frozen sums since their own session.
        tf.cond(replayed < 0.5, count_once, lambda: tf.zeros([]))

    def consolidate(self, counts: Tensor, rates: Rates) -> None:
        self.frozen.solve(rates["temperature"])
        for sums in self.trained.values():
            sums.solve(rates["temperature"])
        classes = self.trained["trained"].classes
        self.refitted.assign(classes.learned())
        self.refit_count.assign(classes.patterns)

    def forget(self, mask: Tensor) -> None:
        self.frozen.forget(mask)
        for sums in self.trained.values():
            sums.answer.forget(mask)
        self.refitted.assign(self.refitted * (1.0 - mask))

    def _frozen_features(self, latents: Tensor) -> Tensor:
        chain = self.original.chain
        return chain.infer(self.original.first(latents), _constants(chain))

    def _trained_features(self, parts: Sequence[Tensor]) -> list[Tensor]:
        """Return the features (n, F) of each trained form, from the parts of a mini-batch."""
        *body, pooling = self.trunk.chain.blocks
        values, found = self.trunk.values(), []
        for part in parts:
            image = Chain(tuple(body), self.trunk.chain.image).infer(part, values)
            ends = [pooling.infer(image, values)]
            if self.rest.blocks:
                ends.append(self.rest.infer(image, _constants(self.rest)))
            found.append(ends)
        return [tf.concat(each, axis=0) for each in zip(*found)]


def _constants(chain: Chain) -> dict[str, Tensor]:
    return {name: tf.constant(value, tf.float32) for name, value in chain.tensors.items()}
