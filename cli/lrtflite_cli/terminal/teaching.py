"""The output of `lrtflite teach`, as text and as JSON."""

from __future__ import annotations

import json
import shlex
from collections.abc import Collection
from dataclasses import asdict
from typing import TYPE_CHECKING

from lrtflite.counted import classes_text, counted

if TYPE_CHECKING:
    from lrtflite.workbench.teaching import TeachingReport

# Held-out accuracy below which a class is listed as weak.
WEAK = 0.8


def taught_as_text(taught: TeachingReport, dataset: str, *, untested: Collection[str]) -> str:
    """Return a few lines for a terminal; `untested` classes were learned before."""
    from lrtflite.workbench.unknown import unknown_line

    report, path = taught.report, taught.bundle.path
    classes = classes_text(len(report.labels))
    lines = [
        f"{path}: taught {classes} from {counted(report.frames, 'frame')} in "
        f"{report.ready_to_committed_ms / 1e3:.2g} s; ships {counted(taught.latents, 'latent')}",
        f"held-out accuracy {taught.accuracy:.1%} of {counted(taught.held_out, 'frame')}"
        f"{_tested(taught)}"
        if taught.held_out
        else "no held-out frames, so its accuracy is unknown",
    ]
    if untested:
        lines.append(
            f"not tested: {classes_text(len(untested))} learned before, which {dataset} lacks"
        )
    weak = {name: share for name, share in taught.by_class.items() if share < WEAK}
    if weak:
        named = ", ".join(f"{name} {share:.0%}" for name, share in sorted(weak.items()))
        lines.append(f"below {WEAK:.0%}: {named}; more frames, from more sides, may help")
    if taught.by_class and not weak:
        weakest = min(taught.by_class, key=lambda name: taught.by_class[name])
        if taught.by_class[weakest] < 1:
            lines.append(f"weakest: {weakest} {taught.by_class[weakest]:.0%}")
    if taught.evaluation is not None and taught.evaluation.unknown is not None:
        lines.append(unknown_line(taught.evaluation.unknown))
    verify = shlex.join(["lrtflite", "verify", str(path)])
    later = shlex.join(["lrtflite", "simulate", str(path), "--dataset", dataset])
    return "\n".join([*lines, f"next: {verify}; with new classes added: {later}"])


def _tested(taught: TeachingReport) -> str:
    """Return a remark if the learner that was tested is not the one that ships."""
    return ", before it was taught these too" if taught.everything else ""


def taught_as_json(taught: TeachingReport, skipped: tuple[str, ...]) -> str:
    """Return the result as JSON; `skipped` files were left out."""
    found = taught.evaluation
    unknown = None if found is None or found.unknown is None else asdict(found.unknown)
    record = {
        "bundle": str(taught.bundle.path),
        "classes": taught.report.labels,
        "frames": taught.report.frames,
        "steps": taught.report.steps,
        "loss": taught.report.loss,
        "session_ms": taught.report.ready_to_committed_ms,
        # Without test frames the accuracy is NaN, which JSON lacks.
        "held_out_accuracy": taught.accuracy if taught.held_out else None,
        "held_out_frames": taught.held_out,
        "by_class": taught.by_class,
        "unknown": unknown,
        "taught_held_out_frames": taught.everything,
        "replay_patterns": taught.latents,
        "skipped_files": skipped,
    }
    return json.dumps(record, indent=2)
