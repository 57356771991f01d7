"""Codecs: the form in which the replay memory holds latents, in RAM and in the state on disk.

A codec encodes the latents that `extract` returns, and decodes codes into the latents that `train`
takes. All three can have different dtypes. RAM and disk hold codes. To add a codec, write a class
with the methods of `Codec` and register it in `CODECS`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Protocol

import numpy as np
from numpy.typing import NDArray

from lrtflite.replay.policies import Indices
from lrtflite.tables.table import Table

# Maximum number of latents in any memory; at most layers, the disk is full first.
MAX_PATTERNS = 100_000_000


@dataclass(frozen=True)
class LatentForm:
    """Shape of one latent, and dtypes of latents in the two models."""

    shape: tuple[int, ...]
    extracted: np.dtype[Any]  # dtype from `extract`
    trained: np.dtype[Any]  # dtype for `infer`, `train` and `gather`
    range: tuple[float, float]  # limits, which may be far beyond the values of usual latents
    zero: int = 0  # value that stands for 0, in int8 latents


class Codec(Protocol):
    """A way to turn latents into codes and back; each memory makes one for its latents."""

    shape: tuple[int, ...]  # of one code
    dtype: np.dtype[Any]

    def encode(self, latent: NDArray[Any]) -> NDArray[Any]:
        """Return the code of one latent."""
        ...

    def decode(self, codes: NDArray[Any], rows: Indices, out: NDArray[Any]) -> None:
        """Write the latents of these rows of `codes` into `out` (k, ...), as `train` takes them."""
        ...


class Raw:
    """Keep latents unchanged."""

    def __init__(self, form: LatentForm) -> None:
        self.shape, self.dtype = form.shape, form.extracted

    def encode(self, latent: NDArray[Any]) -> NDArray[Any]:
        return latent

    def decode(self, codes: NDArray[Any], rows: Indices, out: NDArray[Any]) -> None:
        if codes.dtype == out.dtype:
            # With `clip`, numpy writes into `out` without a buffer; all rows are within bounds.
            np.take(codes, rows, axis=0, out=out, mode="clip")
        else:
            out[:] = codes[rows]


CODECS: Table[Callable[[LatentForm], Codec]] = Table("codec", {"raw": Raw})
