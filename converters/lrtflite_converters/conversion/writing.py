"""Make a bundle: split the network, convert, compute golden vectors, write all files or none."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import io
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from lrtflite.bundle.bundle import (
    FEATURES_FILE,
    GOLDEN_FILE,
    HEAD_FILE,
    INITIAL_FILE,
    write_manifest,
)
from lrtflite.bundle.destination import Destination
from lrtflite.bundle.manifest import Manifest
from lrtflite.bundle.quantisation import HIGHEST, LOWEST, Quantisation
from lrtflite.bundle.training import Training
from lrtflite.errors import ConversionError, ModelError
from lrtflite.files.digest import File, digest
from lrtflite.host.first_batch import FirstBatch
from lrtflite.host.network import Network
from lrtflite.runtime.model import describe_runtime, installed_runtimes
from lrtflite_converters.blocks.block import Chain
from lrtflite_converters.blocks.split import blocks_above, blocks_below
from lrtflite_converters.conversion import on_device
from lrtflite_converters.conversion.golden import check_latents, check_split, golden_vectors
from lrtflite_converters.features.crops import CROP
from lrtflite_converters.features.features import AdaptingFeatures, Features
from lrtflite_converters.features.latent_range import latent_range
from lrtflite_converters.foreign.features import ForeignFeatures
from lrtflite_converters.heads import HEADS
from lrtflite_converters.heads.head import Head, HeadPlan
from lrtflite_converters.quantise.calibration import Calibration, read_calibration
from lrtflite_converters.quantise.features import QuantisedFeatures
from lrtflite_converters.quantise.quantised import compare, quantise
from lrtflite_converters.request.options import Conversion
from lrtflite_converters.request.slot_labels import slot_labels
from lrtflite_converters.tflite.convert import op_names
from lrtflite_converters.tflite.signature import SignedModule
from lrtflite_converters.training.regularisers import REGULARISERS
from lrtflite_converters.training.trunk import Trunk

Stage = Callable[[str], None]


@dataclass(frozen=True)
class SplitNetwork:
    """A network split at the replay layer, with the labels of its slots and its training.

    `exact` are the features before quantisation, and `quantisation` is what it changed.
    """

    features: Features | ForeignFeatures
    head: Head
    labels: tuple[str | None, ...]
    training: Training
    input_size: int
    latent_range: tuple[float, float]
    origin: str
    exact: Features | None = None
    quantisation: Quantisation | None = None


def make_bundle(
    network: Network,
    out: str | Path | Destination,
    *,
    options: Conversion,
    batch: FirstBatch | None = None,
    calibration: Calibration | None = None,
    replace: bool = False,
    stage: Stage = lambda text: None,
) -> Path:
    """Convert `network` and write the bundle to the folder `out`.

    With `replace`, the new bundle replaces an old one once it is complete; a folder with any other
    content is refused. With a `batch`, the bundle ships with a replay memory of these frames.
    Features are quantised with the frames of `calibration`, which are read if they are not given.
    `stage` is called with the name of each stage.
    """
    destination = Destination.at(out, replace=replace)
    stage(f"splitting the network at {options.layer}")
    parts = split_network(network, options, calibration=calibration, stage=stage)
    assert parts.exact is not None
    check_split(network, parts.exact, parts.head, options)
    return write_bundle(parts, destination, options=options, batch=batch, stage=stage)


def write_bundle(
    parts: SplitNetwork,
    destination: Destination,
    *,
    options: Conversion,
    batch: FirstBatch | None = None,
    stage: Stage = lambda text: None,
) -> Path:
    """Convert the two models of a bundle and write it; see `make_bundle`."""
    stage("converting the features")
    contents = {FEATURES_FILE: parts.features.to_bytes()}
    stage("converting the head")
    contents[HEAD_FILE] = parts.head.to_tflite(variables=True)
    stage("computing golden vectors")
    contents[GOLDEN_FILE] = _npz(golden_vectors(parts.features, parts.head, parts.training))
    with destination.making_bundle() as made:
        for name, content in contents.items():
            (made / name).write_bytes(content)
        files = {name: digest(made / name) for name in contents}
        ops = {name: op_names(made / name) for name in (FEATURES_FILE, HEAD_FILE)}
        manifest = dataclasses.replace(_manifest(options, parts), files=files, ops=ops)
        _complete(made, manifest, batch, stage)
    return destination.path


def split_network(
    network: Network,
    options: Conversion,
    *,
    calibration: Calibration | None = None,
    stage: Stage = lambda text: None,
) -> SplitNetwork:
    """Return the two models of a bundle."""
    layer, pooled = options.layer, options.pooled
    training = options.training(network.strength(layer if pooled else None))
    feeding = training.feeding
    features = exact = _float_features(network, options, group=feeding.new_per_batch)
    quantised, second = options.quantise, options.and_layer
    if quantised is not None:
        check_latents(network, exact)
        if calibration is None or calibration.size != network.input_size:
            calibration = read_calibration(quantised, size=network.input_size)
        features = quantise(exact, layer, quantised, calibration, pooled=pooled, stage=stage)
    strategy, place = options.chosen_strategy, options.place(network.features())
    top, train_depthwise = strategy.top(place), options.train_depthwise
    above = blocks_above(network, layer, train_depthwise=train_depthwise, top=top)
    original = blocks_above(network, layer, train_depthwise=False)
    is_vector = pooled or second is not None
    trunk = Trunk(
        Chain((), features.latent_shape) if is_vector else above,
        scale=features.head_scale,
        latent_dtype=tf.dtypes.as_dtype(features.latent_dtype),
    )
    learned: Sequence[str] = getattr(network.classifier, "labels", ())
    labels = slot_labels(options, learned)
    lengths, slots = _lengths(network, options), len(labels)
    head = make_head(options, training, trunk, slots=slots, original=original, parts=lengths)
    if learned and not is_vector:
        _start_from_classifier(head, network.classifier, learned=len(learned), slots=slots)
    found = None
    if isinstance(features, QuantisedFeatures):
        assert quantised is not None
        assert calibration is not None
        stage("comparing int8 latents with float ones")
        found = compare(features, exact, trunk, quantised, calibration)
    whole_range = float(LOWEST), float(HIGHEST)
    return SplitNetwork(
        features=features,
        head=head,
        labels=labels,
        training=_taken(training, options, features, head),
        input_size=network.input_size,
        latent_range=latent_range(network, layer, second=second) if found is None else whole_range,
        origin=network.origin,
        exact=exact,
        quantisation=found,
    )


def _start_from_classifier(head: Head, fc7: Any, *, learned: int, slots: int) -> None:
    free = slots - learned
    weights = np.pad(fc7.kernel.numpy().T[:learned], ((0, free), (0, 0)))
    head.start_from(weights, np.pad(np.array(fc7.counts, np.float32), (0, free)))


def _lengths(network: Network, options: Conversion) -> tuple[int, ...]:
    """Return the lengths of the vectors in a latent of two layers."""
    if options.and_layer is None:
        return ()
    first = network.features(options.layer if options.pooled else None)
    return first, network.features(options.and_layer)


def make_head(
    options: Conversion,
    training: Training,
    trunk: Trunk,
    *,
    slots: int,
    original: Chain,
    parts: tuple[int, ...] = (),
) -> Head:
    """Return the head of the chosen strategy; see `HeadPlan`."""
    strategy = options.chosen_strategy
    plan = HeadPlan(
        slots=slots,
        batch_size=training.feeding.batch_size,
        trunk=trunk,
        moments_adapt=options.adapt_moments,
        regulariser=REGULARISERS.choose(strategy.regulariser)(),
        first_rates="first_lr" in training.rates,
        original=original,
        parts=parts,
    )
    return HEADS.choose(strategy.head_at(options.place(trunk.features)))(plan)


def _float_features(network: Network, options: Conversion, *, group: int) -> Features:
    layer, pooled = options.layer, options.pooled
    if not options.adapt_moments:
        return Features(
            network, layer, pooled=pooled, second=options.and_layer, crops=options.crops
        )
    below = blocks_below(network, layer, pooled=pooled)
    if not below.moments:
        raise ModelError(
            f"Expected Batch Normalization below {layer} to adapt its moments, got none",
            "leave --adapt-moments out",
        )
    return AdaptingFeatures(network, layer, below, group=group, pooled=pooled)


def _taken(training: Training, options: Conversion, *models: SignedModule) -> Training:
    """Return the training without rates that no signature takes, such as an absent norm's."""
    signatures = [each for model in models for each in model.signatures.values()]
    taken = {name for signature in signatures for name in signature.inputs}
    unused = [name for name in training.rates if name not in taken]
    if given := [name for name in unused if name in options.rates]:
        raise ModelError(
            f"Expected rates that this network takes, got {given[0]!r}, which is for Batch "
            "Normalization above the replay layer",
            "leave it out",
        )
    return Training(
        training.feeding, {name: r for name, r in training.rates.items() if name not in unused}
    )


