"""The demo weights and their limits, for every command that uses them by default."""

from __future__ import annotations

DEMO = "demo"
DEMO_NOTE = (
    "The demo weights have only seen drawn objects; photographs need --weights imagenet or a file"
)


def photographs_on_demo(weights: str, dataset: str) -> bool:
    """Return whether the demo weights would be used on pictures other than drawn ones."""
    return weights == DEMO and not dataset.startswith("synthetic")
