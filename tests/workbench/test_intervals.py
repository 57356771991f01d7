"""Intervals and the paired test, against hand-worked values and printed tables."""

from __future__ import annotations

import pytest

from lrtflite.errors import InputError
from lrtflite.workbench.intervals import Estimate, paired, t_975, welch


def test_an_estimate_by_hand() -> None:
    # 1, 2, 3: mean 2, sample deviation 1, t(2) = 4.303: 4.303 / sqrt(3) = 2.4843.
    found = Estimate.of([1, 2, 3])
    assert (found.mean, found.std, found.n) == (2, 1, 3)
    assert found.half == pytest.approx(2.4843, abs=1e-4)
    assert Estimate.of([5.0]) == Estimate(5.0, 1)
    with pytest.raises(InputError):
        Estimate.of([])


def test_quantiles_are_those_of_printed_tables() -> None:
    for degrees, value in ((1, 12.706), (9, 2.262), (30, 2.042), (40, 2.021), (120, 1.980)):
        assert t_975(degrees) == pytest.approx(value, abs=6e-4)
    assert t_975(9.9) == 2.262
    with pytest.raises(InputError):
        t_975(0.5)


def test_paired_by_hand() -> None:
    # Differences 1, 2, 3. Of the 8 ways to flip signs, +++ and --- reach a sum of 6: p = 2/8.
    found = paired([2, 4, 6], [1, 2, 3])
    assert (found.mean, found.n, found.p) == (2, 3, 0.25)
    assert found.half == pytest.approx(2.4843, abs=1e-4)
    assert not found.is_clear
    # Differences 4, 5, -1, 6: |sum| 14. Sums of at least 14: only 14 (as is), 16 (all positive),
    # and their opposites: 4 of 16.
    assert paired([4, 5, -1, 6], [0, 0, 0, 0]).p == 4 / 16
    assert paired([1, 1], [1, 1]).p == 1
    # Student's t for differences 1, 1, 1, 2: mean 1.25, deviation 0.5, 3.182 * 0.5 / 2 = 0.7955.
    clear = paired([1, 1, 1, 2], [0, 0, 0, 0])
    assert clear.half == pytest.approx(0.7955)
    assert clear.is_clear


def test_many_pairs_are_drawn_with_a_fixed_seed() -> None:
    # 16 equal differences: only two of 65,536 ways reach them.
    first = paired([1.0] * 16, [0.0] * 16)
    assert first == paired([1.0] * 16, [0.0] * 16)
    assert first.p < 0.001
    # Nothing between the variants: half of the signs either way.
    assert paired([1.0, -1.0] * 10, [0.0] * 20).p == 1


def test_pairs_that_are_none() -> None:
    with pytest.raises(InputError, match="Expected pairs, got 2 and 3"):
        paired([1, 2], [1, 2, 3])
    with pytest.raises(InputError, match="at least 2 seeds for an interval, got 1"):
        paired([1], [2])


def test_welch_by_hand() -> None:
    # Variances of the means 1/4 and 4/4, 3 degrees each: 1.25^2 / (0.0625/3 + 1/3) = 4.41 -> 4.
    half = welch(Estimate.from_spread(0, 1.0, 4), Estimate.from_spread(0, 2.0, 4))
    assert half == pytest.approx(2.776 * 1.25**0.5)
    # A figure without a spread counts as exact.
    assert welch(Estimate.of([1, 2, 3]), Estimate(2.5, 10)) == pytest.approx(2.4843, abs=1e-4)
    # Rounding must not cost a whole degree of freedom: 7, not 6.999999.
    for step in range(1, 200):
        std = step / 4000
        half = welch(Estimate.from_spread(0, std, 8), Estimate(1, 1))
        assert half == pytest.approx(t_975(7) * std / 8**0.5)
    assert welch(Estimate(1, 1), Estimate(2, 1)) is None
    assert welch(Estimate.of([1, 1]), Estimate(1, 1)) == 0


def test_drawn_ways_to_swap_never_give_a_p_of_zero() -> None:
    # 2 of 2^30 ways reach the difference: none is drawn, but the runs themselves are one way.
    found = paired([0.9] * 30, [0.1] * 30)
    assert found.p == pytest.approx(1 / 20_001)
    assert paired([0.5] * 30, [0.5] * 30).p == 1
