"""Codecs: the form in which the replay memory holds latents, in RAM and in the state on disk.

Three things have a dtype of their own: the latents that `extract` gives, the latents that `train`
takes, and the code that the codec makes of the one and turns into the other. RAM and disk hold
codes. To add a codec, write a class with the methods of `Codec` and register it in `CODECS`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Protocol

import numpy as np
from numpy.typing import NDArray

from lrtflite.replay.policies import Indices
from lrtflite.table import Table


@dataclass(frozen=True)
class LatentForm:
    """Latents as the two models know them: shape of one, and the dtypes on both sides."""

    shape: tuple[int, ...]
    extracted: np.dtype[Any]  # what `extract` gives
    trained: np.dtype[Any]  # what `infer`, `train` and `gather` take
    range: tuple[float, float]  # least and greatest value


class Codec(Protocol):
    """Turns latents into codes and back, made for each memory from the bundle's form."""

    shape: tuple[int, ...]  # of one code
    dtype: np.dtype[Any]

    def encode(self, latent: NDArray[Any]) -> NDArray[Any]:
        """Return the code of one latent."""
        ...

    def decode(self, codes: NDArray[Any], rows: Indices, out: NDArray[Any]) -> None:
        """Write the latents of these rows of `codes` into `out` (k, ...), as `train` takes them."""
        ...


class Raw:
    """Keep latents as they are."""

    def __init__(self, form: LatentForm) -> None:
        self.shape, self.dtype = form.shape, form.extracted

    def encode(self, latent: NDArray[Any]) -> NDArray[Any]:
        return latent

    def decode(self, codes: NDArray[Any], rows: Indices, out: NDArray[Any]) -> None:
        if codes.dtype == out.dtype:
            # `clip` lets numpy write into `out` without a buffer; rows are within bounds.
            np.take(codes, rows, axis=0, out=out, mode="clip")
        else:
            out[:] = codes[rows]


CODECS: Table[Callable[[LatentForm], Codec]] = Table("codec", {"raw": Raw})
