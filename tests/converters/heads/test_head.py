"""The head's signatures against hand-worked numbers, numpy and autodiff, also in TFLite."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from cwr_reference import cwr_session
from lrtflite.contract.signatures import ZERO
from lrtflite.errors import ConversionError
from lrtflite.runtime.flatbuffer import custom_ops
from lrtflite_converters.blocks.block import Chain
from lrtflite_converters.heads.cwr import CwrHead
from lrtflite_converters.heads.head import HeadPlan
from lrtflite_converters.training.trunk import Trunk


def scalar(value: float) -> np.ndarray:
    """Return a number in the form that a client feeds: (1,) float32."""
    return np.array([value], np.float32)


START = scalar(0.5)
RATES = {"lr": scalar(0.1), "momentum": scalar(0.9), "weight_decay": scalar(0.01)}


def plan(slots: int, features: int, *, batch_size: int = 4) -> HeadPlan:
    """Return the plan of a head without a trunk."""
    return HeadPlan(slots=slots, batch_size=batch_size, trunk=Trunk(Chain((), image=(features,))))


def head(cw: Any, past: Any) -> CwrHead:
    module = CwrHead(plan(*np.shape(cw)))
    module.cw.assign(np.asarray(cw, np.float32))
    module.past.assign(np.asarray(past, np.float32))
    return module


def saved(of: CwrHead) -> tuple[np.ndarray, np.ndarray]:
    state = of.run("save", zero=ZERO)
    assert set(state) == {"cw", "past", "class_sums", "class_counts", "squares", "pattern_count"}
    return state["cw"], state["past"]


def test_consolidate_by_hand() -> None:
    # Class 0: past 4, cur 1, so wpast = 2. Class 1: new, wpast = 0. Class 2: absent.
    module = head([[2, 4], [0, 0], [7, 8]], [4, 0, 9])
    module.run("begin", counts=np.array([1, 3, 0], np.float32), head_start=scalar(0))
    np.testing.assert_array_equal(module.tw.numpy(), [[2, 4], [0, 0], [0, 0]])
    module.tw.assign([[5, 7], [1, 3], [100, 100]])
    # The average of the session's weights is 4.
    ended = module.run("consolidate", counts=np.array([1, 3, 0], np.float32))
    np.testing.assert_array_equal(ended["learned"], [1, 1, 1])
    cw, past = saved(module)
    # (2*2 + 5-4)/3, (4*2 + 7-4)/3; (1-4, 3-4); class 2 untouched.
    np.testing.assert_allclose(cw, [[5 / 3, 11 / 3], [-3.0, -1.0], [7.0, 8.0]], rtol=1e-6)
    np.testing.assert_array_equal(past, [5, 3, 9])


def test_a_new_class_starts_from_the_mean_of_the_known_ones() -> None:
    # Known and seen: 0 and 1, mean [3, 6]. Known and not seen: 2. New: 3. Never seen: 4.
    cw = [[2, 4], [4, 8], [70, 80], [0, 0], [0, 0]]
    module = head(cw, [4, 1, 9, 0, 0])
    counts = np.array([1, 2, 0, 3, 0], np.float32)
    for start, expected in ((1, [3, 6]), (0.5, [1.5, 3]), (0, [0, 0])):
        module.run("begin", counts=counts, head_start=scalar(start))
        np.testing.assert_allclose(module.tw.numpy(), [[2, 4], [4, 8], [0, 0], expected, [0, 0]])
        np.testing.assert_array_equal(saved(module)[0], cw)
    # Without known classes there is no mean to start from.
    module.run("begin", counts=np.array([0, 0, 0, 3, 1], np.float32), head_start=scalar(1))
    np.testing.assert_array_equal(module.tw.numpy(), np.zeros((5, 2)))


def test_infer_by_hand() -> None:
    module = head([[0, np.log(3)], [0, 0], [9, 9]], [1, 1, 0])
    probabilities = module.run("infer", latents=np.array([[5, 1]], np.float32))["probabilities"]
    # Scores ln 3 and 0 among the two learned classes: 3/4 and 1/4; the third never learned.
    np.testing.assert_allclose(probabilities, [[0.75, 0.25, 0]], rtol=1e-5)
    # Learned classes share all the probability, even with scores far below a free slot's 0.
    module = head([[-200, 0], [-201, 0], [0, 0]], [1, 1, 0])
    probabilities = module.run("infer", latents=np.array([[1, 0]], np.float32))["probabilities"]
    np.testing.assert_allclose(
        probabilities, [[math.e / (1 + math.e), 1 / (1 + math.e), 0]], rtol=1e-5
    )
    untaught = head(np.zeros((3, 2)), np.zeros(3))
    nothing = untaught.run("infer", latents=np.ones((1, 2), np.float32))
    np.testing.assert_array_equal(nothing["probabilities"], [[0, 0, 0]])


def test_a_training_step_is_the_gradient_of_the_cross_entropy() -> None:
    rng = np.random.default_rng(0)
    cw = rng.normal(size=(5, 6)).astype(np.float32)
    module = head(cw, np.ones(5))
    x = rng.normal(size=(4, 6)).astype(np.float32)
    # Soft targets, as distillation needs them.
    targets = rng.dirichlet(np.ones(5), 4).astype(np.float32)
    module.run("begin", counts=np.ones(5, np.float32), head_start=START)
    outcome = module.run(
        "train", latents=x, targets=targets, **{**RATES, "weight_decay": scalar(0)}
    )
    weights = tf.Variable(cw)
    with tf.GradientTape() as tape:
        logits = tf.matmul(x, weights, transpose_b=True)
        loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(targets, logits))
    expected = cw - 0.1 * tape.gradient(loss, weights).numpy()
    assert outcome["loss"].item() == pytest.approx(float(loss), rel=1e-6)
    np.testing.assert_allclose(module.tw.numpy(), expected, rtol=1e-5, atol=1e-7)
    hits = logits.numpy().argmax(-1) == targets.argmax(-1)
    assert outcome["accuracy"].item() == pytest.approx(hits.mean())


def sessions() -> list[tuple[np.ndarray, list[tuple[np.ndarray, np.ndarray]]]]:
    """Return two sessions of three steps: counts, and mini-batches with one-hot targets."""
    rng = np.random.default_rng(1)
    found = []
    for present in ([0, 1], [1, 4]):
        counts = np.zeros(5, np.float32)
        counts[present] = [30, 7]
        batches = [
            (
                rng.normal(size=(4, 6)).astype(np.float32),
                np.eye(5, dtype=np.float32)[rng.choice(present, 4)],
            )
            for _ in range(3)
        ]
        found.append((counts, batches))
    return found


def test_two_sessions_against_numpy() -> None:
    module = head(np.zeros((5, 6)), np.zeros(5))
    cw, past = np.zeros((5, 6)), np.zeros(5)
    rates = {name: rate.item() for name, rate in RATES.items()}
    for counts, batches in sessions():
        module.run("begin", counts=counts, head_start=START)
        losses = [
            module.run("train", latents=x, targets=t, **RATES)["loss"].item() for x, t in batches
        ]
        module.run("consolidate", counts=counts)
        cw, past, expected = cwr_session(
            cw, past, counts, batches, head_start=START.item(), **rates
        )
        np.testing.assert_allclose(losses, expected, rtol=1e-5)
        np.testing.assert_allclose(saved(module)[0], cw, rtol=1e-4, atol=1e-6)
        np.testing.assert_array_equal(saved(module)[1], past)


DEVICE = """
import json, sys
import numpy as np
from pathlib import Path
from lrtflite.runtime.model import Model
path, runtime, inputs = sys.argv[1:]
head = Model(Path(path), runtime=runtime)
data = np.load(inputs)
rates = {name: data[name] for name in ("lr", "momentum", "weight_decay")}
losses = []
for s in range(2):
    head.run("begin", counts=data[f"counts{s}"], head_start=data["head_start"])
    for k in range(3):
        outcome = head.run("train", latents=data[f"x{s}{k}"], targets=data[f"t{s}{k}"], **rates)
        losses.append(outcome["loss"].item())
    head.run("consolidate", counts=data[f"counts{s}"])
