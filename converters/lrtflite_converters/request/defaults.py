"""Default mini-batch, epochs and rates of a bundle at each replay layer, from measurements."""

from __future__ import annotations

from dataclasses import dataclass, replace

from lrtflite.bundle.feeding import NOTHING, SESSION, SESSION_AND_MEMORY, Feeding
from lrtflite.bundle.training import Rate
from lrtflite.networks.architecture import Architecture

# Length of the feature vector for which LAST_LR was measured. With half as many features, a step
# changes a score half as much, so the rate is doubled.
MEASURED_FEATURES = 1024
# Learning rate of the last layer at that length.
LAST_LR = 0.003
# Replay memory of the paper's experiments.
REPLAY_SIZE, POLICY, CODEC = 1500, "algorithm1", "raw"
# Policy where the last layer is refitted from the memory, so that each class has its share of it
# (docs/studies/trunk.md).
REFIT_POLICY = "balanced"
# Minimum number of steps in a session, so that a few pictures are enough to learn a class.
MIN_STEPS = 24
# Passes over a session, without and with a trunk, whose steps are slow.
EPOCHS, TRUNK_EPOCHS = 4, 2
# Extra steps of CWR*, and the loss below which a session has been learned; chosen on validation
# draws (docs/studies/enough-steps.md).
EXTRA_STEPS, ENOUGH_LOSS = 100, 0.01
# Rates of a trunk: learning rate, and share of a mini-batch in the moving moments.
QUICK = {"trunk_lr": 0.015, "moment_rate": 0.03}
# Rates of a trunk below an architecture's `lowest_quick` layer: the paper's rates of native
# rehearsal. At higher rates, units near the camera, and their moments above all, would adapt to the
# light of the most recent sessions (docs/studies/replay-layers.md).
NATIVE = {"trunk_lr": 0.0003, "moment_rate": 0.0001}
# Limits of r and d: the values at the end of the first batch in the authors' code. The paper's 1.25
# and 0.5 work for a network whose moments already fit the data. With a backbone that was trained on
# other data, they make training features differ from inference features
# (docs/studies/replay-layers.md).
R_MAX, D_MAX = 3.0, 5.0
# Maximum limits of r and d that a user may set. With these, Batch Renorm no longer clips anything.
MAX_R, MAX_D = 1e6, 1e6
# Patterns passed to a closed form at a time: a session of five seconds of video is one call.
GATHERED_AT_ONCE = 32
# Temperatures of the closed forms, chosen on validation streams so that confidence matches
# accuracy. They are relative to the mean distance of a class from the mean of all: 0.037 to 0.053
# of lda's squared distances and 0.064 to 0.11 of ncm's cosines fitted both photographs and drawn
# videos. A fixed temperature for lda would have to be 8 to 60.
LDA_TEMPERATURE, NCM_TEMPERATURE = 0.044, 0.09
# Familiarity below which a frame is unknown, so low that it holds on photographs and in scenes that
# were never taught (docs/studies/closed-form.md describes the choice).
UNKNOWN = 0.46
# Number of classes in session and memory below which a trunk rests. A strategy that protects its
# weights in another way, or that is compared because it does not, trains it with one class too.
REST_BELOW, NEVER_RESTS = 2.0, 1.0
# Synaptic Intelligence: share of a session in the importance of a weight, and its greatest value.
IMPORTANCE_RATE, MAX_F = 0.5, 0.001
# Penalty of EWC and the greatest Fisher information of a weight, chosen on validation streams
# (docs/studies/strategies.md).
EWC_PENALTY, EWC_MAX_F = 1e4, 0.001
# Largest share of LwF's targets that is from answers before the session, as in the paper's rivals.
DISTIL_MOST = 0.9
# Shrinkage of the paper's DSLDA.
DSLDA_SHRINKAGE = 1e-4
# Mini-batches of a closed form above a trunk: their size, new patterns in each, and their number in
# a session. The divisor of its scores in training, relative to the temperature of the frozen form:
# at 1 or 2 the loss is so low that nothing moves, at 8 the trunk overtrains.
DEEP_BATCH, DEEP_NEW, DEEP_STEPS = 64, 10, 8
SOFTNESS = 4.0
# Share of a session's frames in the moments below the replay layer, per epoch.
ADAPT_RATE = 5e-5


