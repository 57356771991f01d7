"""What is usual at each replay layer: the mini-batch, and rates chosen by measurement."""

from __future__ import annotations

from dataclasses import replace

from lrtflite.layer_names import REPLAY_LAYERS
from lrtflite.manifest import Training, trains_trunk

# Where only the last layer trains.
LAST_LAYER = Training(
    lr=0.003,
    momentum=0.9,
    weight_decay=5e-4,
    epochs=4,
    trunk_lr=0.015,
    moment_rate=0.03,
    adapt_rate=5e-5,
    least_steps=24,
    head_start=1.0,
)
# A step of the trunk is costly.
TRUNK = replace(LAST_LAYER, epochs=2)
# Below this layer a trunk has the paper's rates of native rehearsal: units near the camera, their
# moments more than their weights, follow the light of the last sessions (docs/replay-layers.md).
LOWEST_QUICK = "conv3_1/dw"
NATIVE = replace(TRUNK, trunk_lr=0.0003, moment_rate=0.0001)
# What the rate of the last layer is for. Half as many features turn a score half as far.
FEATURES = 1024
# The memory of the paper's experiments.
USUAL_REPLAY_SIZE, USUAL_POLICY = 1500, "algorithm1"


def usual_minibatch(replay_layer: str) -> tuple[int, int]:
    """Its size and its new patterns: the paper's app at pool6, the paper's experiments below."""
    return (120, 20) if replay_layer == "pool6" else (128, 21)


def usual_training(replay_layer: str, features: int = FEATURES) -> Training:
    """Chosen on validation splits, see docs/replay-layers.md; `features` come out of the trunk."""
    if not trains_trunk(replay_layer):
        usual = LAST_LAYER
    elif REPLAY_LAYERS.index(replay_layer) >= REPLAY_LAYERS.index(LOWEST_QUICK):
        usual = TRUNK
    else:
        usual = NATIVE
    return replace(usual, lr=usual.lr * FEATURES / features)
