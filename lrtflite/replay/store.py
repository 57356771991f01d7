"""Stores: where the rows of a replay memory are held."""

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
        """(n, ...): a view of the rows in use."""
        return self._codes[: self._size]

    @property
    def slots(self) -> SlotArray:
        """(n,) int32: the class slot of each row."""
        return self._slots[: self._size]

    def resize(self, size: int) -> None:
        """Use the first `size` rows; those that are new hold whatever they held before."""
        self._size = size
