"""CORe50 (Lomonaco & Maltoni, 2017) and the NICv2 lists of its authors: `core50:PATH`."""

from __future__ import annotations

from lrtflite.data.core50.source import Core50Lists, Core50Source

__all__ = ["Core50Lists", "Core50Source"]
