"""Hand-worked sessions whose steps have given losses, and the number of steps that each takes.

A pass over the session is two steps and the feeding has two epochs, so four steps are fixed. Up to
five extra ones follow while the mean loss of a pass is 0.5 or more. After the given losses, a step
has the loss 0.
"""

from __future__ import annotations

PASS, EPOCHS, EXTRA_STEPS, ENOUGH_LOSS = 2, 2, 5, 0.5
# Losses of the steps, the numbers of the feeding that differ, and the steps of the session.
CASES: list[tuple[list[float], dict[str, float], int]] = [
    ([9, 9, 0.4, 0.5], {}, 4),  # the last pass has a mean of 0.45; earlier steps do not count
    ([9, 9, 0.25, 0.75], {}, 6),  # a mean of exactly 0.5 is not below 0.5
    ([9, 9, 9, 9, 0.9, 0], {}, 6),
    ([9, 9, 9, 9, 0.9, 0.2, 0.1, 0.1], {}, 8),  # 0.55 after six steps, 0.1 after eight
    ([9] * 9, {}, 8),  # the fifth extra step would begin a pass that does not fit
    ([9] * 99, {"extra_steps": 6}, 10),
    ([9] * 99, {"extra_steps": 1}, 4),
    ([9] * 99, {"extra_steps": 0}, 4),
    ([9] * 99, {"most_steps": 7}, 6),
    ([9] * 99, {"most_steps": 3}, 3),  # cut before the end of the second pass
    ([9, 0.2, 0.2], {"most_steps": 3}, 3),
    ([9] * 99, {"most_steps": 1}, 1),
    ([0.1] * 99, {"least_steps": 7}, 7),
    ([9] * 99, {"least_steps": 7}, 11),
    ([9] * 5 + [0.1, 0.1], {"least_steps": 7}, 7),  # the last two steps, wherever a pass began
    ([0.0] * 99, {"enough_loss": 0.0}, 8),  # no loss is below 0
]
