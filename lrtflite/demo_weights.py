"""What the demo weights know, for every command that starts from them by default."""

from __future__ import annotations

DEMO = "demo"
DEMO_NOTE = (
    "The demo weights have only seen drawn objects; photographs need --weights imagenet or a file"
)


def photographs_on_demo(weights: str, dataset: str) -> bool:
    """Whether a data set of other pictures than the drawn ones meets the demo weights."""
    return weights == DEMO and not dataset.startswith("synthetic")
