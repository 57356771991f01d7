"""The TensorFlow modules keep the contract, and every breach is named."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from keras_reference import small_network
from lrtflite.bundle.feeding import SESSION
from lrtflite.bundle.manifest import Manifest
from lrtflite.contract.checking import breaches
from lrtflite.contract.signatures import FEATURES, HEAD
from lrtflite.host.network import Network
from lrtflite.runtime.model import Signature, Tensor
from lrtflite_converters.conversion.writing import SplitNetwork, split_network
from lrtflite_converters.request.options import Conversion

FLOAT = np.dtype(np.float32)
Signatures = dict[str, Signature]


@cache
def network() -> Network:
    return small_network(seed=0, input_size=32)


@cache
def made(replay_layer: str, adapts: bool) -> tuple[Manifest, SplitNetwork]:
    options = Conversion(
        replay_layer=replay_layer,
        classes=3,
        batch_size=6,
        new_per_batch=4,
        adapt_moments=adapts,
    )
    parts = split_network(network(), options)
    manifest = Manifest(
        network="mobilenet_v1",
        replay_layer=replay_layer,
        strategy=options.strategy_name,
        input_size=32,
        latent_shape=parts.features.latent_shape,
        latent_range=(0.0, 6.0),
        latent_dtype=parts.features.latent_dtype,
        train_dtype=parts.head.trunk.latent_dtype.name,
        labels=(None, None, None),
        feeding=parts.training.feeding,
        rates=parts.training.rates,
        merging={},
        replay_size=10,
        policy="algorithm1",
        backbone="a test",
        trains_trunk=parts.head.trunk.trains,
        adapt_moments=adapts,
    )
    return manifest, parts


@pytest.mark.parametrize(
    ("replay_layer", "adapts"),
    [
        ("pool6", False),
        ("conv5_4/dw", False),
        ("images", False),
        ("pool6", True),
        ("conv5_4/dw", True),
    ],
)
def test_modules_keep_the_contract(replay_layer: str, adapts: bool) -> None:
    manifest, parts = made(replay_layer, adapts)
    assert breaches(manifest, FEATURES, parts.features.signatures) == []
    assert breaches(manifest, HEAD, parts.head.signatures) == []
    assert ("adapt" in parts.features.signatures) == adapts
    trains = replay_layer != "pool6"
    assert ("train_last" in parts.head.signatures) == trains


def with_input(signatures: Signatures, name: str, tensor: str, shape: tuple[int, ...]) -> None:
    found = signatures[name]
    inputs = {**found.inputs, tensor: Tensor(shape, FLOAT)}
    signatures[name] = Signature(inputs, found.outputs)


def without_input(signatures: Signatures, name: str, tensor: str) -> None:
    found = signatures[name]
    inputs = {key: value for key, value in found.inputs.items() if key != tensor}
    signatures[name] = Signature(inputs, found.outputs)


def without_output(signatures: Signatures, name: str, tensor: str) -> None:
    found = signatures[name]
    outputs = {key: value for key, value in found.outputs.items() if key != tensor}
    signatures[name] = Signature(found.inputs, outputs)


FAULTS: list[tuple[Callable[[Signatures], object], list[str]]] = [
    (lambda s: s.pop("forget"), ["no forget"]),
    (lambda s: s.pop("restore"), ["no restore"]),
    (lambda s: s.pop("train"), ["no train or gather"]),
    (
        lambda s: with_input(s, "train", "targets", (6, 4)),
        ["train.targets is (6, 4) float32, not (6, 3) float32"],
    ),
    (
        lambda s: with_input(s, "begin", "counts", (2,)),
        ["begin.counts is (2,) float32, not (3,) float32"],
    ),
    (
        lambda s: with_input(s, "train", "lr", ()),
        ["train.lr is () float32, not (1,) float32"],
    ),
    (
        lambda s: with_input(s, "train", "temperature", (1,)),
        ["train takes temperature, which is not among the rates"],
    ),
    (
        lambda s: with_input(s, "infer", "lr", (1,)),
        ["infer takes lr, which is not in the contract"],
    ),
    (
        lambda s: without_input(s, "save", "zero"),
        ["save has no input, which Java refuses to call", "save has no input zero"],
    ),
    (
        lambda s: without_input(s, "restore", "past"),
        ["restore does not take what save gives"],
    ),
    (
        lambda s: with_input(s, "restore", "cw", (3, 7)),
        ["restore does not take what save gives"],
    ),
    (lambda s: without_output(s, "begin", "trains"), ["begin has no output trains"]),
    (lambda s: s.update(dream=s["infer"]), ["dream is not in the contract"]),
]


@pytest.mark.parametrize(("spoil", "problems"), FAULTS, ids=lambda value: str(value)[2:30])
def test_faults_of_a_head_are_named(
    spoil: Callable[[Signatures], object], problems: list[str]
) -> None:
    manifest, parts = made("conv5_4/dw", False)
    found = dict(parts.head.signatures)
    spoil(found)
    assert breaches(manifest, HEAD, found) == problems


def test_a_gather_that_the_feeding_asks_for_must_be_there() -> None:
    manifest, parts = made("conv5_4/dw", False)
    asking = dataclasses.replace(
        manifest, feeding=dataclasses.replace(manifest.feeding, gathers=SESSION)
    )
    signatures = dict(parts.head.signatures)
    assert breaches(asking, HEAD, signatures) == ["no gather, which the feeding asks for"]
    train = signatures["train"]
    batch = {name: train.inputs[name] for name in ("latents", "targets")}
    signatures["gather"] = Signature(batch, {"patterns": Tensor((1,), FLOAT)})
    assert breaches(asking, HEAD, signatures) == []


@pytest.mark.parametrize("name", ["adapt", "save", "restore"])
def test_moments_that_adapt_need_their_signatures(name: str) -> None:
    manifest, parts = made("pool6", True)
    found = dict(parts.features.signatures)
    del found[name]
    assert breaches(manifest, FEATURES, found) == [f"no {name}"]
    # A rate that the manifest lacks is a breach.
    poorer = dataclasses.replace(
        manifest, rates={k: v for k, v in manifest.rates.items() if k != "adapt_rate"}
    )
    problems = breaches(poorer, FEATURES, parts.features.signatures)
    assert problems == ["adapt takes adapt_rate, which is not among the rates"]


def test_a_save_without_a_restore_is_a_fault_where_neither_is_needed() -> None:
    manifest, parts = made("pool6", True)
    frozen = dataclasses.replace(manifest, adapt_moments=False)
    found = dict(parts.features.signatures)
    del found["restore"]
    assert breaches(frozen, FEATURES, found) == ["restore does not take what save gives"]
