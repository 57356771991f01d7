"""What is usual at each replay layer: the mini-batch, and rates chosen by measurement."""

from __future__ import annotations

from lrtflite.manifest import Training


def usual_minibatch(replay_layer: str) -> tuple[int, int]:
    """Its size and its new patterns: the paper's app at pool6, the paper's experiments below."""
    return (120, 20) if replay_layer == "pool6" else (128, 21)


def usual_training(replay_layer: str) -> Training:
    """Chosen on validation splits, see docs/replay-layers.md; moments at the paper's rates."""
    return Training(moment_rate=1e-4 if replay_layer == "images" else 5e-5)