def _manifest(options: Conversion, parts: SplitNetwork) -> Manifest:
    replay_size, policy, codec = options.memory
    reports_familiarity = "familiarity" in parts.head.signatures["infer"].outputs
    return Manifest(
        network=options.architecture.name,
        replay_layer=options.layer,
        pooled=options.pooled,
        second_layer=options.and_layer,
        crop=CROP if options.crops else None,
        strategy=options.strategy_name,
        input_size=parts.input_size,
        latent_shape=parts.features.latent_shape,
        latent_dtype=parts.features.latent_dtype,
        train_dtype=parts.head.trunk.latent_dtype.name,
        latent_range=parts.latent_range,
        quantisation=parts.quantisation,
        labels=parts.labels,
        feeding=parts.training.feeding,
        rates=parts.training.rates,
        merging=parts.head.merging,
        replay_size=replay_size,
        policy=policy,
        codec=codec,
        trains_trunk=parts.head.trunk.trains,
        adapt_moments=options.adapt_moments,
        train_depthwise=options.train_depthwise,
        backbone=parts.origin,
        unknown=options.chosen_strategy.unknown if reports_familiarity else None,
        tools={name: importlib.metadata.version(name) for name in ("lrtflite", "tensorflow")},
    )


def _complete(made: Path, manifest: Manifest, batch: FirstBatch | None, stage: Stage) -> None:
    """Write the manifest; verify, seed and measure the bundle on the installed runtimes."""
    write_manifest(made, manifest)
    for runtime in installed_runtimes():
        stage(f"verifying on {describe_runtime(runtime)}")
        on_device.verify(made, runtime)
    if batch is not None and len(batch.slots):
        stage(f"filling the replay memory with {len(batch.slots)} latents")
        files = {**manifest.files, INITIAL_FILE: _seed(made, batch)}
        manifest = dataclasses.replace(manifest, files=files)
        write_manifest(made, manifest)
    if installed_runtimes():
        stage("measuring the cost on this machine")
        try:
            costs = on_device.measure(made, installed_runtimes()[0])
        except ConversionError as error:
            # A full memory may not fit into this machine's RAM, but the bundle is valid.
            stage(f"not measured: {error}")
        else:
            write_manifest(made, dataclasses.replace(manifest, measured=costs))


def _seed(made: Path, batch: FirstBatch) -> File:
    with tempfile.TemporaryDirectory() as folder:
        frames = Path(folder) / "frames.npz"
        frames.write_bytes(batch.to_npz())
        on_device.seed(made, frames)
    return digest(made / INITIAL_FILE)


def _npz(arrays: dict[str, NDArray[Any]]) -> bytes:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()
