"""Defaults of a bundle at each replay layer: mini-batch, epochs and rates, as measured."""

from __future__ import annotations

from dataclasses import dataclass

from lrtflite.feeding import NOTHING, SESSION, Feeding
from lrtflite.networks import Architecture
from lrtflite.training import Rate

# Length of the vector that the default rate of the last layer was measured with. Half as many
# features turn a score half as far.
MEASURED_FEATURES = 1024
# Learning rate of the last layer above so many features.
LAST_LR = 0.003
# The memory of the paper's experiments.
REPLAY_SIZE, POLICY, CODEC = 1500, "algorithm1", "raw"
LEAST_STEPS = 24
# Passes over a session. A step of the trunk is costly.
EPOCHS, TRUNK_EPOCHS = 4, 2
# Learning rate of a trunk, and the share of a mini-batch in its moving moments.
QUICK = {"trunk_lr": 0.015, "moment_rate": 0.03}
# The same below an architecture's `lowest_quick` layer: the paper's rates of native rehearsal.
# Units near the camera, their moments more than their weights, follow the light of the last
# sessions (docs/replay-layers.md).
NATIVE = {"trunk_lr": 0.0003, "moment_rate": 0.0001}
# Limits of r and d, those that the authors' code ends its first batch with. The paper's 1.25 and
# 0.5 are for later, for a network whose moments know the data already: with a backbone from
# elsewhere they let a session train on other features than inference will see
# (docs/replay-layers.md).
R_MAX, D_MAX = 3.0, 5.0
# Greatest limits of r and d: far beyond any that keep Batch Renorm from being plain normalisation.
MOST_R, MOST_D = 1e6, 1e6
# Patterns that a closed form takes at a time: a session of five seconds of video is one call.
GATHERED_AT_ONCE = 32
# Temperatures of the closed forms, chosen on validation streams so that confidence is accuracy.
LDA_TEMPERATURE, NCM_TEMPERATURE = 12.0, 0.02
# Share of a session's frames in the moments below the replay layer, for each epoch.
ADAPT_RATE = 5e-5


@dataclass(frozen=True)
class Place:
    """Where a head stands: above which layer of which network, with how many features.

    `adapts` says whether the moments below the replay layer follow the data, `pooled` whether its
    latents are the global average of the layer's output.
    """

    architecture: Architecture
    replay_layer: str
    features: int = MEASURED_FEATURES
    adapts: bool = False
    pooled: bool = False

    @property
    def trains_trunk(self) -> bool:
        return not self.pooled and self.architecture.trains_trunk(self.replay_layer)

    @property
    def is_quick(self) -> bool:
        layers = self.architecture.replay_layers
        return layers.index(self.replay_layer) >= layers.index(self.architecture.lowest_quick)


def default_minibatch(place: Place) -> tuple[int, int]:
    """Return its size and its new patterns: those of the paper's app, or of its experiments."""
    is_pooled = place.pooled or place.replay_layer == place.architecture.pooled
    return (120, 20) if is_pooled else (128, 21)


def sgd_feeding(place: Place) -> Feeding:
    """Return how a head that trains by SGD is fed: full mini-batches, epochs, replay.

    Without a trunk it also gathers sums of the session, which tell what is familiar.
    """
    size, new = default_minibatch(place)
    return Feeding(
        batch_size=size,
        new_per_batch=new,
        epochs=TRUNK_EPOCHS if place.trains_trunk else EPOCHS,
        least_steps=LEAST_STEPS,
        gathers=NOTHING if place.trains_trunk else SESSION,
    )


def sgd_rates(place: Place) -> dict[str, Rate]:
    """Return the rates of CWR* with SGD; see docs/replay-layers.md for how they were chosen."""
    rates = {
        "lr": Rate(
            LAST_LR * MEASURED_FEATURES / place.features, meaning="learning rate of the last layer"
        ),
        "momentum": Rate(0.9, most=1.0, meaning="momentum of SGD"),
        "weight_decay": Rate(5e-4, most=1.0, meaning="weight decay of kernels and the last layer"),
        "head_start": Rate(
            1.0, most=1.0, meaning="share of the known classes' mean that a new class starts from"
        ),
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


def gathering(place: Place) -> Feeding:
    """Return how a closed form is fed: each pattern of the session once, nothing replayed."""
    return Feeding(
        batch_size=GATHERED_AT_ONCE,
        new_per_batch=GATHERED_AT_ONCE,
        epochs=1,
        least_steps=1,
        replays=False,
        gathers=SESSION,
    )


def temperature(value: float) -> dict[str, Rate]:
    """Return the rate by which a closed form divides its scores."""
    return {"temperature": Rate(value, 1e-6, 1e6, "scores are divided by it; greater is less sure")}


def renorm_rates(place: Place) -> dict[str, Rate]:
    """Return the rates of Batch Renorm, wherever one of its layers trains or adapts."""
    rates: dict[str, Rate] = {}
    if place.adapts:
        rates["adapt_rate"] = Rate(
            ADAPT_RATE,
            most=1.0,
            meaning="share of a session's frames in the moments below the replay layer, an epoch",
        )
    if place.adapts or place.trains_trunk:
        rates["r_max"] = Rate(R_MAX, 1.0, MOST_R, "greatest r of Batch Renorm")
        rates["d_max"] = Rate(D_MAX, 0.0, MOST_D, "greatest d of Batch Renorm")
    return rates
