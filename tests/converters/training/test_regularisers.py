"""The interface of a regulariser: its rates, its effect on a step, and its state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import tensorflow as tf

from keras_reference import extracted, small_network
from lrtflite.contract.signatures import ZERO
from lrtflite.host.network import Network
from lrtflite_converters.heads.cwr import CwrHead
from lrtflite_converters.training.parameter import Parameter
from lrtflite_converters.training.regularisers.regulariser import Regulariser
from trunk_head import SLOTS, begin, make_head, scalars, trunk_state

LAYER, BATCH = "conv5_6/dw", 6
RATES = {
    "lr": 0.02,
    "trunk_lr": 0.01,
    "momentum": 0.9,
    "weight_decay": 0.01,
    "moment_rate": 0.0,
    "r_max": 3.0,
    "d_max": 5.0,
}


class Scaling(Regulariser):
    """Scales every update by a share, and adds up the changes of each gamma."""

    scalars = {"train": ("share",), "consolidate": ("kept",)}  # noqa: RUF012

    def protect(self, parameters: Sequence[Parameter]) -> None:
        self.ways = {
            parameter.label: tf.Variable(tf.zeros(parameter.variable.shape), name="way")
            for parameter in parameters
            if parameter.label.endswith("_gamma")
        }

    @property
    def state(self) -> dict[str, tf.Variable]:
        return {f"{label}_way": way for label, way in self.ways.items()}

    def update(self, parameter: Parameter, update: Any, rates: Mapping[str, Any]) -> Any:
        return rates["share"] * update

    def stepped(self, parameter: Parameter, gradient: Any, before: Any, after: Any) -> None:
        if parameter.label in self.ways:
            self.ways[parameter.label].assign_add(tf.abs(after - before))

    def consolidate(self, rates: Mapping[str, Any]) -> None:
        for way in self.ways.values():
            way.assign(way * rates["kept"])


class Pushing(Regulariser):
    """Adds a constant to every gradient."""

    scalars = {"train": ("push",)}  # noqa: RUF012

    def gradient(
        self, parameter: Parameter, value: Any, gradient: Any, rates: Mapping[str, Any]
    ) -> Any:
        return gradient + rates["push"]


@cache
def network() -> Network:
    return small_network(seed=0, input_size=32)


def guarded(regulariser: Regulariser) -> CwrHead:
    return make_head(network(), LAYER, batch_size=BATCH, regulariser=regulariser)


def step(head: CwrHead, **rates: float) -> None:
    """Begin a session and take one step in it."""
    rng = np.random.default_rng(2)
    frames = rng.integers(0, 256, (BATCH, 32, 32, 3)).astype(np.uint8)
    targets = rng.dirichlet(np.ones(SLOTS), BATCH).astype(np.float32)
    begin(head)
    given = scalars(head, {**RATES, **rates})
    head.run("train", latents=extracted(network(), LAYER, frames), targets=targets, **given)


def test_updates_scaled_by_nothing_keep_the_trunk_still() -> None:
    head = guarded(Scaling())
    before = trunk_state(head)
    step(head, share=0.0)
    for name, value in trunk_state(head).items():
        np.testing.assert_array_equal(value, before[name], err_msg=name)
    # The last layer is not protected.
    plain = make_head(network(), LAYER, batch_size=BATCH)
    step(plain)
    assert np.abs(head.tw.numpy() - head.cw.numpy()).max() > 1e-3
    np.testing.assert_allclose(head.tw.numpy(), plain.tw.numpy(), rtol=1e-5, atol=1e-6)


def test_half_an_update_moves_a_weight_half_as_far() -> None:
    whole, half = guarded(Scaling()), guarded(Scaling())
    before = trunk_state(whole)
    step(whole, share=1.0)
    step(half, share=0.5)
    far, near = trunk_state(whole), trunk_state(half)
    for name in whole.trunk.parameters:
        assert not np.array_equal(far[name], before[name])
        expected = before[name] + 0.5 * (far[name] - before[name])
        np.testing.assert_allclose(near[name], expected, rtol=1e-6, atol=1e-7, err_msg=name)


def test_a_penalty_is_part_of_the_step() -> None:
    plain, pushed = guarded(Pushing()), guarded(Pushing())
    step(plain, push=0.0)
    step(pushed, push=2.0)
    without, with_push = trunk_state(plain), trunk_state(pushed)
    trained = set(plain.trunk.parameters)
    for name, value in without.items():
        # w = w - trunk_lr * (gradient + 2): 0.02 less everywhere, and no moment moves by it.
        expected = value - 0.02 if name in trained else value
        np.testing.assert_allclose(with_push[name], expected, rtol=1e-6, atol=2e-6, err_msg=name)
    assert any(name not in trained for name in without)
    np.testing.assert_array_equal(pushed.tw.numpy(), plain.tw.numpy())


def test_its_rates_are_inputs_of_the_signatures_that_it_names() -> None:
    head = guarded(Scaling())
    taken = {name: set(signature.inputs) for name, signature in head.signatures.items()}
    assert taken["train"] == {"latents", "targets", "share", *RATES}
    assert taken["consolidate"] == {"counts", "kept"}
    # The cheaper step does not move the trunk.
    assert taken["train_last"] == {"latents", "targets", "lr", "momentum", "weight_decay"}
    plain = make_head(network(), LAYER, batch_size=BATCH)
    assert set(plain.signatures["train"].inputs) == {"latents", "targets", *RATES}


def test_what_it_keeps_is_saved_and_restored() -> None:
    head = guarded(Scaling())
    before = trunk_state(head)
    step(head, share=1.0)
    saved = head.run("save", zero=ZERO)
    gammas = {name for name in before if name.endswith("_gamma")}
    assert set(saved) == {"cw", "past", *before, *(f"{gamma}_way" for gamma in gammas)}
    for gamma in gammas:
        way = np.abs(saved[gamma] - before[gamma])
        assert way.max() > 0
        np.testing.assert_array_equal(saved[f"{gamma}_way"], way)
    fresh = guarded(Scaling())
    fresh.run("restore", **saved)
    for name, value in fresh.run("save", zero=ZERO).items():
        np.testing.assert_array_equal(value, saved[name], err_msg=name)
    # The regulariser is also called at the end of a session.
    quarter = {"counts": np.ones(SLOTS, np.float32), "kept": np.array([0.25], np.float32)}
    fresh.run("consolidate", **quarter)
    ended = fresh.run("save", zero=ZERO)
    for gamma in gammas:
        np.testing.assert_array_equal(ended[f"{gamma}_way"], 0.25 * saved[f"{gamma}_way"])
