"""CWR* with SGD in float64 numpy, written from the paper: the reference of several tests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def softmax(scores: Array) -> Array:
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def cwr_session(
    cw: Array,
    past: Array,
    counts: Array,
    batches: Iterable[tuple[Array, Array]],
    *,
    lr: float,
    momentum: float,
    weight_decay: float,
    head_start: float = 0.0,
) -> tuple[Array, Array, list[float]]:
    """Return the new cw (C, F) and past (C,), and the loss of each mini-batch (latents, targets).

    `head_start` is not in the paper: a new class starts from that share of the mean of the others.
    """
    tw = np.zeros(cw.shape)
    known = [cw[j] for j in range(len(cw)) if counts[j] > 0 and past[j] > 0]
    for j in range(len(cw)):
        if counts[j] > 0:
            tw[j] = cw[j]
            if past[j] == 0 and known:
                tw[j] = head_start * np.mean(known, axis=0)
    velocity, losses = np.zeros(tw.shape), []
    for x, t in batches:
        p = softmax(x.astype(float) @ tw.T)
        losses.append(float(-(t * np.log(p)).sum(-1).mean()))
        gradient = (p - t).T @ x.astype(float) / len(x) + weight_decay * tw
        velocity = momentum * velocity + gradient
        tw = tw - lr * velocity
    present = [j for j in range(len(cw)) if counts[j] > 0]
    average = np.mean([tw[j] for j in present])
    fused, new_past = cw.astype(float).copy(), past.astype(float).copy()
    for j in present:
        wpast = np.sqrt(past[j] / counts[j])
        fused[j] = (cw[j] * wpast + (tw[j] - average)) / (wpast + 1)
        new_past[j] += counts[j]
    return fused, new_past, losses
