"""CORe50-like videos that numpy draws: the data sets `synthetic` and `synthetic-backbone`."""

from __future__ import annotations

from lrtflite.data.synthetic.source import SyntheticSource, draw_world

__all__ = ["SyntheticSource", "draw_world"]