zero = np.zeros(1, np.float32)
state = head.run("save", zero=zero)
# A model that is restored before anything else is called must answer the same.
fresh = Model(Path(path), runtime=runtime)
fresh.run("restore", **state)
probe = data["probe"]
infer = [model.run("infer", latents=probe)["probabilities"] for model in (fresh, head)]
same = np.array_equal(*infer)
after = fresh.run("save", zero=zero)
same = same and all(np.array_equal(state[n], after[n]) for n in state)
print(json.dumps({
    "losses": losses, "same": bool(same), "probabilities": infer[0].tolist(),
    "cw": state["cw"].tolist(), "past": state["past"].tolist(),
}))
"""


def test_tflite_does_what_tensorflow_does(runtime: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    start = rng.normal(size=(5, 6)).astype(np.float32), np.array([3, 0, 0, 2, 0], np.float32)
    module = head(*start)
    path = tmp_path / "head.tflite"
    path.write_bytes(module.to_tflite(variables=True))
    assert custom_ops(path) == []
    probe = rng.normal(size=(7, 6)).astype(np.float32)
    inputs: dict[str, Any] = {"probe": probe, "head_start": START, **RATES}
    losses = []
    for s, (counts, batches) in enumerate(sessions()):
        inputs[f"counts{s}"] = counts
        module.run("begin", counts=counts, head_start=START)
        for k, (x, t) in enumerate(batches):
            inputs[f"x{s}{k}"], inputs[f"t{s}{k}"] = x, t
            losses.append(module.run("train", latents=x, targets=t, **RATES)["loss"].item())
        module.run("consolidate", counts=counts)
    np.savez(tmp_path / "inputs.npz", **inputs)
    done = subprocess.run(
        [sys.executable, "-c", DEVICE, str(path), runtime, str(tmp_path / "inputs.npz")],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    # float32 sums of six terms in another order.
    np.testing.assert_allclose(found["losses"], losses, rtol=1e-5)
    np.testing.assert_allclose(found["cw"], saved(module)[0], rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(found["past"], saved(module)[1])
    expected = module.run("infer", latents=probe)["probabilities"]
    np.testing.assert_allclose(found["probabilities"], expected, rtol=1e-4, atol=1e-6)
    assert found["same"]


def test_a_class_that_is_forgotten_is_new_again() -> None:
    module = head([[2, 4], [4, 8], [70, 80], [0, 0]], [4, 1, 9, 0])
    learned = module.run("forget", mask=np.array([1, 0, 0, 0], np.float32))["learned"]
    np.testing.assert_array_equal(learned, [0, 1, 1, 0])
    cw, past = saved(module)
    np.testing.assert_array_equal(cw, [[0, 0], [4, 8], [70, 80], [0, 0]])
    np.testing.assert_array_equal(past, [0, 1, 9, 0])
    # The forgotten class gets 0. The others score 4 and 70, and exp(-66) is 0 in float32.
    found = module.run("infer", latents=np.array([[1, 0]], np.float32))["probabilities"]
    np.testing.assert_allclose(found, [[0, 0, 1, 0]], atol=1e-20)
    # Class 0 starts from the mean of class 1 alone, as any new class does.
    module.run("begin", counts=np.array([5, 5, 0, 0], np.float32), head_start=scalar(0.5))
    np.testing.assert_allclose(module.tw.numpy(), [[2, 4], [4, 8], [0, 0], [0, 0]])
    # It has no earlier patterns, so it gets the session's weights minus their average 1.5.
    module.tw.assign([[1, 2], [1, 2], [0, 0], [0, 0]])
    ended = module.run("consolidate", counts=np.array([5, 1, 0, 0], np.float32))
    np.testing.assert_array_equal(ended["learned"], [1, 1, 1, 0])
    cw, past = saved(module)
    np.testing.assert_allclose(cw[0], [-0.5, 0.5])
    np.testing.assert_allclose(cw[1], [1.75, 4.25])  # (4 - 0.5) / 2, (8 + 0.5) / 2
    np.testing.assert_array_equal(past, [5, 2, 9, 0])


def test_nothing_is_forgotten_without_a_mask() -> None:
    cw, past = np.arange(6, dtype=np.float32).reshape(3, 2), np.array([4, 0, 9], np.float32)
    module = head(cw, past)
    module.run("forget", mask=np.zeros(3, np.float32))
    np.testing.assert_array_equal(saved(module)[0], cw)
    np.testing.assert_array_equal(saved(module)[1], past)


def test_variables_without_an_axis_are_refused() -> None:
    class Counting(CwrHead):
        def build(self) -> None:
            super().build()
            self.sessions = tf.Variable(0.0, name="sessions")

    with pytest.raises(ConversionError, match=r"got sessions:0 of shape \[\]; give it .*\[1\]"):
        Counting(plan(3, 2))
