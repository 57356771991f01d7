"""Training above a replay layer agrees with Keras and autodiff, in TensorFlow and in TFLite."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
import tf_keras as keras

from keras_reference import KerasReference, assert_same_changes, extracted, small_network
from lrtflite.host.network import Network
from lrtflite.host.weights import build_mobilenet_v1
from lrtflite.networks.mobilenet_v1 import BLOCKS
from lrtflite.runtime.flatbuffer import custom_ops
from lrtflite.runtime.model import installed_runtimes
from lrtflite_converters.training import trunk as trunk_module
from trunk_head import SLOTS, begin, make_head, scalars, trunk_state

# Three parts: two of eight patterns, enough for products of small images, and one of seven.
BATCH = 23
DEPTHWISE_KERNELS = tuple(f"{block}_dw_kernel" for block, _, _ in BLOCKS)
RATES = {
    "lr": 0.02,
    "trunk_lr": 0.01,
    "momentum": 0.9,
    "weight_decay": 0.01,
    "moment_rate": 0.05,
    "r_max": 3.0,
    "d_max": 5.0,
}
# Rates for ten steps. With larger rates, rounding errors would grow too much.
GENTLE: dict[str, Any] = {**RATES, "lr": 0.005, "trunk_lr": 0.002}
# Batch Renorm with these limits is Batch Norm.
PLAIN: dict[str, Any] = {**RATES, "r_max": 1.0, "d_max": 0.0}


def batches(
    network: Network, replay_layer: str, *, batch_size: int, steps: int
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return latents of random frames, and soft targets."""
    size = network.input_size
    rng = np.random.default_rng(4)
    found = []
    for _ in range(steps):
        frames = rng.integers(0, 256, (batch_size, size, size, 3)).astype(np.uint8)
        latents = extracted(network, replay_layer, frames)
        found.append((latents, rng.dirichlet(np.ones(SLOTS), batch_size).astype(np.float32)))
    return found


# 48 pixels make a 3x3 image before the last stride of 2: an odd size, padded at one side only.
@pytest.mark.parametrize(
    ("replay_layer", "input_size", "activation", "seed", "train_depthwise"),
    [
        ("conv5_4/dw", 32, "relu6", 0, True),
        ("conv5_4/dw", 48, "relu6", 1, True),
        ("conv5_4/dw", 48, "relu6", 1, False),
        ("conv5_5/sep", 48, "relu", 2, True),
        ("conv4_1/sep", 48, "relu6", 3, True),
        ("images", 64, "relu6", 4, True),
        ("conv6/dw", 64, "relu", 5, True),
        ("conv6/sep", 32, "relu6", 6, True),
    ],
)
def test_a_step_is_autodiffs(
    replay_layer: str,
    input_size: int,
    activation: str,
    seed: int,
    train_depthwise: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(trunk_module, "PART_BYTES", 1)  # as many parts as possible
    monkeypatch.setattr(trunk_module, "MAX_PARTS", 3)  # and of uneven sizes
    network = small_network(seed=seed, input_size=input_size, activation=activation)
    assert_a_step_is_autodiffs(network, replay_layer, RATES, train_depthwise=train_depthwise)


@pytest.mark.parametrize(("replay_layer", "seed"), [("conv5_4/dw", 1), ("conv6/dw", 5)])
def test_a_step_with_limits_of_one_and_zero_is_batch_norms(replay_layer: str, seed: int) -> None:
    network = small_network(seed=seed, input_size=48)
    assert_a_step_is_autodiffs(network, replay_layer, PLAIN, train_depthwise=True)


def assert_a_step_is_autodiffs(
    network: Network, replay_layer: str, rates: dict[str, Any], *, train_depthwise: bool
) -> None:
    head = make_head(network, replay_layer, batch_size=BATCH, train_depthwise=train_depthwise)
    ((latents, targets),) = batches(network, replay_layer, batch_size=BATCH, steps=1)
    reference = KerasReference(network, replay_layer, head.cw.numpy())
    before = {"tw": head.cw.numpy(), **reference.state()}
    begin(head)
    (loss,) = head.run("train", latents=latents, targets=targets, **scalars(head, rates))["loss"]
    frozen = () if train_depthwise else DEPTHWISE_KERNELS
    expected_loss = reference.train(latents, targets, **rates, frozen=frozen)
    assert float(loss) == pytest.approx(expected_loss, rel=1e-4)
    found = trunk_state(head)
    assert set(found) == set(reference.state())
    expected = {"tw": reference.tw.numpy(), **reference.state()}
    assert_same_changes({"tw": head.tw.numpy(), **found}, expected, before)


def test_frozen_depthwise_kernels_stay_and_all_else_moves() -> None:
    network = small_network(seed=0, input_size=32)
    head = make_head(network, "conv5_6/dw", batch_size=6, train_depthwise=False)
    before = trunk_state(head)
    ((latents, targets),) = batches(network, "conv5_6/dw", batch_size=6, steps=1)
    begin(head)
    head.run("train", latents=latents, targets=targets, **scalars(head, RATES))
    after = trunk_state(head)
    moved = {name for name in after if not np.array_equal(after[name], before[name])}
    assert set(before) - moved == {"conv6_dw_kernel"}


def test_no_gradient_is_computed_of_a_frozen_kernel() -> None:
    network = small_network(seed=0, input_size=64)
    products = {}
    for train_depthwise in (True, False):
        head = make_head(network, "conv5_6/dw", batch_size=8, train_depthwise=train_depthwise)
        graph = head.functions["train"].graph
        pruned = tf.compat.v1.graph_util.extract_sub_graph(
            graph.as_graph_def(),
            [op.name for op in graph.get_operations() if op.type == "AssignVariableOp"],
        )
        products[train_depthwise] = sum(node.op == "BatchMatMulV2" for node in pruned.node)
    # Products of conv6/dw: one of pixels and gradients, one of the places of its weights.
    assert products[True] - products[False] == 2


def test_inference_is_kerass() -> None:
    network = small_network(seed=7, input_size=48)
    head = make_head(network, "conv5_1/dw", batch_size=4)
    ((latents, _),) = batches(network, "conv5_1/dw", batch_size=5, steps=1)
    above = keras.Model(network.layer("conv5_1/dw").output, network.layer("pool6").output)
    expected = tf.nn.softmax(above(latents).numpy() @ head.cw.numpy().T)
    found = head.run("infer", latents=latents)["probabilities"]
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-5)