@dataclass(frozen=True)
class SplitPoint:
    """The place of a head: its network, its replay layer, and the length of its feature vector.

    `adapts` is True if the moments below the replay layer follow the data, `pooled` if the latents
    are the layer's output averaged over all pixels. `second` is another layer whose average is in
    the latents too.
    """

    architecture: Architecture
    replay_layer: str
    features: float = MEASURED_FEATURES
    adapts: bool = False
    pooled: bool = False
    second: str | None = None

    @property
    def trains_trunk(self) -> bool:
        return not self.pooled and self.architecture.trains_trunk(self.replay_layer)

    @property
    def is_quick(self) -> bool:
        layers = self.architecture.replay_layers
        return layers.index(self.replay_layer) >= layers.index(self.architecture.lowest_quick)


def default_minibatch(place: SplitPoint) -> tuple[int, int]:
    """Return the size and the new patterns: as in the paper's app, or in its experiments."""
    is_pooled = place.pooled or place.replay_layer == place.architecture.pooled
    return (120, 20) if is_pooled else (128, 21)


def sgd_feeding(place: SplitPoint) -> Feeding:
    """Return the feeding of CWR* with SGD: full mini-batches, epochs, replay.

    A session takes extra steps until it has been learned, except above the lowest layers: a step
    takes seconds there, and the loss falls slowly at their rates. Without a trunk, the head also
    gathers sums over the session, to measure familiarity.
    """
    size, new = default_minibatch(place)
    goes_on = place.is_quick or not place.trains_trunk
    return Feeding(
        batch_size=size,
        new_per_batch=new,
        epochs=TRUNK_EPOCHS if place.trains_trunk else EPOCHS,
        least_steps=MIN_STEPS,
        extra_steps=EXTRA_STEPS if goes_on else 0,
        enough_loss=ENOUGH_LOSS if goes_on else 0.0,
        gathers=NOTHING if place.trains_trunk else SESSION,
    )


def plain_feeding(place: SplitPoint) -> Feeding:
    """Return the feeding of a plain softmax layer: like CWR*, without extra steps or gathering.

    Nothing protects its old classes, so further steps on a session would cost them more.
    """
    return replace(sgd_feeding(place), extra_steps=0, enough_loss=0.0, gathers=NOTHING)


def observing(place: SplitPoint) -> Feeding:
    """Return the feeding of a plain softmax layer whose regulariser sees the session again."""
    return replace(plain_feeding(place), gathers=SESSION)


def cwr_rates(place: SplitPoint) -> dict[str, Rate]:
    """Return the rates of CWR* with SGD; docs/studies/replay-layers.md explains the choice."""
    start = Rate(
        1.0, most=1.0, meaning="share of the known classes' mean that a new class starts from"
    )
    return {**sgd_rates(place), "head_start": start}


def ar1_rates(place: SplitPoint) -> dict[str, Rate]:
    """Return the rates of CWR* above a trunk under Synaptic Intelligence."""
    return {
        **cwr_rates(place),
        **resting(place, NEVER_RESTS),
        **importance(MAX_F, IMPORTANCE_RATE),
        "protection": Rate(
            1.0, most=1.0, meaning="share of its update that the most important weight loses"
        ),
        "penalty": Rate(
            0.0, meaning="weight (lambda) of the quadratic penalty on moving important weights"
        ),
    }


def naive_rates(place: SplitPoint) -> dict[str, Rate]:
    """Return the rates of a plain softmax layer above a trunk that never rests."""
    return {**sgd_rates(place), **resting(place, NEVER_RESTS)}


def ewc_rates(place: SplitPoint) -> dict[str, Rate]:
    return {
        **naive_rates(place),
        **importance(EWC_MAX_F, 1.0),
        "penalty": Rate(
            EWC_PENALTY, meaning="weight (lambda) of the penalty on moving important weights"
        ),
    }


def lwf_rates(place: SplitPoint) -> dict[str, Rate]:
    meaning = "largest share of the targets from answers before the session"
    return {**naive_rates(place), "distil_most": Rate(DISTIL_MOST, most=1.0, meaning=meaning)}


