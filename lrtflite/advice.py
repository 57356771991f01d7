"""Advice for users who teach a bundle in a way that its replay layer does not handle well."""

from __future__ import annotations

from lrtflite.bundle.feeding import SESSION_AND_MEMORY
from lrtflite.bundle.manifest import Manifest

# Minimum number of classes that a trunk should learn in its first session. A trunk that learns its
# first classes one by one drifts towards the newest one (docs/studies/one-by-one.md).
ENOUGH = 10


def few_classes(manifest: Manifest, *, learned: int, coming: int) -> str | None:
    """Return a warning if a trunk would learn its first classes a few at a time, else None.

    A head that gathers the memory refits its last layer and does not drift
    (docs/studies/trunk.md).
    """
    refits = manifest.feeding.gathers == SESSION_AND_MEMORY
    if not manifest.trains_trunk or refits:
        return None
    if learned or coming >= ENOUGH or manifest.slots < ENOUGH:
        return None
    return (
        f"Every layer above {manifest.replay_layer} trains, and the first session has {coming} "
        f"class{'es' * (coming != 1)}: taught a few classes at a time from the start, such a "
        f"bundle is less accurate than one that trains its last layer only. Teach {ENOUGH} or more "
        "classes first (`lrtflite teach`), or convert with the default replay layer."
    )
