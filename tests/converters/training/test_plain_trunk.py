"""EWC and LwF above a trunk that trains, against Keras and autodiff."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import tensorflow as tf

from keras_reference import KerasReference, extracted, small_network
from lrtflite.host.network import Network
from lrtflite_converters.blocks.split import blocks_above
from lrtflite_converters.heads import HEADS
from lrtflite_converters.heads.head import Head, HeadPlan
from lrtflite_converters.training.regularisers import REGULARISERS
from lrtflite_converters.training.trunk import Trunk
from strategy_head import Array, fed, run_session, saved

LAYER, SLOTS, BATCH = "conv5_6/dw", 4, 8
RATES = {
    "lr": 0.02,
    "trunk_lr": 0.01,
    "momentum": 0.9,
    "weight_decay": 0.0,
    "moment_rate": 0.05,
    "r_max": 3.0,
    "d_max": 5.0,
    "rest_below": 1.0,
    "penalty": 0.0,
    "importance_rate": 1.0,
    "max_f": 1e9,
    "distil_most": 0.9,
}
COUNTS = np.array([8, 8, 8, 0], "f")


@cache
def network() -> Network:
    return small_network(seed=0, input_size=32)


def make_head(kind: str, regulariser: str = "none") -> Head:
    trunk = Trunk(blocks_above(network(), LAYER, train_depthwise=True))
    guard = REGULARISERS.choose(regulariser)()
    return HEADS.choose(kind)(HeadPlan(SLOTS, BATCH, trunk, regulariser=guard))


@cache
def batch(seed: int, filled: int = BATCH) -> tuple[Array, Array]:
    """Return a mini-batch of classes 0, 1 and 2, whose last places are empty."""
    rng = np.random.default_rng(seed)
    frames = rng.integers(0, 256, (BATCH, 32, 32, 3)).astype(np.uint8)
    latents, targets = extracted(network(), LAYER, frames), np.eye(SLOTS, dtype="f")
    targets = targets[rng.integers(0, 3, BATCH)]
    latents[filled:], targets[filled:] = 0, 0
    return latents, targets


def keras_trunk(state: dict[str, Array], weights: Array) -> KerasReference:
    """Return the trunk of a state in Keras, in inference mode once it is called so."""
    # A network of its own: the values of the state replace those of the conversion.
    reference = KerasReference(small_network(seed=0, input_size=32), LAYER, weights)
    for name, variable in reference.trained().items():
        if name != "tw":
            variable.assign(state[name].reshape(variable.shape))
    for name, (_, norm) in reference.units.items():
        norm.moving_mean.assign(state[f"{name}_mean"])
        norm.moving_variance.assign(state[f"{name}_variance"])
    return reference


def test_fisher_information_of_a_trunk_is_autodiffs() -> None:
    head = make_head("plain", "ewc")
    gathered = [batch(11), batch(12, filled=5)]
    run_session(head, COUNTS, [batch(1), batch(2)], gathered, RATES)
    state = saved(head)
    reference = keras_trunk(state, state["weights"])
    variables = reference.trained()
    squares: dict[str, list[Array]] = {name: [] for name in variables}
    for latents, targets in gathered:
        rows = targets.sum(1) > 0
        with tf.GradientTape() as tape:
            features = reference.above(latents[rows], training=False)
            scores = tf.matmul(features, reference.tw, transpose_b=True)[:, :3]  # open classes
            losses = tf.nn.softmax_cross_entropy_with_logits(targets[rows][:, :3], scores)
            loss = tf.reduce_mean(losses)
        for name, gradient in tape.gradient(loss, variables).items():
            squares[name].append(gradient.numpy() ** 2)
    assert len(variables) == 10
    for name, values in squares.items():
        expected = np.mean(values, axis=0)
        found = state[f"{'weights' if name == 'tw' else name}_fisher"]
        assert expected.max() > 0, name
        np.testing.assert_allclose(
            found.reshape(expected.shape), expected, rtol=2e-2, atol=1e-3 * expected.max()
        )


def test_the_teacher_of_lwf_is_the_trunk_before_the_session() -> None:
    head = make_head("lwf")
    run_session(head, COUNTS, [batch(1), batch(2)], (), RATES)
    before = saved(head)
    head.run("begin", counts=COUNTS, **fed(head, "begin", RATES))
    # Steps move the trunk and its moments; the targets of the last one must not follow.
    for seed in (3, 4, 5):
        latents, targets = batch(seed)
        head.run("train", latents=latents, targets=targets, **fed(head, "train", RATES))
    moved = saved(head)
    assert any(not np.array_equal(moved[name], before[name]) for name in head.trunk.state)
    latents, targets = batch(6)
    outcome = head.run(
        "train_last", latents=latents, targets=targets, **fed(head, "train_last", RATES)
    )
    teacher = keras_trunk(before, before["weights"])
    old = teacher.above(latents, training=False).numpy() @ before["weights"][:3].T
    answers = np.pad(tf.nn.softmax(old).numpy(), ((0, 0), (0, 1)))
    share = 24 / (24 + 24)  # as many patterns before the session as in it
    wanted = (1 - share) * targets + share * answers
    now = keras_trunk(moved, moved["weights"])
    scores = now.above(latents, training=False).numpy() @ moved["weights"][:3].T
    expected = -(wanted[:, :3] * tf.nn.log_softmax(scores).numpy()).sum(1).mean()
    assert outcome["loss"].item() == pytest.approx(expected, rel=1e-4)
    # The teacher does not answer, and is not part of the state.
    assert not any("teacher" in name for name in moved)
