"""Sessions with one class alone: the trunk rests and the last layer learns."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import tf_keras as keras

from cwr_reference import softmax
from keras_reference import extracted, small_network
from lrtflite.host.network import Network
from lrtflite_converters.blocks.split import blocks_above
from lrtflite_converters.heads.cwr import CwrHead
from lrtflite_converters.heads.head import HeadPlan
from lrtflite_converters.training.trunk import Trunk
from trunk_head import SLOTS, begin, make_head, scalars, trunk_state

LAYER, BATCH = "conv5_6/dw", 6
# Limits that clip nothing, so that Batch Renorm gives the same output as inference.
WIDE = 1e6
RATES = {
    "lr": 0.02,
    "trunk_lr": 0.01,
    "momentum": 0.9,
    "weight_decay": 0.01,
    "moment_rate": 0.05,
    "r_max": WIDE,
    "d_max": WIDE,
}


@cache
def network() -> Network:
    return small_network(seed=0, input_size=48)


def head_at(replay_layer: str, *, moments_adapt: bool) -> CwrHead:
    trunk = Trunk(blocks_above(network(), replay_layer, train_depthwise=True))
    return CwrHead(
        HeadPlan(slots=SLOTS, batch_size=BATCH, trunk=trunk, moments_adapt=moments_adapt)
    )


@pytest.mark.parametrize(
    ("replay_layer", "moments_adapt", "with_two"),
    [(LAYER, False, 1), (LAYER, True, 1), ("pool6", False, 0), ("pool6", True, 1)],
)
def test_begin_says_whether_more_than_the_last_layer_learns(
    replay_layer: str, moments_adapt: bool, with_two: int
) -> None:
    head = head_at(replay_layer, moments_adapt=moments_adapt)
    assert begin(head, classes=1) == 0
    assert begin(head, classes=2) == with_two
    assert begin(head, classes=SLOTS) == with_two
    # Also after a session with more classes. The number of classes counts, not that of patterns.
    many = np.array([0, 500, 0, 0], np.float32)
    rates = scalars(head, {"head_start": 1.0, "rest_below": 2.0}, "begin")
    again = head.run("begin", counts=many, **rates)
    np.testing.assert_array_equal(again["trains"], [0])


def test_the_number_of_classes_below_which_it_rests_is_a_rate() -> None:
    head = head_at(LAYER, moments_adapt=False)
    two = np.array([1, 500, 0, 0], np.float32)
    for rest_below, trains in ((0, 1), (1, 1), (2, 1), (3, 0), (50, 0)):
        rates = scalars(head, {"head_start": 1.0, "rest_below": rest_below}, "begin")
        assert head.run("begin", counts=two, **rates)["trains"].item() == trains, rest_below


def test_a_cheaper_step_is_there_where_a_trunk_can_rest() -> None:
    assert "train_last" in head_at(LAYER, moments_adapt=False).signatures
    for adapt in (False, True):
        assert "train_last" not in head_at("pool6", moments_adapt=adapt).signatures


def batch() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    frames = rng.integers(0, 256, (BATCH, 48, 48, 3)).astype(np.uint8)
    targets = np.zeros((BATCH, SLOTS), np.float32)
    targets[:, 0] = 1
    return extracted(network(), LAYER, frames), targets


def run_steps(head: CwrHead, signature: str, steps: int) -> np.ndarray:
    latents, targets = batch()
    rates = scalars(head, RATES, signature)
    begin(head, classes=1)
    for _ in range(steps):
        head.run(signature, latents=latents, targets=targets, **rates)
    return head.tw.numpy()


def last_layer_by_numpy(head: CwrHead, steps: int) -> np.ndarray:
    """Run SGD in float64 on the features that Keras infers."""
    latents, targets = batch()
    pooled = keras.Model(network().layer(LAYER).output, network().layer("pool6").output)
    x = pooled(latents).numpy().astype(float)
    tw = np.zeros(head.cw.shape)
    tw[0] = head.cw.numpy()[0]  # the one class of the session
    velocity = np.zeros(tw.shape)
    for _ in range(steps):
        gradient = (softmax(x @ tw.T) - targets).T @ x / BATCH + RATES["weight_decay"] * tw
        velocity = RATES["momentum"] * velocity + gradient
        tw = tw - RATES["lr"] * velocity
    return tw


def test_with_one_class_every_step_moves_the_last_layer_alone() -> None:
    heads = {
        name: make_head(network(), LAYER, batch_size=BATCH) for name in ("train", "train_last")
    }
    for signature, head in heads.items():
        before = trunk_state(head)
        state = {"cw": head.cw.numpy(), "past": head.past.numpy()}
        found = run_steps(head, signature, steps=3)
        for name, value in trunk_state(head).items():
            np.testing.assert_array_equal(value, before[name], err_msg=name)
        np.testing.assert_array_equal(head.cw.numpy(), state["cw"])
        np.testing.assert_array_equal(head.past.numpy(), state["past"])
        expected = last_layer_by_numpy(head, steps=3)
        started = np.zeros(expected.shape)
        started[0] = state["cw"][0]
        assert np.abs(expected - started).max() > 1e-3
        # Features through six layers of random weights, which amplify rounding.
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-5)


def test_a_trunk_that_rested_trains_in_the_next_session() -> None:
    head = make_head(network(), LAYER, batch_size=BATCH)
    run_steps(head, "train", steps=2)
    before = trunk_state(head)
    latents, targets = batch()
    begin(head, classes=2)
    head.run("train", latents=latents, targets=targets, **scalars(head, RATES))
    moved = {n for n, v in trunk_state(head).items() if not np.array_equal(v, before[n])}
    assert moved == set(before)
