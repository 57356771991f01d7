"""BatchRenorm against the formulas, computed in numpy float64."""

from __future__ import annotations

import doctest
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
import tf_keras as keras
from numpy.typing import NDArray

from lrtflite.errors import ModelError
from lrtflite.host import batch_renorm
from lrtflite.host.batch_renorm import BatchRenorm

Floats = NDArray[np.float64]


class Renorm:
    """The reference, which computes one step and one channel at a time."""

    def __init__(self, channels: int, eps: float = 1e-5) -> None:
        self.gamma, self.beta = np.ones(channels), np.zeros(channels)
        self.mean, self.var, self.eps = np.zeros(channels), np.ones(channels), eps

    def train(self, x: Floats, r_max: float, d_max: float, momentum: float) -> Floats:
        columns = x.reshape(-1, x.shape[-1])
        y = np.empty_like(columns)
        for c in range(columns.shape[1]):
            column = columns[:, c]
            mu_b, sigma_b = column.mean(), np.sqrt(column.var() + self.eps)
            sigma = np.sqrt(self.var[c] + self.eps)
            r = min(max(sigma_b / sigma, 1 / r_max), r_max)
            d = min(max((mu_b - self.mean[c]) / sigma, -d_max), d_max)
            y[:, c] = self.gamma[c] * ((column - mu_b) / sigma_b * r + d) + self.beta[c]
            self.mean[c] = momentum * self.mean[c] + (1 - momentum) * mu_b
            self.var[c] = momentum * self.var[c] + (1 - momentum) * column.var(ddof=1)
        return y.reshape(x.shape)

    def infer(self, x: Floats) -> Floats:
        return self.gamma * (x - self.mean) / np.sqrt(self.var + self.eps) + self.beta


def batches(rng: np.random.Generator, count: int, shape: tuple[int, ...]) -> list[Floats]:
    """Return batches whose mean and scale change, so that r and d reach and leave their limits."""
    return [rng.normal(rng.normal(0, 1), rng.uniform(0.3, 3), shape) for _ in range(count)]


@pytest.mark.parametrize("shape", [(8, 3, 5, 4), (16, 4)])
@pytest.mark.parametrize("compiled", [False, True])
def test_steps_match_a_numpy_derivation(shape: tuple[int, ...], compiled: bool) -> None:
    rng = np.random.default_rng(0)
    oracle = Renorm(4)
    layer = BatchRenorm()
    layer.build(shape)
    oracle.gamma, oracle.beta = rng.uniform(0.5, 2, 4), rng.normal(size=4)
    layer.gamma.assign(oracle.gamma)
    layer.beta.assign(oracle.beta)
    call = tf.function(layer) if compiled else layer
    schedule = [(1.0, 0.0, 0.9), (1.0, 0.0, 0.9), (1.25, 0.5, 0.99), (3.0, 5.0, 0.9)]
    for (r_max, d_max, momentum), x in zip(schedule, batches(rng, 4, shape)):
        layer.set_limits(r_max=r_max, d_max=d_max, momentum=momentum)
        y = call(x.astype(np.float32), training=True)
        np.testing.assert_allclose(y, oracle.train(x, r_max, d_max, momentum), atol=2e-5)
        np.testing.assert_allclose(layer.moving_mean, oracle.mean, atol=1e-5)
        np.testing.assert_allclose(layer.moving_variance, oracle.var, rtol=1e-5)
    x = rng.normal(size=shape)
    np.testing.assert_allclose(
        call(x.astype(np.float32), training=False), oracle.infer(x), atol=2e-5
    )


def test_gradient_stops_at_r_and_d() -> None:
    rng = np.random.default_rng(1)
    x, upstream = rng.normal(0.4, 2, (6, 5, 3)), rng.normal(size=(6, 5, 3))
    layer = BatchRenorm(r_max=1.5, d_max=0.3)
    layer.build(x.shape)
    gamma = np.array([0.5, 1.0, 2.0])
    layer.gamma.assign(gamma)
    layer.moving_mean.assign([0.0, 0.5, -1.0])
    layer.moving_variance.assign([1.0, 4.0, 9.0])

    # By hand, r and d constant: with n = (x - mu_B) / sigma_B,
    # dx = gamma r / sigma_B * (dy - mean(dy) - n mean(dy n)).
    mu_b, sigma_b = x.mean((0, 1)), np.sqrt(x.var((0, 1)) + 1e-5)
    sigma = np.sqrt(np.array([1.0, 4.0, 9.0]) + 1e-5)
    r = np.clip(sigma_b / sigma, 1 / 1.5, 1.5)
    d = np.clip((mu_b - [0.0, 0.5, -1.0]) / sigma, -0.3, 0.3)
    n = (x - mu_b) / sigma_b
    centred = upstream - upstream.mean((0, 1)) - n * (upstream * n).mean((0, 1))

    inputs = tf.constant(x, tf.float32)
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        y = layer(inputs, training=True)
    dx, dgamma, dbeta = tape.gradient(
        y, [inputs, layer.gamma, layer.beta], output_gradients=tf.constant(upstream, tf.float32)
    )
    np.testing.assert_allclose(dx, gamma * r / sigma_b * centred, atol=1e-5)
    np.testing.assert_allclose(dgamma, (upstream * (n * r + d)).sum((0, 1)), rtol=1e-4)
    np.testing.assert_allclose(dbeta, upstream.sum((0, 1)), rtol=1e-4)


