"""Residual blocks: a step through x + inner(x) agrees with Keras and autodiff, also in TFLite."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
import tf_keras as keras

from keras_reference import KerasReference, assert_same_changes, extracted
from lrtflite.host.network import Network
from lrtflite.runtime.flatbuffer import custom_ops
from lrtflite_converters.blocks.block import Block, Chain
from lrtflite_converters.blocks.joined import Joined
from lrtflite_converters.blocks.pooling import Pooling
from lrtflite_converters.blocks.split import blocks_above
from lrtflite_converters.blocks.unit import Unit
from lrtflite_converters.training import trunk as trunk_module
from residual_network import SIZE, make_network
from trunk_head import SLOTS, begin, make_head, scalars, trunk_state

BATCH, STEPS = 19, 4
RATES: dict[str, Any] = {
    "lr": 0.02,
    "trunk_lr": 0.01,
    "momentum": 0.9,
    "weight_decay": 0.01,
    "moment_rate": 0.05,
    "r_max": 3.0,
    "d_max": 5.0,
}


def batches(
    network: Network, replay_layer: str, *, steps: int
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return latents of random frames, and soft targets."""
    rng = np.random.default_rng(5)
    found = []
    for _ in range(steps):
        frames = rng.integers(0, 256, (BATCH, SIZE, SIZE, 3)).astype(np.uint8)
        targets = rng.dirichlet(np.ones(SLOTS), BATCH).astype(np.float32)
        found.append((extracted(network, replay_layer, frames), targets))
    return found


def shown(block: Block) -> Any:
    if isinstance(block, Unit):
        return block.name
    return [shown(inner) for inner in block.right.blocks] if isinstance(block, Joined) else "mean"


def test_joins_are_matched_from_keras_layers() -> None:
    network = make_network(seed=0)

    def found(replay_layer: str) -> list[Any]:
        chain = blocks_above(network, replay_layer, train_depthwise=True)
        assert isinstance(chain, Chain)
        assert isinstance(chain.blocks[-1], Pooling)
        return [shown(block) for block in chain.blocks]

    first, second, third = ([f"expand{i}", f"dw{i}", f"project{i}"] for i in (1, 2, 3))
    assert found("images") == ["stem", first, "top", second, third, "mean"]
    assert found("stem") == [first, "top", second, third, "mean"]
    assert found("join1") == ["top", second, third, "mean"]
    assert found("join2") == [third, "mean"]


# A residual block as the first block, above a unit, above another one, and alone below the pooling.
@pytest.mark.parametrize(
    ("replay_layer", "seed"),
    [("stem", 0), ("images", 1), ("join1", 2), ("top", 3), ("join2", 4)],
)
@pytest.mark.parametrize("most_parts", [1, 3])
def test_a_step_through_a_join_is_autodiffs(
    replay_layer: str, seed: int, most_parts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trunk_module, "PART_BYTES", 1)
    monkeypatch.setattr(trunk_module, "MAX_PARTS", most_parts)
    network = make_network(seed)
    head = make_head(network, replay_layer, batch_size=BATCH)
    ((latents, targets),) = batches(network, replay_layer, steps=1)
    reference = KerasReference(network, replay_layer, head.cw.numpy())
    before = {"tw": head.cw.numpy(), **reference.state()}
    begin(head)
    (loss,) = head.run("train", latents=latents, targets=targets, **scalars(head, RATES))["loss"]
    assert float(loss) == pytest.approx(reference.train(latents, targets, **RATES), rel=1e-4)
    found = trunk_state(head)
    assert set(found) == set(reference.state())
    expected = {"tw": reference.tw.numpy(), **reference.state()}
    assert_same_changes({"tw": head.tw.numpy(), **found}, expected, before)


def test_inference_through_joins_is_kerass() -> None:
    network = make_network(seed=6)
    head = make_head(network, "stem", batch_size=BATCH)
    ((latents, _),) = batches(network, "stem", steps=1)
    above = keras.Model(network.layer("stem").output, network.layer("pool").output)
    expected = tf.nn.softmax(above(latents).numpy() @ head.cw.numpy().T)
    found = head.run("infer", latents=latents)["probabilities"]
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-5)


DEVICE = """
import sys
from pathlib import Path
import numpy as np
from lrtflite.runtime.model import Model
path, runtime, inputs, outputs = sys.argv[1:]
data, zero = np.load(inputs), np.zeros(1, np.float32)
head = Model(Path(path), runtime=runtime)
taken = set(head.signatures["train"].inputs) - {"latents", "targets"}
rates = {name: data[name] for name in taken}
head.run("begin", counts=data["counts"], head_start=zero, rest_below=zero)
losses = [
    head.run("train", latents=latents, targets=targets, **rates)["loss"].item()
    for latents, targets in zip(data["latents"], data["targets"])
]
np.savez(outputs, losses=losses, **head.run("save", zero=zero))
"""


def test_steps_through_joins_in_tflite(runtime: str, tmp_path: Path) -> None:
    network = make_network(seed=7)
    head = make_head(network, "stem", batch_size=BATCH)
    path = tmp_path / "head.tflite"
    path.write_bytes(head.to_tflite(variables=True))
    assert custom_ops(path) == []
    steps = batches(network, "stem", steps=STEPS)
    np.savez(
        tmp_path / "inputs.npz",
        latents=np.stack([latents for latents, _ in steps]),
        targets=np.stack([targets for _, targets in steps]),
        counts=np.ones(SLOTS, np.float32),
        **scalars(head, RATES),
    )
    words = [sys.executable, "-c", DEVICE, path, runtime, tmp_path / "inputs.npz"]
    command = [str(word) for word in (*words, tmp_path / "found.npz")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    with np.load(tmp_path / "found.npz") as archive:
        found = dict(archive)
    reference = KerasReference(network, "stem", head.cw.numpy())
    before = reference.state()
    losses = [reference.train(latents, targets, **RATES) for latents, targets in steps]
    np.testing.assert_allclose(found["losses"], losses, rtol=1e-3)
    assert_same_changes(found, reference.state(), before)
