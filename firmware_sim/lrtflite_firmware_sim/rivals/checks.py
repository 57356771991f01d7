"""Checks of a run with a rival, before any work."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from lrtflite.bundle.manifest import Manifest
from lrtflite.errors import InputError
from lrtflite.options import LearnerOptions
from lrtflite_firmware_sim.rivals import RIVALS


def check_rival_options(
    name: str, learner: LearnerOptions, rates: Mapping[str, float], *, diagnose: bool
) -> None:
    """Raise InputError for an unknown rival, or for an option that has no effect on it."""
    rival = RIVALS.choose(name)
    refused: list[tuple[str, str]] = []
    if learner.policy is not None:
        refused.append((f"--policy {learner.policy}", f"has its own ({rival.policy})"))
    if learner.replay_size is not None and not rival.has_capacity:
        refused.append((f"--replay-size {learner.replay_size}", "keeps every latent"))
    if rates and rival.training(1) is None:
        refused.append((f"rates ({', '.join(rates)})", "does not train"))
    if diagnose:
        refused.append(("--diagnose", "cannot explain its answers"))
    for option, reason in refused:
        raise InputError(
            f"Expected only options that apply to the rival {name}, which {reason}, got {option}",
            "leave it out",
        )


def check_rival_bundle(name: str, manifest: Manifest, known: Collection[str]) -> None:
    """Raise InputError unless the rival can replace the head of this bundle."""
    if manifest.trains_trunk or len(manifest.latent_shape) != 1:
        shape = " x ".join(map(str, manifest.latent_shape))
        raise InputError(
            f"Expected a bundle whose latents are vectors and whose head has no trunk for the "
            f"rival {name}, got latents of {shape} at {manifest.replay_layer}",
            "convert one with --pooled, or without --replay-layer",
        )
    if manifest.adapt_moments:
        raise InputError(
            f"Expected a bundle with frozen features for the rival {name}, got one whose moments "
            "adapt",
            "convert one without --adapt-moments",
        )
    if known:
        raise InputError(
            f"Expected a bundle without classes for the rival {name}, which starts from "
            f"nothing, got one that knows {len(known)}",
            "use the bundle from before it was taught",
        )


def check_rival_memory(name: str, capacity: int, classes: Sequence[int]) -> None:
    """Raise InputError if the memory is too small for a stream, given the classes per session."""
    least = RIVALS.choose(name).least_capacity(classes)
    if capacity < least:
        raise InputError(
            f"Expected a replay size of at least {least} for the rival {name}, a latent for each "
            f"class in each of {len(classes)} sessions, got {capacity}",
            "give a larger --replay-size",
        )
