"""Advice for users of a bundle whose way of teaching does not suit its replay layer."""

from __future__ import annotations

from lrtflite.manifest import Manifest

# Classes that a trunk wants in its first session. Taught one by one from nothing, it bends towards
# each newest class (docs/studies/one-by-one.md).
ENOUGH = 10


def few_classes(manifest: Manifest, *, known: int, coming: int) -> str | None:
    """Say so if a trunk would learn its first classes a few at a time; None if all is well."""
    if not manifest.trains_trunk or known or coming >= ENOUGH or manifest.slots < ENOUGH:
        return None
    return (
        f"All above {manifest.replay_layer} trains, and the first session has {coming} "
        f"class{'es' * (coming != 1)}: taught a few at a time from nothing, such a bundle "
        f"recognises less than one that trains its last layer only. Teach {ENOUGH} or more classes "
        "first (`lrtflite teach`), or convert with the default replay layer."
    )
