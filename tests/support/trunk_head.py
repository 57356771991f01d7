"""Heads above a trunk for tests, and the rates that they take."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from lrtflite.host.network import Network
from lrtflite_converters.blocks.split import blocks_above
from lrtflite_converters.heads.cwr import CwrHead
from lrtflite_converters.heads.head import HeadPlan
from lrtflite_converters.training.regularisers.regulariser import Regulariser
from lrtflite_converters.training.trunk import Trunk

SLOTS = 4


def make_head(
    network: Network,
    replay_layer: str,
    *,
    batch_size: int,
    train_depthwise: bool = True,
    regulariser: Regulariser | None = None,
) -> CwrHead:
    """Return a head that has learned every class, with random weights."""
    trunk = Trunk(
        blocks_above(network, replay_layer, train_depthwise=train_depthwise),
        scale=network.scale if network.architecture.reads_frames(replay_layer) else None,
    )
    guard = Regulariser() if regulariser is None else regulariser
    plan = HeadPlan(slots=SLOTS, batch_size=batch_size, trunk=trunk, regulariser=guard)
    head = CwrHead(plan)
    rng = np.random.default_rng(3)
    head.cw.assign(rng.normal(0, 0.3, (SLOTS, head.trunk.features)).astype(np.float32))
    head.past.assign(np.ones(SLOTS, np.float32))
    return head


def begin(head: CwrHead, *, classes: int = SLOTS) -> float:
    """Start a session with one pattern of each of the first classes; return its `trains`."""
    counts = (np.arange(SLOTS) < classes).astype(np.float32)
    rates = scalars(head, {"head_start": 0.0, "rest_below": 2.0}, "begin")
    return head.run("begin", counts=counts, **rates)["trains"].item()


def scalars(
    head: CwrHead, rates: Mapping[str, float], signature: str = "train"
) -> dict[str, np.ndarray]:
    """Return the rates that a signature takes, in the form that a client feeds: (1,) float32."""
    taken = head.signatures[signature].inputs
    return {n: np.array([rate], np.float32) for n, rate in rates.items() if n in taken}


def trunk_state(head: CwrHead) -> dict[str, np.ndarray]:
    return {name: variable.numpy() for name, variable in head.trunk.state.items()}
