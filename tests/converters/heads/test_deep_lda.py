"""A closed form above a trunk: its loss against autodiff, its answers against numpy."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
import tf_keras as keras

from keras_reference import extracted, small_network
from lda_reference import LdaReference
from lrtflite.host.network import Network
from lrtflite_converters.blocks.split import blocks_above
from lrtflite_converters.heads.class_sums import transform
from lrtflite_converters.heads.deep_lda import DeepLdaHead
from lrtflite_converters.heads.head import HeadPlan
from lrtflite_converters.heads.transform_gradient import transform_pullback
from lrtflite_converters.training.trunk import Trunk
from strategy_head import fed, saved

LAYER, TOP, SLOTS, BATCH = "conv5_5/dw", "conv5_6/sep", 5, 8
RATES = {
    "trunk_lr": 0.01,
    "momentum": 0.9,
    "weight_decay": 0.0,
    "moment_rate": 0.0,
    # Limits that clip nothing, so that training computes what inference does.
    "r_max": 1e6,
    "d_max": 1e6,
    "softness": 4.0,
    "temperature": 0.044,
    "rest_below": 2.0,
}


@cache
def network() -> Network:
    return small_network(seed=0, input_size=48)


@cache
def moved_network() -> Network:
    """Return a network whose trunk has moved, and whose other layers have not."""
    moved = small_network(seed=0, input_size=48)
    kernel = moved.model.get_layer(f"{TOP}/conv").kernel
    kernel.assign(kernel * np.random.default_rng(3).uniform(0.5, 2, kernel.shape).astype("f"))
    return moved


def make_head(trained: Network | None = None) -> DeepLdaHead:
    trunk = Trunk(blocks_above(trained or network(), LAYER, train_depthwise=True, top=TOP))
    original = blocks_above(network(), LAYER, train_depthwise=False)
    return DeepLdaHead(HeadPlan(SLOTS, BATCH, trunk, original=original))


@cache
def latents_of(kind: int, seed: int) -> np.ndarray:
    """Return latents (BATCH, ...) of one class: noise around a picture of its own."""
    picture = np.random.default_rng(kind).uniform(0, 255, (1, 48, 48, 3))
    noise = np.random.default_rng((seed, kind)).normal(0, 60, (BATCH, 48, 48, 3))
    frames = np.clip(picture + noise, 0, 255).astype(np.uint8)
    return extracted(network(), LAYER, frames)


def batch(kinds: list[int], seed: int) -> dict[str, Any]:
    rows = [latents_of(kind, seed)[place] for place, kind in enumerate(np.resize(kinds, BATCH))]
    return {"latents": np.stack(rows), "targets": np.eye(SLOTS, dtype="f")[np.resize(kinds, BATCH)]}


def session(
    head: DeepLdaHead, fresh: list[dict], stored: list[dict], *, steps: int = 0
) -> tuple[float, list[float]]:
    """Run a session by the contract; return `trains` and the losses."""
    counts = sum(each["targets"].sum(0) for each in (*fresh, *stored))
    begun = head.run("begin", counts=counts, **fed(head, "begin", RATES))
    losses = []
    for step in range(steps):
        every = [*fresh, *stored]
        outcome = head.run("train", **every[step % len(every)], **fed(head, "train", RATES))
        losses.append(outcome["loss"].item())
    for replayed, group in ((0, fresh), (1, stored)):
        for each in group:
            head.run("gather", **each, replayed=np.array([replayed], "f"))
    head.run("consolidate", counts=counts, **fed(head, "consolidate", RATES))
    return begun["trains"].item(), losses


def logs(reference: LdaReference, x: np.ndarray, temperature: float) -> np.ndarray:
    scores = reference.scores(x) / temperature
    return (
        scores
        - np.log(np.exp(scores - scores.max(1, keepdims=True)).sum(1, keepdims=True))
        - (scores.max(1, keepdims=True))
    )


def test_the_gradient_of_the_transform_is_autodiffs() -> None:
    rng = np.random.default_rng(0)
    x = tf.constant(rng.exponential(1, (4, 7)).astype("f") - 0.2)
    dz = tf.constant(rng.normal(size=(4, 7)).astype("f"))
    with tf.GradientTape() as tape:
        tape.watch(x)
        z = transform(x)
    expected = tape.gradient(z, x, dz)
    found, pull = transform_pullback(x)
    np.testing.assert_array_equal(found, z)
    np.testing.assert_allclose(pull(dz), expected, rtol=1e-4, atol=1e-5)


def test_both_answers_against_numpy() -> None:
    head = make_head(moved_network())
    fresh = [batch([0, 1, 2], seed=1)], [batch([3, 1], seed=2)]
    session(head, fresh[0], [])
    session(head, fresh[1], fresh[0])  # no step is taken
    state = saved(head)
    # The frozen sums count each pattern once, although the memory shows some of them again.
    np.testing.assert_array_equal(state["pattern_count"], [2 * BATCH])
    np.testing.assert_array_equal(state["refit_count"], [2 * BATCH])
    np.testing.assert_array_equal(state["refitted"], [1, 1, 1, 1, 0])
    probe = np.concatenate([latents_of(kind, 9) for kind in range(4)])
    mixed, share = [], 2 * BATCH / (2 * BATCH + head.trunk.features)
    for model, layer, name, weight in (
        (network(), "pool6", "temperature", 1 - share),
        (moved_network(), TOP, "trained_temperature", share),
    ):
        pooled = layer == "pool6"
        above = keras.Model(model.layer(LAYER).output, model.output(layer, pooled=not pooled))
        reference = LdaReference(4, above(probe).shape[1])
        for part in (*fresh[0], *fresh[1]):
            reference.gather(above(part["latents"]).numpy(), part["targets"].argmax(1))
        mixed.append(weight * logs(reference, above(probe).numpy(), state[name].item()))
    expected = np.exp(sum(mixed))
    expected /= expected.sum(1, keepdims=True)
    found = head.run("infer", latents=probe)["probabilities"]
    np.testing.assert_allclose(found[:, :4], expected, atol=2e-3)
    np.testing.assert_array_equal(found[:, 4], 0)


def test_the_trunk_rests_until_two_classes_are_known() -> None:
    head = make_head()
    assert session(head, [batch([0], seed=1)], [])[0] == 0
    assert session(head, [batch([1], seed=1)], [batch([0], seed=1)])[0] == 0
    assert session(head, [batch([2], seed=1)], [batch([0, 1], seed=1)])[0] == 1
    # A session without any of the known classes has nothing to train on.
    counts = np.array([0, 0, 0, 3, 9], "f")
    assert head.run("begin", counts=counts, **fed(head, "begin", RATES))["trains"].item() == 0


def test_a_step_is_the_gradient_of_the_loss_among_known_classes() -> None:
    head = make_head()
    known = [batch([0, 1, 2], seed=1)]
    session(head, known, [])
    state = saved(head)
    mixed = batch([0, 3, 1, 2], seed=2)  # class 3 is new
    counts = known[0]["targets"].sum(0) + mixed["targets"].sum(0)
    head.run("begin", counts=counts, **fed(head, "begin", RATES))
    outcome = head.run("train", **mixed, **fed(head, "train", RATES))
    divisor = RATES["softness"] * state["temperature"].item()
    model = keras.models.clone_model(network().model)
    model.set_weights(network().model.get_weights())
    start, top = model.get_layer(LAYER).output, model.get_layer(TOP).output
    above = keras.Model(start, top)
    for layer in above.layers:  # every r and d is free, and moments do not move
        if hasattr(layer, "r_max"):
            layer.r_max, layer.d_max = 1e6, 1e6
    # Layers are in the order of the forward pass: the last convolution is the highest.
    convolution = [one for one in above.layers if isinstance(one, keras.layers.Conv2D)][-1]
    rows = np.flatnonzero(mixed["targets"].argmax(1) != 3)
    with tf.GradientTape() as tape:
        x = tf.reduce_mean(above(mixed["latents"], training=True), axis=[1, 2])
        root = tf.sign(x) * tf.sqrt(tf.abs(x) + 1e-12)
        z = root / tf.norm(root, axis=1, keepdims=True)
        scores = (z @ state["trained_weights"].T + state["trained_bias"]) / divisor
        losses = tf.nn.softmax_cross_entropy_with_logits(
            mixed["targets"][rows][:, :3], tf.gather(scores, rows)[:, :3]
        )
        loss = tf.reduce_sum(losses) / BATCH
    assert outcome["loss"].item() == pytest.approx(float(loss), rel=2e-2)
    gradient = tape.gradient(loss, convolution.kernel).numpy()[0, 0]
    name = f"{TOP.replace('/', '_')}_kernel"
    moved = saved(head)[name] - state[name]
    cosine = (moved * -gradient).sum() / np.linalg.norm(moved) / np.linalg.norm(gradient)
    assert cosine > 0.99
    assert np.linalg.norm(moved) == pytest.approx(0.01 * np.linalg.norm(gradient), rel=0.05)
    # The closed forms do not move in a step.
    for each in ("weights", "trained_weights", "scatter"):
        np.testing.assert_array_equal(saved(head)[each], state[each])


def test_training_lowers_the_loss_and_a_new_class_alone_moves_nothing() -> None:
    head = make_head()
    known = [batch([0, 1, 2], seed=1)]
    session(head, known, [])
    trains, losses = session(head, [batch([0, 1], seed=2)], known, steps=10)
    assert trains == 1
    assert losses[-1] < losses[0]
    before = saved(head)
    counts = known[0]["targets"].sum(0) + np.array([0, 0, 0, 8, 0])
    head.run("begin", counts=counts.astype("f"), **fed(head, "begin", RATES))
    head.run("train", **batch([3], seed=3), **fed(head, "train", RATES))
    for name, value in saved(head).items():
        np.testing.assert_array_equal(value, before[name], err_msg=name)


def test_a_class_that_left_the_memory_keeps_its_frozen_probability() -> None:
    head = make_head()
    session(head, [batch([0, 1, 2], seed=1)], [])
    session(head, [batch([3], seed=1)], [batch([0], seed=1)])  # 1 and 2 are not in the memory
    state = saved(head)
    np.testing.assert_array_equal(state["refitted"], [1, 0, 0, 1, 0])
    probe = np.concatenate([latents_of(kind, 9) for kind in range(4)])
    found = head.run("infer", latents=probe)["probabilities"]
    # Without patterns under the trained form, the frozen one alone answers.
    head.run("restore", **{**state, "refit_count": np.zeros(1, "f")})
    frozen = head.run("infer", latents=probe)["probabilities"]
    # The trained form decides between 0 and 3 only.
    np.testing.assert_allclose(found[:, [1, 2]], frozen[:, [1, 2]], rtol=1e-4, atol=1e-7)
    np.testing.assert_allclose(found.sum(1), 1, rtol=1e-5)
    assert np.abs(found - frozen).max() > 1e-3


def test_probabilities_add_up_where_two_forms_contradict_each_other() -> None:
    head = make_head()
    session(head, [batch([0, 1], seed=1)], [])
    state = saved(head)
    # The frozen form is sure of 0, the trained one is sure of 1, both beyond what float32 holds.
    sure = {
        "bias": np.array([900, 0, 0, 0, 0], "f"),
        "trained_bias": np.array([0, 900, 0, 0, 0], "f"),
        "refit_count": np.array([head.trunk.features], "f"),
    }
    same = {name: np.ones(1, "f") for name in ("temperature", "trained_temperature")}
    flat = {name: np.zeros_like(state[name]) for name in ("weights", "trained_weights")}
    head.run("restore", **{**state, **sure, **same, **flat})
    found = head.run("infer", latents=latents_of(0, 5))["probabilities"]
    np.testing.assert_allclose(found[:, :2], 0.5, rtol=1e-4)


def test_the_accuracy_of_a_step_is_among_the_known_classes() -> None:
    head = make_head()
    known = [batch([0, 1], seed=1)]
    session(head, known, [])
    # All known classes score below 0, which is the score of the others.
    bias = saved(head)["trained_bias"] - np.array([1e4, 1e4, 0, 0, 0], "f")
    head.run("restore", **{**saved(head), "trained_bias": bias})
    counts = known[0]["targets"].sum(0)
    head.run("begin", counts=counts, **fed(head, "begin", RATES))
    outcome = head.run("train", **known[0], **fed(head, "train", RATES))
    assert outcome["accuracy"].item() > 0.9


def test_forget_drops_a_class_from_both() -> None:
    head = make_head()
    session(head, [batch([0, 1, 2], seed=1)], [])
    left = head.run("forget", mask=np.eye(SLOTS, dtype="f")[1])["learned"]
    np.testing.assert_array_equal(left, [1, 0, 1, 0, 0])
    found = head.run("infer", latents=latents_of(1, 5))["probabilities"]
    np.testing.assert_array_equal(found[:, [1, 3, 4]], 0)
    np.testing.assert_allclose(found.sum(1), 1, rtol=1e-5)
    np.testing.assert_array_equal(saved(head)["refitted"], [1, 0, 1, 0, 0])
