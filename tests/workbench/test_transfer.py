"""Average accuracy, transfers, memory overhead and aging, against values worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from lrtflite.errors import InputError
from lrtflite.workbench.transfer import (
    MemoryOverhead,
    aging,
    average_accuracy,
    backward_transfer,
    forward_transfer,
)

# Three sessions, four classes: classes 0 and 1 come first, then class 2; class 3 never.
HISTORY = [
    [0.8, 0.6, 0.1, 0.0],
    [0.7, 0.8, 0.5, 0.0],
    [0.5, 0.9, 0.6, 0.0],
]
LEARNED = [0, 0, 1, None]


def test_average_accuracy_is_over_the_classes_taught_so_far() -> None:
    # (0.8+0.6)/2 = 0.7; (0.7+0.8+0.5)/3 = 2/3; (0.5+0.9+0.6)/3 = 2/3.
    assert average_accuracy(HISTORY, LEARNED) == pytest.approx((0.7 + 2 / 3 + 2 / 3) / 3)


def test_backward_transfer_counts_losses_and_gains() -> None:
    # 0.5-0.8 = -0.3; 0.9-0.6 = +0.3; 0.6-0.5 = +0.1.
    assert backward_transfer(HISTORY, LEARNED) == pytest.approx(0.1 / 3)
    # A class of the last session had no later session.
    assert backward_transfer(HISTORY, [0, None, 2, None]) == pytest.approx(-0.3)
    assert backward_transfer(HISTORY[:1], [0, 0, 0, 0]) == 0


def test_forward_transfer_is_what_was_known_before() -> None:
    # Class 2 had 0.1 before its first session; chance is 1/4.
    assert forward_transfer(HISTORY, LEARNED) == pytest.approx(0.1)
    assert forward_transfer(HISTORY, LEARNED, chance=0.25) == pytest.approx(-0.15)
    assert forward_transfer(HISTORY, [0, 0, 0, 0]) == 0


def test_untested_classes_are_left_out() -> None:
    history = np.array(HISTORY)
    history[:, 1] = np.nan
    # 0.8; (0.7+0.5)/2 = 0.6; (0.5+0.6)/2 = 0.55.
    assert average_accuracy(history, LEARNED) == pytest.approx((0.8 + 0.6 + 0.55) / 3)
    assert backward_transfer(history, LEARNED) == pytest.approx((-0.3 + 0.1) / 2)
    assert forward_transfer(history, [0, 1, 1, None]) == pytest.approx(0.1)


def test_a_history_of_another_shape_is_refused() -> None:
    for function in (average_accuracy, backward_transfer, forward_transfer):
        with pytest.raises(InputError, match=r"a history of shape \(sessions, 3\), got \(3, 4\)"):
            function(HISTORY, [0, 0, 1])
    with pytest.raises(InputError, match="at least one class that was taught"):
        average_accuracy(HISTORY, [None] * 4)


def test_memory_overhead_of_the_paper() -> None:
    # Table 2: 1,500 patterns of conv5_4/dw, 32 x 32 x 32 = 32,768 values of one byte each.
    replay = MemoryOverhead(data=1500 * 32768, parameters=0)
    assert str(replay) == "49.2 + 0.0 MB"
    # CWR* keeps a second copy of 50 x 1,024 float weights.
    assert str(MemoryOverhead(data=0, parameters=50 * 1024 * 4)) == "0.0 + 0.2 MB"
    assert MemoryOverhead(data=5_800_000, parameters=12_400_000).megabytes == pytest.approx(18.2)


def test_aging_is_a_relative_distance() -> None:
    fresh = [[[3.0, 4.0]], [[0.0, 2.0]], [[0.0, 0.0]]]
    # |(0, 4)-(3, 4)| / 5 = 0.6; |(0, 3)-(0, 2)| / 2 = 0.5; the third has no length.
    stored = [[[0.0, 4.0]], [[0.0, 3.0]], [[1.0, 0.0]]]
    assert aging(stored, fresh) == pytest.approx(0.55)
    assert aging(fresh, fresh) == 0
    with pytest.raises(InputError, match="as many stored latents as fresh ones"):
        aging(stored[:2], fresh)
    with pytest.raises(InputError, match="a latent that is not zero"):
        aging([[0.0]], [[0.0]])
