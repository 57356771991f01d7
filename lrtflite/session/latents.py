"""Check the latents that a client hands over."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lrtflite.bundle.manifest import Manifest
from lrtflite.errors import InputError

# Largest overshoot of a latent from rounding, relative to the size of the range.
ROUNDING = 1e-3


def check_latents(latents: ArrayLike, manifest: Manifest) -> NDArray[Any]:
    """Return latents (n, *latent_shape) as an array, or raise InputError.

    A single latent far outside the range of the replay layer would ruin the head permanently,
    because every weight moves in proportion to the latent.
    """
    try:
        checked = np.asarray(latents)
    except ValueError as error:
        raise InputError(
            f"Expected latents as one array, got rows that differ: {error}",
            "take them from `extract`",
        ) from error
    shape, dtype = manifest.latent_shape, manifest.latent_dtype
    if checked.shape[1:] != shape or checked.dtype != dtype or not len(checked):
        expected = ", ".join(map(str, ("n", *shape)))
        raise InputError(
            f"Expected latents ({expected}) of {dtype} with n of at least 1, "
            f"got {checked.shape} of {checked.dtype}",
            "take them from `extract`",
        )
    if checked.dtype.kind == "f":
        low, high = manifest.latent_range
        margin = ROUNDING * (high - low)
        # NaN fails too.
        if low - margin <= checked.min() and checked.max() <= high + margin:
            return checked
        for row, latent in enumerate(checked):
            if not (low - margin <= latent.min() and latent.max() <= high + margin):
                raise InputError(
                    f"Expected latents from {low:g} to {high:g}, the range of "
                    f"{manifest.replay_layer}, got {_outside(latent, low, high)} in latent {row}",
                    "take them from `extract`",
                )
    return checked


def _outside(latent: NDArray[Any], low: float, high: float) -> str:
    """Return the value farthest from the middle of the range, or NaN if there is one."""
    if np.isnan(latent).any():
        return "NaN"
    flat = latent.reshape(-1)
    return f"{flat[np.abs(flat - (low + high) / 2).argmax()]:g}"
