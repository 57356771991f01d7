"""Networks of residual blocks: steps through their joins are autodiff's; latents have signs."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import pytest
import tf_keras as keras

from keras_reference import KerasReference, assert_same_changes, extracted, settle
from lrtflite.host.family import find_family
from lrtflite.host.network import Network
from lrtflite_converters.blocks.joined import Joined
from lrtflite_converters.blocks.split import blocks_above
from lrtflite_converters.conversion.writing import split_network
from lrtflite_converters.features.latent_range import latent_range
from lrtflite_converters.request.options import Conversion
from lrtflite_converters.request.strategies import STRATEGIES
from trunk_head import SLOTS, begin, make_head, scalars, trunk_state

BATCH, SIZE = 12, 32
RATES: dict[str, Any] = {
    "lr": 0.02,
    "trunk_lr": 0.01,
    "momentum": 0.9,
    "weight_decay": 0.01,
    "moment_rate": 0.05,
    "r_max": 3.0,
    "d_max": 5.0,
}


# The blocks that add their input, from the papers: those of a row of the table but the first.
JOINS = {
    "mobilenet_v2": {2, 4, 5, 7, 8, 9, 11, 12, 14, 15},
    "efficientnet_lite0": {2, 4, 6, 7, 9, 10, 12, 13, 14},
}


@lru_cache
def narrow(name: str, activation: str = "relu6") -> Network:
    """Return a narrow network of random weights; 5x5 kernels have room in the larger one."""
    keras.utils.set_random_seed(0)
    family = find_family(name)
    size = SIZE if name == "mobilenet_v2" else 2 * SIZE
    model = family.build(alpha=0.35, input_size=size, classes=0, activation=activation)
    settle(model, seed=0)
    return Network(family.architecture, model, family.scale, "a test")


@pytest.fixture(scope="module")
def network() -> Network:
    return narrow("mobilenet_v2")


@pytest.mark.parametrize("name", JOINS)
def test_every_block_can_be_the_replay_layer(name: str) -> None:
    network = narrow(name)
    for place, layer in enumerate(network.architecture.replay_layers[:-2]):
        chain = blocks_above(network, layer, train_depthwise=True)
        found = sum(isinstance(block, Joined) for block in chain.blocks)
        first = max(0, place - 1)  # images and conv1 precede block_0
        assert found == len([number for number in JOINS[name] if number >= first]), layer


# Above block_12, a block without a join; above block_14, one with a join; 5x5 kernels with strides
# of 1 and of 2.
@pytest.mark.parametrize(
    ("name", "replay_layer", "activation"),
    [
        ("mobilenet_v2", "block_12", "relu6"),
        ("mobilenet_v2", "block_14", "relu6"),
        ("mobilenet_v2", "block_14", "relu"),
        ("efficientnet_lite0", "block_10", "relu6"),
    ],
)
def test_a_step_is_autodiffs(name: str, replay_layer: str, activation: str) -> None:
    network = narrow(name, activation)
    weights = network.model.get_weights()
    head = make_head(network, replay_layer, batch_size=BATCH)
    rng = np.random.default_rng(5)
    size = network.input_size
    frames = rng.integers(0, 256, (BATCH, size, size, 3)).astype(np.uint8)
    targets = rng.dirichlet(np.ones(SLOTS), BATCH).astype(np.float32)
    latents = extracted(network, replay_layer, frames)
    assert latents.min() < -0.1
    reference = KerasReference(network, replay_layer, head.cw.numpy())
    before = {"tw": head.cw.numpy(), **reference.state()}
    begin(head)
    (loss,) = head.run("train", latents=latents, targets=targets, **scalars(head, RATES))["loss"]
    assert float(loss) == pytest.approx(reference.train(latents, targets, **RATES), rel=1e-4)
    found = trunk_state(head)
    assert set(found) == set(reference.state())
    expected = {"tw": reference.tw.numpy(), **reference.state()}
    network.model.set_weights(weights)  # the reference trains the network itself
    assert_same_changes({"tw": head.tw.numpy(), **found}, expected, before)


def test_the_range_of_linear_bottlenecks_has_both_signs(network: Network) -> None:
    frames = np.random.default_rng(1).integers(0, 256, (8, SIZE, SIZE, 3)).astype(np.uint8)
    for layer in ("block_13", "block_14", "conv_last", "pool"):
        low, high = latent_range(network, layer)
        latents = extracted(network, layer, frames)
        assert low <= latents.min()
        assert latents.max() <= high
        assert (low < 0) == layer.startswith("block")


@pytest.mark.parametrize("strategy", [name for name in STRATEGIES if STRATEGIES[name].trunk])
def test_trunk_strategies_split_the_network(network: Network, strategy: str) -> None:
    architecture = network.architecture
    options = Conversion(architecture=architecture, replay_layer="block_14", strategy=strategy)
    assert split_network(network, options).head.trunk.trains