def test_without_freedom_it_is_keras_batch_norm() -> None:
    x = np.random.default_rng(2).normal(3, 2, (8, 4, 4, 5)).astype(np.float32)
    ours = BatchRenorm(r_max=1.0, d_max=0.0, momentum=0.9, epsilon=1e-5)
    theirs = keras.layers.BatchNormalization(momentum=0.9, epsilon=1e-5)
    for _ in range(3):
        np.testing.assert_allclose(ours(x, training=True), theirs(x, training=True), atol=1e-5)
    np.testing.assert_allclose(ours.moving_mean, theirs.moving_mean, rtol=1e-5)
    np.testing.assert_allclose(ours.moving_variance, theirs.moving_variance, rtol=1e-4)


def test_frozen_layer_infers_and_stays() -> None:
    x = np.random.default_rng(3).normal(2, 1, (4, 3)).astype(np.float32)
    layer = BatchRenorm()
    layer.build(x.shape)
    layer.trainable = False
    np.testing.assert_array_equal(layer(x, training=True), layer(x, training=False))
    np.testing.assert_array_equal(layer.moving_mean, np.zeros(3))


def test_frozen_layer_can_adapt_its_moments() -> None:
    x = np.random.default_rng(3).normal(2, 1, (4, 3))
    layer = BatchRenorm(adapt_moments=True, momentum=0.5)
    layer.build(x.shape)
    layer.trainable = False
    oracle = Renorm(3)
    y = layer(x.astype(np.float32), training=True)
    np.testing.assert_allclose(y, oracle.train(x, 1.25, 0.5, 0.5), atol=1e-5)
    np.testing.assert_allclose(layer.moving_mean, oracle.mean, atol=1e-6)
    assert layer.trainable_weights == []
    np.testing.assert_array_equal(layer.gamma, np.ones(3))


def test_limits_change_inside_a_compiled_step() -> None:
    layer = BatchRenorm(r_max=1.0, d_max=0.0)
    step = tf.function(lambda x: layer(x, training=True))
    x = np.array([[9.0], [11.0]], np.float32)  # d = 10 before clipping
    plain = step(x)
    layer.moving_mean.assign([0.0])
    layer.moving_variance.assign([1.0])
    layer.set_limits(d_max=4.0)
    np.testing.assert_allclose(step(x) - plain, [[4.0], [4.0]], atol=1e-4)


def test_one_row_keeps_finite_moments() -> None:
    layer = BatchRenorm()
    layer(np.ones((1, 2), np.float32), training=True)
    assert np.isfinite(layer.moving_variance.numpy()).all()


@pytest.mark.parametrize("suffix", ["keras", "h5"])
@pytest.mark.filterwarnings("ignore:You are saving your model as an HDF5 file")  # it is the point
def test_saved_layer_keeps_moments_limits_and_switches(tmp_path: Path, suffix: str) -> None:
    inputs = keras.Input((3,))
    model = keras.Model(inputs, BatchRenorm(adapt_moments=True, epsilon=1e-4, name="a/brn")(inputs))
    layer = model.get_layer("a/brn")
    layer.set_limits(r_max=2.5, d_max=1.5, momentum=0.75)
    layer.trainable = False
    x = np.random.default_rng(4).normal(size=(6, 3)).astype(np.float32)
    model(x, training=True)
    model.save(tmp_path / f"model.{suffix}")
    again = keras.models.load_model(tmp_path / f"model.{suffix}", compile=False)
    assert again.get_layer("a/brn").get_config() == layer.get_config()
    assert layer.get_config()["r_max"] == 2.5
    for step in (False, True, False):
        np.testing.assert_array_equal(again(x, training=step), model(x, training=step))


@pytest.mark.parametrize(
    "options",
    [{"momentum": 1.5}, {"r_max": 0.9}, {"d_max": -0.1}, {"epsilon": 0.0}, {"r_max": float("nan")}],
)
def test_impossible_settings_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ModelError, match=r"^Expected"):
        BatchRenorm(**options)


def test_impossible_limits_change_nothing() -> None:
    layer = BatchRenorm()
    layer.build((None, 2))
    with pytest.raises(ModelError, match="r_max"):
        layer.set_limits(d_max=3.0, r_max=0.0)
    assert layer.limits() == {"momentum": 0.99, "r_max": 1.25, "d_max": 0.5}


def test_docstring_runs() -> None:
    assert doctest.testmod(batch_renorm).failed == 0
