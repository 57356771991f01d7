"""A state file: every damaged byte is noticed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lrtflite.errors import DamagedState, StateError
from lrtflite.state_file import State, read_state, write_state


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="got nothing"):
        read_state(tmp_path / "state-00000000.npz")


def test_any_flipped_bit_is_damage_and_nothing_else(tmp_path: Path) -> None:
    """Damaged headers count too: zipfile raises several errors for them."""
    state = State({"head/past": np.arange(3.0), "memory/slots": np.arange(4)}, {"labels": ["a"]})
    path = tmp_path / "state-00000000.npz"
    write_state(path, state)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    damaged = 0
    for place in range(len(whole)):
        content = bytearray(whole)
        content[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(content)
        try:
            found = read_state(path)
        except DamagedState:
            damaged += 1
        else:
            # The bit was in a field that no reader uses, such as the time.
            assert found.meta == state.meta
            for name, values in state.arrays.items():
                np.testing.assert_array_equal(found.arrays[name], values)
    assert damaged > len(whole) / 2
