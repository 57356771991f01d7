"""OpenLORIS-object (She et al., 2020), the paper's second benchmark: `openloris:PATH`."""

from __future__ import annotations

from lrtflite.data.openloris.source import OpenLorisSource

__all__ = ["OpenLorisSource"]
