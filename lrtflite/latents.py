"""What a client hands over as latents."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lrtflite.errors import InputError


def check_latents(latents: ArrayLike, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Latents (n, *shape) float32 as an array, or an error that says what is wrong with them."""
    try:
        checked = np.asarray(latents)
    except ValueError as error:
        raise InputError(f"Expected latents as one array, got rows that differ: {error}") from error
    if checked.shape[1:] != shape or checked.dtype != np.float32 or not len(checked):
        expected = ", ".join(map(str, ("n", *shape)))
        raise InputError(
            f"Expected latents ({expected}) of float32 with n of at least 1, "
            f"got {checked.shape} of {checked.dtype}"
        )
    if not np.isfinite(checked).all():
        raise InputError("Expected finite latents, got NaN or infinity in them")
    return checked
