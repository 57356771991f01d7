"""The shape families of the drawn worlds: none is in both tables, and each fits its sheet."""

from __future__ import annotations

import numpy as np

from lrtflite.data import open_source
from lrtflite.data.synthetic.backbone_families import BACKBONE
from lrtflite.data.synthetic.objects import SHEET
from lrtflite.data.synthetic.shapes import Family
from lrtflite.data.synthetic.stream_families import STREAM


def overlap(a: np.ndarray, b: np.ndarray) -> float:
    return float((a & b).sum() / (a | b).sum())


def test_the_backbone_never_sees_a_category_of_the_stream() -> None:
    assert not set(STREAM) & set(BACKBONE)
    assert len(BACKBONE) == 40
    ours, theirs = ([mask(family) for family in table.values()] for table in (STREAM, BACKBONE))
    nearest = max(overlap(a, b) for a in ours for b in theirs)
    # No family of one table is a family of the other under a new name.
    assert nearest < 0.85

    backbone = open_source("synthetic-backbone")
    assert len(backbone.classes) == 200
    assert not set(backbone.classes) & set(open_source("synthetic").classes)
    train, test = (
        {clip.name.split("/")[0] for clip in clips}
        for clips in (backbone.train_clips(), backbone.test_clips())
    )
    assert not train & test


def mask(family: Family) -> np.ndarray:
    """Return the area that a family's pieces cover, before an object stretches them."""
    axis = np.linspace(-1, 1, SHEET, dtype=np.float32)
    u, v = np.meshgrid(axis, axis)
    return np.any([piece.distance(u, v) < 0 for piece in family], axis=0)


def test_every_family_fits_its_sheet() -> None:
    for name, family in {**STREAM, **BACKBONE}.items():
        inside = mask(family)
        border = np.concatenate([inside[0], inside[-1], inside[:, 0], inside[:, -1]])
        assert not border.any(), name
        assert 0.05 < inside.mean() < 0.7, name
