"""Frames: pictures of the size that a model takes."""
