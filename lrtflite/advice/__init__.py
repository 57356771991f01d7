"""Advice: confusions and faulty pictures, turned into actions."""

from __future__ import annotations

from lrtflite.advice.diagnose import confusions, diagnose
from lrtflite.advice.findings import Action, Findings
from lrtflite.advice.looking import Shown, shown_by, shown_kept

__all__ = ["Action", "Findings", "Shown", "confusions", "diagnose", "shown_by", "shown_kept"]
