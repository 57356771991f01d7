"""Warnings about options that are allowed but have a cost, one line each on stderr."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lrtflite_cli.terminal.output import say

if TYPE_CHECKING:
    from lrtflite.bundle.manifest import Manifest
    from lrtflite.bundle.quantisation import Quantisation

# Limits below which quantised features get a warning, not fitted to data: features with 24 dB lost
# nothing measurable, and those without corrected biases have 13 dB.
MIN_SNR_DB, MIN_AGREEMENT = 15.0, 0.95
# Calibration frames below which ranges may be too small.
FEW_FRAMES = 32
# Version of the older runtime that bundles support.
OLDEST_RUNTIME = (2, 14, 0)
NO_MEMORY = (
    "Warning: --replay-size 0 keeps no latents to replay, so a learner forgets old classes as it "
    "learns new ones"
)
NO_MIXING = (
    "Warning: --batch-size 1 leaves no room for a replayed latent next to a new one, so a learner "
    "forgets old classes as it learns new ones"
)


def caution(*, replay_size: int | None, batch_size: int | None = None) -> None:
    """Print a warning for each option that makes a learner forget; None means not given."""
    if replay_size == 0:
        say(NO_MEMORY, err=True)
    if batch_size == 1:
        say(NO_MIXING, err=True)


def one_by_one(manifest: Manifest) -> str | None:
    """Return advice for a bundle that loses accuracy if classes are taught one by one."""
    from lrtflite.session.run import ENOUGH, drifts

    if not drifts(manifest):
        return None
    return (
        f"Advice: {manifest.strategy} at {manifest.replay_layer} loses accuracy if things are "
        f"taught one by one from the start; teach {ENOUGH} or more classes first (`lrtflite "
        "teach`), or convert with --strategy lda (docs/studies/one-by-one.md)"
    )


def quantisation_warnings(found: Quantisation) -> list[str]:
    """Return a line for each weakness of quantised features, with what to try."""
    poor = []
    if found.snr_db < MIN_SNR_DB:
        poor.append(f"a signal-to-noise ratio of {found.snr_db:.1f} dB, below {MIN_SNR_DB:g}")
    if found.agreement is not None and found.agreement < MIN_AGREEMENT:
        poor.append(
            f"{100 * found.agreement:.1f} % equal predictions, below {100 * MIN_AGREEMENT:g}"
        )
    warnings = []
    if poor:
        tuning = "" if found.epochs else "--quantize qat, "
        warnings.append(
            f"int8 latents differ from float ones: {'; '.join(poor)}; try {tuning}more "
            "--calibration-frames, pictures like those of the device's camera, or no --quantize"
        )
    if found.frames < FEW_FRAMES:
        warnings.append(
            f"{found.frames} calibration frames are few, and ranges may be too small; "
            f"give at least {FEW_FRAMES}"
        )
    if _version(found.runtime) > OLDEST_RUNTIME:
        oldest = ".".join(map(str, OLDEST_RUNTIME))
        warnings.append(
            f"features.tflite has ops that need TFLite {found.runtime} or later; "
            f"tflite-runtime {oldest} cannot open it"
        )
    return warnings


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part.isdigit())
