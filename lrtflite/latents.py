"""What a client hands over as latents."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lrtflite.errors import InputError


def check_latents(latents: ArrayLike, shape: tuple[int, ...], dtype: str) -> NDArray[Any]:
    """Latents (n, *shape) of `dtype` as an array, or an error that says what is wrong with them."""
    try:
        checked = np.asarray(latents)
    except ValueError as error:
        raise InputError(f"Expected latents as one array, got rows that differ: {error}") from error
    if checked.shape[1:] != shape or checked.dtype != dtype or not len(checked):
        expected = ", ".join(map(str, ("n", *shape)))
        raise InputError(
            f"Expected latents ({expected}) of {dtype} with n of at least 1, "
            f"got {checked.shape} of {checked.dtype}"
        )
    # One at a time: the answer for all of them at once would be a large array too.
    if checked.dtype.kind == "f" and not all(np.isfinite(latent).all() for latent in checked):
        raise InputError("Expected finite latents, got NaN or infinity in them")
    return checked
