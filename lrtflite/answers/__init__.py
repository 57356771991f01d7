"""Answers for one frame, and settled answers for several."""
