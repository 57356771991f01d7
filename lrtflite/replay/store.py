"""Stores: arrays that hold the rows of a replay memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrtflite.errors import InputError
from lrtflite.replay.policies import SlotArray


class RamStore:
    """Codes with their class slots, row by row, in arrays allocated once."""

    def __init__(self, capacity: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.capacity = capacity
        try:
            self._codes: NDArray[Any] = np.empty((capacity, *shape), dtype)
        except MemoryError as error:
            raise InputError(
                f"Expected RAM for {capacity} latents, got too little: {error}; "
                "give a smaller replay_size"
            ) from error
        self._slots = np.empty(capacity, np.int32)
        self._size = 0

    def __len__(self) -> int:
        return self._size

    @property
    def codes(self) -> NDArray[Any]:
        """Return a view of the codes in use, (n, ...)."""
        return self._codes[: self._size]

    @property
    def slots(self) -> SlotArray:
        """Return the class slot of each row in use, (n,) int32."""
        return self._slots[: self._size]

    def resize(self, size: int) -> None:
        """Use the first `size` rows; added rows keep the content they had before."""
        self._size = size
