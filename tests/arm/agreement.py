"""Compare the results of the same sessions on two machines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

# Largest difference allowed in a loss and in a probability. Kernels of another processor add
# float32 terms in another order, so both differ by 1e-7 to 1e-5 after these sessions; a learning
# rate that is wrong by 1 % moves both by more than 1e-3.
TOLERANCE = 1e-4


@dataclass(frozen=True)
class Agreement:
    """Largest differences between two results, and what is wrong in words."""

    loss: float
    probability: float
    faults: tuple[str, ...]


def compare(found: dict[str, Any], expected: dict[str, Any]) -> Agreement:
    """Compare two results of `arm_session.py`; NaN counts as a fault.

    Heads that take no steps have no losses.
    """
    has_losses = any(each is not None for each in (*found["losses"], *expected["losses"]))
    loss = _largest(found["losses"], expected["losses"]) if has_losses else 0.0
    probability = max(
        _largest(one["probabilities"], other["probabilities"])
        for one, other in zip(found["answers"], expected["answers"])
    )
    faults = [
        f"the {name} differ by {worst:.1e}"
        for name, worst in (("losses", loss), ("probabilities", probability))
        if not worst <= TOLERANCE
    ]
    for session, (one, other) in enumerate(zip(found["answers"], expected["answers"]), start=1):
        if one["labels"] != other["labels"]:
            faults.append(f"session {session} predicts {one['labels']}, not {other['labels']}")
    return Agreement(loss, probability, tuple(faults))


def _largest(found: list[Any], expected: list[Any]) -> float:
    differences = np.abs(np.array(found, np.float64) - np.array(expected, np.float64))
    # Unlike Python's max, numpy's gives NaN if any is.
    return float(differences.max())