def dslda_rates(place: SplitPoint) -> dict[str, Rate]:
    shrinkage = Rate(
        DSLDA_SHRINKAGE, 1e-8, 1.0, "share of the identity in the covariance of all classes"
    )
    return {"shrinkage": shrinkage, **temperature(LDA_TEMPERATURE)}


def resting(place: SplitPoint, least: float) -> dict[str, Rate]:
    """Return the rate that lets a trunk rest, if there is one."""
    if not place.trains_trunk:
        return {}
    meaning = "number of classes in session and memory below which the trunk rests"
    return {"rest_below": Rate(least, meaning=meaning)}


def importance(max_f: float, rate: float) -> dict[str, Rate]:
    return {
        "max_f": Rate(max_f, least=1e-30, meaning="greatest importance of a weight"),
        "importance_rate": Rate(rate, meaning="share of a session in the importance of weights"),
    }


def sgd_rates(place: SplitPoint) -> dict[str, Rate]:
    """Return the rates of SGD on the last layer and on the trunk."""
    rates = {
        "lr": Rate(
            LAST_LR * MEASURED_FEATURES / place.features, meaning="learning rate of the last layer"
        ),
        "momentum": Rate(0.9, most=1.0, meaning="momentum of SGD"),
        "weight_decay": Rate(5e-4, most=1.0, meaning="weight decay of kernels and the last layer"),
        **resting(place, REST_BELOW),
    }
    if place.trains_trunk:
        chosen = QUICK if place.is_quick else NATIVE
        rates["trunk_lr"] = Rate(
            chosen["trunk_lr"], meaning="learning rate of the layers below the last one"
        )
        rates["moment_rate"] = Rate(
            chosen["moment_rate"],
            most=1.0,
            meaning="share of a mini-batch in the moving moments above the replay layer",
        )
    return rates


def gathering(place: SplitPoint) -> Feeding:
    """Return the feeding of a closed form: each pattern of the session once, nothing replayed."""
    return Feeding(
        batch_size=GATHERED_AT_ONCE,
        new_per_batch=GATHERED_AT_ONCE,
        epochs=1,
        least_steps=1,
        replays=False,
        gathers=SESSION,
    )


def lda_feeding(place: SplitPoint) -> Feeding:
    """Return the feeding of a closed form; above a trunk, a few small steps and all of the memory.

    docs/studies/trunk.md shows accuracy against seconds.
    """
    if not place.trains_trunk:
        return gathering(place)
    return Feeding(
        batch_size=DEEP_BATCH,
        new_per_batch=DEEP_NEW,
        epochs=1,
        least_steps=DEEP_STEPS,
        most_steps=DEEP_STEPS,
        gathers=SESSION_AND_MEMORY,
    )


def lda_rates(place: SplitPoint) -> dict[str, Rate]:
    """Return the rates of a closed form, and those of SGD on a trunk below it."""
    rates = temperature(LDA_TEMPERATURE)
    if place.trains_trunk:
        sgd = sgd_rates(place)
        del sgd["lr"]  # the last layer is solved
        meaning = "divisor of the scores in training, relative to the frozen form's temperature"
        rates = {**sgd, **rates, "softness": Rate(SOFTNESS, 1e-6, 1e6, meaning)}
    return rates


def temperature(value: float) -> dict[str, Rate]:
    """Return the rate by which a closed form divides its scores."""
    return {
        "temperature": Rate(value, 1e-6, 1e6, "softness of probabilities; greater is less sure")
    }


def renorm_rates(place: SplitPoint) -> dict[str, Rate]:
    """Return the rates of Batch Renorm, if any of its layers trains or adapts."""
    rates: dict[str, Rate] = {}
    if place.adapts:
        rates["adapt_rate"] = Rate(
            ADAPT_RATE,
            most=1.0,
            meaning="share of a session's frames in the moments below the replay layer, per epoch",
        )
    if place.adapts or place.trains_trunk:
        rates["r_max"] = Rate(R_MAX, 1.0, MAX_R, "greatest r of Batch Renorm")
        rates["d_max"] = Rate(D_MAX, 0.0, MAX_D, "greatest d of Batch Renorm")
    return rates
