"""The labels of a bundle's class slots."""

from __future__ import annotations

from collections.abc import Sequence

from lrtflite.errors import ModelError
from lrtflite.labels import check_label
from lrtflite_converters.request.options import Conversion

# Free slots next to labelled ones: the number that the paper's app adds to its ten classes.
FREE_SLOTS = 5
# Slots without labels.
DEFAULT_SLOTS = 50


def slot_labels(options: Conversion, learned: Sequence[str]) -> tuple[str | None, ...]:
    """Return the label of each slot; `learned` are the labels that the network knows already."""
    labels = [check_label(label) for label in options.labels or learned]
    slots = options.classes or (len(labels) + FREE_SLOTS if labels else DEFAULT_SLOTS)
    if len(labels) > slots:
        raise ModelError(
            f"Expected at least {len(labels)} classes for the labels, got {slots}",
            "give more --classes",
        )
    if len(learned) > len(labels):
        raise ModelError(
            f"Expected labels for the {len(learned)} classes that the model has learned, "
            f"got {len(labels)}",
            "name all of them, or leave --labels out",
        )
    return (*labels, *[None] * (slots - len(labels)))