DEVICE = """
import sys
from pathlib import Path
import numpy as np
from lrtflite.runtime.model import Model
path, runtime, inputs, outputs = sys.argv[1:]
data = np.load(inputs)
counts, zero, steps = data["counts"], np.zeros(1, np.float32), len(data["targets"])

def train(model, steps):
    return [
        model.run(
            "train", latents=data["latents"][k], targets=data["targets"][k], **rates
        )["loss"].item()
        for k in steps
    ]

head = Model(Path(path), runtime=runtime)
taken = set(head.signatures["train"].inputs) - {"latents", "targets"}
rates = {name: data[name] for name in taken}
start = head.run("save", zero=zero)
head.run("begin", counts=counts, head_start=zero, rest_below=zero)
losses = train(head, range(steps // 2))
midway = head.run("save", zero=zero)
probabilities = head.run("infer", latents=data["latents"][0])["probabilities"]
losses += train(head, range(steps // 2, steps))
end = head.run("save", zero=zero)
# A state saved midway gives the same answers in a new model.
fresh = Model(Path(path), runtime=runtime)
fresh.run("restore", **midway)
same = [np.array_equal(fresh.run("infer", latents=data["latents"][0])["probabilities"],
                       probabilities)]
now = fresh.run("save", zero=zero)
same += [np.array_equal(value, midway[name]) for name, value in now.items()]
# A session that stops midway leaves no trace: the same session gives the same result again.
fresh.run("begin", counts=counts, head_start=zero, rest_below=zero)
train(fresh, range(3))
fresh.run("restore", **start)
fresh.run("begin", counts=counts, head_start=zero, rest_below=zero)
again = train(fresh, range(steps))
same += [np.array_equal(again, losses)]
now = fresh.run("save", zero=zero)
same += [np.array_equal(value, end[name]) for name, value in now.items()]
# Training that diverges has a loss that is not finite.
rates["lr"] = rates["trunk_lr"] = np.array([1e30], np.float32)
diverged = train(fresh, range(4))[-1]
final = {f"end/{name}": value for name, value in end.items()}
np.savez(outputs, losses=losses, same=same, diverged=diverged, **final)
"""


def random_network() -> Network:
    return small_network(seed=8, input_size=48)


def demo_network() -> Network:
    """Use trained weights: through 27 layers of random ones, rounding errors grow too much."""
    return build_mobilenet_v1(weights="demo", alpha=None, input_size=48)


@pytest.mark.parametrize(
    ("make", "replay_layer"), [(random_network, "conv5_5/dw"), (demo_network, "images")]
)
def test_ten_steps_in_tflite_are_ten_of_autodiff(
    make: Callable[[], Network],
    replay_layer: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(trunk_module, "PART_BYTES", 1)
    monkeypatch.setattr(trunk_module, "MAX_PARTS", 3)
    network = make()
    head = make_head(network, replay_layer, batch_size=BATCH)
    path = tmp_path / "head.tflite"
    path.write_bytes(head.to_tflite(variables=True))
    assert custom_ops(path) == []
    # Momentum starts at zero without zeros in the file, where the largest kernel takes 64 KiB.
    assert bytes(32 << 10) not in path.read_bytes()
    steps = batches(network, replay_layer, batch_size=BATCH, steps=10)
    np.savez(
        tmp_path / "inputs.npz",
        latents=np.stack([latents for latents, _ in steps]),
        targets=np.stack([targets for _, targets in steps]),
        counts=np.ones(SLOTS, np.float32),
        **{name: np.array([rate], np.float32) for name, rate in GENTLE.items()},
    )
    reference = KerasReference(network, replay_layer, head.cw.numpy())
    before = reference.state()
    losses = [reference.train(latents, targets, **GENTLE) for latents, targets in steps]
    for runtime in installed_runtimes():
        outputs = tmp_path / f"{runtime}.npz"
        command = [sys.executable, "-c", DEVICE, path, runtime, tmp_path / "inputs.npz", outputs]
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        with np.load(outputs) as archive:
            found = dict(archive)
        assert found["same"].all()
        assert not np.isfinite(found["diverged"])
        np.testing.assert_allclose(found["losses"], losses, rtol=1e-3)
        end = {name[len("end/") :]: v for name, v in found.items() if name.startswith("end/")}
        assert_same_changes(end, reference.state(), before)
