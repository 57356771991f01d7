"""Synaptic Intelligence against numpy, written from the formulas of the article and the paper."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from keras_reference import extracted, small_network
from lrtflite.contract.signatures import ZERO
from lrtflite.host.network import Network
from lrtflite_converters.heads.cwr import CwrHead
from lrtflite_converters.training.parameter import Parameter, Sgd
from lrtflite_converters.training.regularisers.regulariser import Regulariser
from lrtflite_converters.training.regularisers.synaptic import XI, SynapticIntelligence
from trunk_head import SLOTS, begin, make_head, scalars, trunk_state

LR, MOMENTUM, DECAY = 0.1, 0.9, 0.01
MAX_F, W = 2.0, 0.5


def numpy_sessions(
    start: np.ndarray, sessions: list[np.ndarray], *, protection: float, penalty: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the weights and C after sessions of given gradients (steps, ...), in float64."""
    theta, importance = start.astype(float), np.zeros(start.shape)
    for gradients in sessions:
        before, velocity, way = theta.copy(), np.zeros(theta.shape), np.zeros(theta.shape)
        f = np.clip(-importance, 0, MAX_F)
        for gradient in gradients.astype(float):
            total = gradient + penalty * f * (theta - before) + DECAY * theta
            velocity = MOMENTUM * velocity + total
            new = theta - (1 - protection * f / MAX_F) * LR * velocity
            way += gradient * (new - theta)
            theta = new
        importance = importance + W * way / ((theta - before) ** 2 + XI)
    return theta, importance


@pytest.mark.parametrize(("protection", "penalty"), [(1.0, 0.0), (0.0, 3.0), (0.5, 2.0)])
def test_three_sessions_against_numpy(protection: float, penalty: float) -> None:
    rng = np.random.default_rng(0)
    start = rng.normal(size=(4, 3)).astype("f")
    sessions = [rng.normal(0, 0.1, (5, 4, 3)).astype("f") for _ in range(3)]
    parameter = Parameter("kernel", tf.Variable(start), decays=True)
    guard = SynapticIntelligence()
    guard.protect([parameter])
    rates = {"protection": protection, "penalty": penalty, "max_f": MAX_F, "importance_rate": W}
    sgd, given = Sgd(LR, MOMENTUM, DECAY), {n: tf.constant(v) for n, v in rates.items()}
    for gradients in sessions:
        parameter.begin(tf.zeros([]))
        guard.begin(tf.zeros([]))
        for gradient in gradients:
            value = tf.convert_to_tensor(parameter.variable)
            parameter.step(value, tf.constant(gradient), sgd, guard, given)
        guard.consolidate(given)
    theta, importance = numpy_sessions(start, sessions, protection=protection, penalty=penalty)
    np.testing.assert_allclose(parameter.variable.numpy(), theta, rtol=1e-4, atol=1e-6)
    found = guard.state["kernel_importance"].numpy()
    np.testing.assert_allclose(found, importance, rtol=1e-2, atol=1e-3)
    # The case is not trivial: in the third session some weights are protected fully, some in part.
    _, earlier = numpy_sessions(start, sessions[:2], protection=protection, penalty=penalty)
    assert (-earlier >= MAX_F).any()
    assert ((-earlier > 0) & (-earlier < MAX_F)).any()


def test_gamma_and_beta_are_free() -> None:
    free = Parameter("gamma", tf.Variable(tf.ones(3)), decays=False)
    guard = SynapticIntelligence()
    guard.protect([free])
    assert guard.state == {}
    update = tf.constant([1.0, 2.0, 3.0])
    assert guard.update(free, update, {}) is update
    assert guard.gradient(free, update, update, {}) is update


LAYER, BATCH = "conv5_6/dw", 8
RATES = {
    "lr": 0.02,
    "trunk_lr": 0.01,
    "momentum": 0.9,
    "weight_decay": 0.0,
    "moment_rate": 0.0,
    "r_max": 3.0,
    "d_max": 5.0,
    "max_f": 1e-3,
    "protection": 1.0,
    "penalty": 0.0,
    "importance_rate": 0.5,
}


@cache
def network() -> Network:
    return small_network(seed=0, input_size=32)


def batch(seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    frames = rng.integers(0, 256, (BATCH, 32, 32, 3)).astype(np.uint8)
    targets = np.eye(SLOTS, dtype="f")[rng.integers(0, SLOTS, BATCH)]
    return {"latents": extracted(network(), LAYER, frames), "targets": targets}


def session(head: CwrHead, seed: int, steps: int = 4, **rates: float) -> None:
    given = {**RATES, **rates}
    begin(head)
    for step in range(steps):
        head.run("train", **batch(10 * seed + step), **scalars(head, given))
    counts = np.full(SLOTS, BATCH, np.float32)
    head.run("consolidate", counts=counts, **scalars(head, given, "consolidate"))


def test_ar1_moves_protected_weights_less_than_ar1free() -> None:
    free = make_head(network(), LAYER, batch_size=BATCH, regulariser=Regulariser())
    guarded = make_head(network(), LAYER, batch_size=BATCH, regulariser=SynapticIntelligence())
    for head in (free, guarded):
        session(head, seed=1)
    # Nothing is important in the first session, so both end it with the same weights.
    between = trunk_state(free)
    for name, value in trunk_state(guarded).items():
        np.testing.assert_allclose(value, between[name], rtol=1e-5, atol=1e-6, err_msg=name)
    saved = guarded.run("save", zero=ZERO)
    for head in (free, guarded):
        session(head, seed=2)
    kernels = [name for name in between if name.endswith("_kernel")]
    assert len(kernels) == 3
    for name in kernels:
        f = np.clip(-saved[f"{name}_importance"], 0, RATES["max_f"])
        full, none = f == RATES["max_f"], f == 0
        assert full.any(), name
        assert none.any(), name
        moved = {
            kind: np.abs(trunk_state(head)[name] - between[name])
            for kind, head in (("free", free), ("guarded", guarded))
        }
        # A fully protected weight does not move at all, an unimportant one moves as before.
        np.testing.assert_array_equal(moved["guarded"][full], 0)
        assert moved["free"][full].mean() > 0
        assert 0.5 < moved["guarded"][none].mean() / moved["free"][none].mean() < 2
        some = f > 0
        assert moved["guarded"][some].mean() < 0.5 * moved["free"][some].mean()


def test_importance_is_kept_in_the_state() -> None:
    head = make_head(network(), LAYER, batch_size=BATCH, regulariser=SynapticIntelligence())
    session(head, seed=1)
    saved = head.run("save", zero=ZERO)
    assert {name for name in saved if name.endswith("_importance")} == {
        f"{name}_importance" for name in trunk_state(head) if name.endswith("_kernel")
    }
    fresh = make_head(network(), LAYER, batch_size=BATCH, regulariser=SynapticIntelligence())
    fresh.run("restore", **saved)
    for each in (head, fresh):
        session(each, seed=2)
    again = fresh.run("save", zero=ZERO)
    for name, value in head.run("save", zero=ZERO).items():
        np.testing.assert_array_equal(again[name], value, err_msg=name)
