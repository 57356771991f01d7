"""Progress of all that takes a while: one event, with a phase and a count."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable


class Phase:
    """Names of phases, in progress, timings and results."""

    EXTRACT = "extract"  # a frame becomes a latent
    BEGIN = "begin"
    PREPARE = "prepare"  # a mini-batch is assembled
    TRAIN = "train"  # one step
    GATHER = "gather"  # a head that collects sums sees a mini-batch, after the last step
    CONSOLIDATE = "consolidate"
    ADAPT = "adapt"  # moments below the replay layer adapt
    MEMORY = "memory"  # the replay memory is updated
    CHECKPOINT = "checkpoint"  # the state is committed
    # Outside a session.
    CHECK = "check"  # a file of a data set is checked
    READ = "read"  # a frame or picture is read
    TEST = "test"
    INFER = "infer"


@dataclass(frozen=True)
class Progress:
    """Progress of a phase. `total` is None while frames still arrive from an iterator.

    In Phase.TRAIN, `total` grows when a session takes an extra pass; `done` reaches it at the end.
    """

    phase: str  # a name in Phase; in a session EXTRACT, TRAIN, GATHER, ADAPT or CHECKPOINT
    done: int
    total: int | None


OnProgress = Callable[[Progress], None]
"""Called after each step of a phase; it may raise to stop."""
