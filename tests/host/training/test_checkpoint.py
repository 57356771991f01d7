"""Checkpoints of another network, and hostile ones, are refused before they change anything."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from lrtflite.errors import ModelError
from lrtflite.host.training.checkpoint import (
    TrainState,
    check_identity,
    load_checkpoint,
    save_checkpoint,
)
from lrtflite.host.training.loop import restore

GOOD = np.ones((2, 3), np.float32)


@pytest.mark.parametrize(
    "values",
    [[], [GOOD], [GOOD, GOOD.T], [GOOD, GOOD.astype(np.float64)], [GOOD, GOOD, GOOD]],
)
def test_weights_of_another_network_change_nothing(values: list[np.ndarray]) -> None:
    variables = [tf.Variable(tf.zeros((2, 3))) for _ in range(2)]
    with pytest.raises(ModelError, match="start again without --resume"):
        restore(variables, values)
    for variable in variables:
        np.testing.assert_array_equal(variable, np.zeros((2, 3)))


def test_a_checkpoint_comes_back_bit_by_bit(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    state = TrainState(step=3, loss_sum=0.1 + 0.2, hits=7, identity={"lr": 0.1})
    state.weights = [rng.normal(size=(3, 4)).astype(np.float32), np.array(0.25, np.float32)]
    state.velocities = [np.asfortranarray(rng.normal(size=(4, 5)).astype(np.float32))]
    save_checkpoint(state, tmp_path / "m.keras.checkpoint.npz")
    found = load_checkpoint(tmp_path / "m.keras.checkpoint.npz")
    assert (found.step, found.loss_sum, found.hits, found.identity) == (
        3,
        0.1 + 0.2,
        7,
        {"lr": 0.1},
    )
    pairs = [*zip(found.weights, state.weights), *zip(found.velocities, state.velocities)]
    assert len(pairs) == 3
    for one, other in pairs:
        assert one.dtype == np.float32
        np.testing.assert_array_equal(one, other)


def test_other_options_are_shown_on_one_short_line(tmp_path: Path) -> None:
    state = TrainState(identity={"lr": "\x1b[31m" + "x" * 10_000 + "\n"})
    with pytest.raises(ModelError, match="Expected lr ") as caught:
        check_identity(state, {"lr": 0.1}, tmp_path)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 400
