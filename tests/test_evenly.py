"""Evenly spread indices, worked out by hand."""

from __future__ import annotations

import pytest

from lrtflite.evenly import Place, evenly


@pytest.mark.parametrize(
    ("length", "count", "place", "expected"),
    [
        (10, 4, "start", (0, 2, 5, 7)),
        (10, 4, "middle", (1, 3, 6, 8)),
        (10, 4, "ends", (0, 3, 6, 9)),
        (9, 3, "start", (0, 3, 6)),
        (9, 3, "middle", (1, 4, 7)),
        (9, 3, "ends", (0, 4, 8)),
        (7, 1, "start", (0,)),
        (7, 1, "middle", (3,)),
        (7, 1, "ends", (0,)),
        (7, 2, "ends", (0, 6)),
    ],
)
def test_by_hand(length: int, count: int, place: Place, expected: tuple[int, ...]) -> None:
    assert evenly(length, count, place=place) == expected


@pytest.mark.parametrize("place", ["start", "middle", "ends"])
def test_all_where_there_are_no_more(place: Place) -> None:
    for count in (3, 4, 100, None):
        assert evenly(3, count, place=place) == (0, 1, 2)
    assert evenly(5, 0, place=place) == ()
    assert evenly(0, 5, place=place) == ()


@pytest.mark.parametrize("place", ["start", "middle", "ends"])
@pytest.mark.parametrize(("length", "count"), [(32, 31), (33, 32), (1000, 7), (101, 100)])
def test_no_index_comes_twice(length: int, count: int, place: Place) -> None:
    found = evenly(length, count, place=place)
    assert len(set(found)) == count
    assert 0 <= found[0] <= found[-1] < length
    assert list(found) == sorted(found)
