"""Class sums and familiarity against numpy, and the gather of CWR*."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from familiarity_reference import own_cosine, places
from keras_reference import small_network
from lrtflite.contract.signatures import ZERO
from lrtflite.networks.mobilenet_v1 import MOBILENET_V1
from lrtflite_converters.blocks.block import Chain
from lrtflite_converters.heads.class_sums import MIN_SPREAD, SPREAD, WHOLE, ClassSums
from lrtflite_converters.heads.cwr import CwrHead
from lrtflite_converters.heads.head import HeadPlan
from lrtflite_converters.request.defaults import SplitPoint, sgd_feeding
from lrtflite_converters.training.trunk import Trunk
from trunk_head import make_head

SLOTS, FEATURES, BATCH = 5, 32, 8


def unit(x: np.ndarray) -> np.ndarray:
    return np.asarray(x / np.maximum(np.linalg.norm(x, axis=-1, keepdims=True), 1e-12))


def roots(x: np.ndarray) -> np.ndarray:
    return unit(np.sign(x) * np.sqrt(np.abs(x.astype(np.float64))))


def clouds(per_class: int, *, classes: tuple[int, ...], seed: int = 0) -> tuple[np.ndarray, ...]:
    """Signed latents around a centre for each class, and their slots."""
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(7).normal(0.5, 1, (SLOTS, FEATURES))
    slots = np.repeat(classes, per_class)
    noise = rng.normal(0, 0.3, (len(slots), FEATURES))
    return (centres[slots] + noise).astype(np.float32), slots


def cwr_head() -> CwrHead:
    return CwrHead(
        HeadPlan(slots=SLOTS, batch_size=BATCH, trunk=Trunk(Chain((), image=(FEATURES,))))
    )


def gather(head: CwrHead, latents: np.ndarray, slots: np.ndarray) -> list[float]:
    """Show each pattern once; the last mini-batch has empty places with latents that are not 0."""
    seen = []
    for start in range(0, len(slots), BATCH):
        batch = np.full((BATCH, FEATURES), 9, np.float32)
        targets = np.zeros((BATCH, SLOTS), np.float32)
        rows = slots[start : start + BATCH]
        batch[: len(rows)] = latents[start : start + BATCH]
        targets[np.arange(len(rows)), rows] = 1
        seen.append(head.run("gather", latents=batch, targets=targets)["patterns"].item())
    return seen


def test_gather_of_cwr_keeps_sums_and_counts() -> None:
    head = cwr_head()
    latents, slots = clouds(5, classes=(1, 3, 4))
    assert gather(head, latents, slots) == [8, 7]
    state, z = head.run("save", zero=ZERO), roots(latents)
    expected = np.stack([z[slots == slot].sum(axis=0) for slot in range(SLOTS)])
    np.testing.assert_allclose(state["class_sums"], expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(state["class_counts"], [0, 5, 0, 5, 5])
    np.testing.assert_allclose(state["squares"], (z**2).sum(axis=0), rtol=1e-5)
    np.testing.assert_array_equal(state["pattern_count"], [15])
    # The weights are not its business.
    np.testing.assert_array_equal(state["cw"], np.zeros((SLOTS, FEATURES)))
    np.testing.assert_array_equal(state["past"], np.zeros(SLOTS))


def test_familiarity_of_cwr_against_numpy() -> None:
    head = cwr_head()
    latents, slots = clouds(9, classes=(0, 2, 3))
    gather(head, latents, slots)
    head.cw.assign(np.random.default_rng(3).normal(size=(SLOTS, FEATURES)).astype(np.float32))
    head.past.assign([9, 0, 9, 9, 0])
    near, _ = clouds(4, classes=(0, 2, 3), seed=1)
    far, _ = clouds(4, classes=(1, 4), seed=1)
    probe = np.concatenate([near, far])
    found = head.run("infer", latents=probe)
    answers = found["probabilities"].argmax(axis=1)
    taught = {slot: latents[slots == slot] for slot in (0, 2, 3)}
    expected = places(taught, probe, answers)
    # Some are familiar and some are not, or there would be nothing to compare.
    assert expected.min() < 0.2
    assert expected.max() > 0.6
    np.testing.assert_allclose(found["familiarity"], expected, atol=1e-4)


def place_of(sums: ClassSums, z: np.ndarray, slot: int = 0) -> float:
    scores = tf.one_hot([slot], SLOTS)
    return float(sums.familiarity(tf.constant(z[np.newaxis], tf.float32), scores).numpy()[0])


def axis(*values: float) -> np.ndarray:
    return unit(np.append(values, np.zeros(FEATURES - len(values))))


def test_places_by_hand() -> None:
    """Two classes at right angles: means (1, 0) and (0, 1), each of identical patterns."""
    sums = ClassSums(SLOTS, FEATURES)
    for slot, z in enumerate((axis(1, 0), axis(0, 1))):
        sums.gather(tf.constant(np.tile(z, (4, 1)), tf.float32), tf.one_hot([slot] * 4, SLOTS))
    assert place_of(sums, axis(1, 0)) == pytest.approx(1, abs=1e-4)
    # The mean of the other class: no way, no cosine, no angle.
    assert place_of(sums, axis(0, 1)) == pytest.approx(0, abs=1e-4)
    # Between both, at 45 degrees: half of the way, a cosine of 0.7071, and seen from the other
    # class the angle of (0.7071, -0.2929) to (1, -1), whose cosine is 0.9239.
    expected = (0.5 + 0.70711 + 0.92388) / 3
    assert place_of(sums, axis(1, 1)) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("many", [1, 400])
def test_familiarity_depends_on_no_number_of_patterns(many: int) -> None:
    """The other classes count by their means, however many patterns one of them has."""
    latents, slots = clouds(6, classes=(0, 1, 2))
    found = []
    for copies in (1, many):
        sums = ClassSums(SLOTS, FEATURES)
        repeats = np.where(slots == 1, copies, 1)
        targets = tf.one_hot(np.repeat(slots, repeats), SLOTS)
        sums.gather(tf.constant(np.repeat(latents, repeats, axis=0)), targets)
        probe = tf.constant(roots(clouds(3, classes=(0, 2, 4), seed=1)[0]), tf.float32)
        found.append(sums.familiarity(probe, tf.one_hot([0] * 3 + [2] * 6, SLOTS)).numpy())
    np.testing.assert_allclose(found[0], found[1], atol=1e-4)


def test_familiarity_rises_all_the_way_to_the_class() -> None:
    latents, slots = clouds(9, classes=(0, 2, 3))
    sums = ClassSums(SLOTS, FEATURES)
    sums.gather(tf.constant(latents), tf.one_hot(slots, SLOTS))
    z = roots(latents)
    start, end = z[slots != 2].mean(axis=0), z[slots == 2].mean(axis=0)
    found = [place_of(sums, start + share * (end - start), 2) for share in np.linspace(0, 1, 11)]
    assert found == sorted(found)
    assert found[0] == pytest.approx(0, abs=1e-3)
    assert found[-1] > 0.9


def test_a_lone_class_has_no_others_to_compare_with() -> None:
    """Its patterns alone tell: a tenth of them are below familiarity 1, a twentieth below 0.5."""
    latents, slots = clouds(12, classes=(3,))
    sums = ClassSums(SLOTS, FEATURES)
    sums.gather(tf.constant(latents), tf.one_hot(slots, SLOTS))
    z = roots(latents)
    spread = SPREAD / np.sqrt(FEATURES) * ((z - z.mean(axis=0)) ** 2).sum() / (len(z) - 1)
    probe = roots(np.concatenate([clouds(6, classes=(3,), seed=1)[0], clouds(2, classes=(0,))[0]]))
    share = 1 / (1 + np.exp(-1.702 * (probe @ unit(z.mean(axis=0)) - own_cosine(z)) / spread))
    expected = np.clip(share / WHOLE, 0, 1)
    found = [place_of(sums, each, 3) for each in probe]
    np.testing.assert_allclose(found, expected, atol=2e-3)
    assert max(found[6:]) < 0.5 < np.mean(found[:6])


def test_a_class_that_the_host_trained_is_familiar() -> None:
    head = cwr_head()
    latents, slots = clouds(6, classes=(0, 3))
    gather(head, latents, slots)
    weights = np.zeros((SLOTS, FEATURES), np.float32)
    weights[0], weights[1] = latents.mean(axis=0), -latents.mean(axis=0)
    head.cw.assign(weights)
    head.past.assign([6, 20, 0, 6, 0])
    found = head.run("infer", latents=np.stack([latents[0], -latents[0]]))
    assert found["probabilities"].argmax(axis=1).tolist() == [0, 1]
    assert 0 < found["familiarity"][0] <= 1
    assert found["familiarity"][1] == 1


def test_forgetting_drops_the_sums_of_a_class() -> None:
    both, one = cwr_head(), cwr_head()
    latents, slots = clouds(6, classes=(0, 3))
    gather(both, latents, slots)
    both.run("forget", mask=np.array([0, 0, 0, 1, 0], np.float32))
    gather(one, latents[slots == 0], slots[slots == 0])
    found, expected = both.run("save", zero=ZERO), one.run("save", zero=ZERO)
    for name in ("class_sums", "class_counts"):
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-5, atol=1e-6)
    # The variance within classes stays: 12 patterns, squares less the mean part of class 3.
    np.testing.assert_array_equal(found["pattern_count"], [12])
    z = roots(latents)
    gone = z[slots == 3].sum(axis=0) ** 2 / 6
    np.testing.assert_allclose(found["squares"], (z**2).sum(0) - gone, rtol=1e-4, atol=1e-6)


def test_patterns_that_are_all_alike_have_the_least_spread() -> None:
    sums = ClassSums(SLOTS, FEATURES)
    z = np.tile(unit(np.ones(FEATURES)), (4, 1)).astype(np.float32)
    sums.gather(tf.constant(z), tf.one_hot([1, 1, 1, 1], SLOTS))
    scores = tf.one_hot([1, 1], SLOTS)
    turned = unit(np.append(np.ones(FEATURES - 1), 0))
    probe = tf.constant(np.stack([z[0], turned]), tf.float32)
    found = sums.familiarity(probe, scores).numpy()
    off = turned @ z[0] - 1
    assert found[0] == 1
    assert found[1] == pytest.approx(10 / (1 + np.exp(-1.702 * off / MIN_SPREAD)), abs=1e-3)


def test_above_a_trunk_that_trains_nothing_is_gathered() -> None:
    head = make_head(small_network(seed=0, input_size=32, alpha=1 / 16), "conv6/dw", batch_size=4)
    assert "gather" not in head.signatures
    assert "familiarity" not in head.signatures["infer"].outputs
    assert "class_sums" not in head.state
    assert sgd_feeding(SplitPoint(MOBILENET_V1, "conv5_4/dw")).gathers == "nothing"
    assert sgd_feeding(SplitPoint(MOBILENET_V1, "pool6")).gathers == "session"
