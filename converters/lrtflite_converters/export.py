"""Make a bundle: convert, compute golden vectors, write all files or none."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import io
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
import tf_keras as keras
from numpy.typing import NDArray

from lrtflite.bundle import FEATURES, GOLDEN, HEAD, INITIAL, digest, write_manifest
from lrtflite.destination import Destination
from lrtflite.errors import ConversionError, ModelError
from lrtflite.host.first_batch import FirstBatch
from lrtflite.manifest import File, Manifest
from lrtflite.runtime import describe_runtime, installed_runtimes
from lrtflite.slots import check_label
from lrtflite_converters import on_device
from lrtflite_converters.features import AdaptingFeatures, Features, convert_features
from lrtflite_converters.golden import check_parts, golden_vectors
from lrtflite_converters.head import Head, convert_head
from lrtflite_converters.options import ExportOptions
from lrtflite_converters.split import (
    below,
    find_layer,
    latent_range,
    units_above,
    units_below,
)
from lrtflite_converters.tflite import op_names
from lrtflite_converters.trunk import Trunk

# As many free slots as the paper's app has beside its ten pre-trained classes.
FREE_SLOTS = 5
DEFAULT_SLOTS = 50


def export_bundle(
    model: keras.Model,
    out: str | Path | Destination,
    *,
    options: ExportOptions,
    backbone: str,
    batch: FirstBatch | None = None,
    replace: bool = False,
    stage: Callable[[str], None] = lambda text: None,
) -> Path:
    """Convert `model` and write the bundle to the folder `out`.

    With `replace`, a bundle that is there gives way once the new one is whole; a folder with
    anything else in it is refused. `backbone` says in words where the weights come from. With a
    `batch` the bundle ships with a memory of these frames. `stage` is told what comes next.
    """
    destination = Destination.at(out, replace=replace)
    batch_size, new_per_batch = options.minibatch
    replay_size, policy = options.memory
    stage(f"splitting the network at {options.replay_layer}")
    features = _features(model, options)
    latent_shape = tuple(int(n) for n in features.below.output_shape[1:])
    labels, head = _initial_head(model, options, latent_shape)
    check_parts(model, features, head)
    contents = {}
    stage("converting the features")
    contents[FEATURES] = convert_features(features)
    stage("converting the head")
    contents[HEAD] = convert_head(head)
    stage("computing golden vectors")
    contents[GOLDEN] = _npz(golden_vectors(features, head, batch_size=batch_size))
    with destination.making_bundle() as made:
        for name, content in contents.items():
            (made / name).write_bytes(content)
        manifest = Manifest(
            replay_layer=options.replay_layer,
            input_size=int(model.input_shape[1]),
            latent_shape=head.trunk.latent_shape,
            latent_dtype=head.trunk.latent_dtype.name,
            latent_range=latent_range(model, options.replay_layer),
            labels=labels,
            batch_size=batch_size,
            new_per_batch=new_per_batch,
            training=options.training(int(head.cw.shape[1])),
            replay_size=replay_size,
            policy=policy,
            adapt_moments=options.adapt_moments,
            train_depthwise=options.train_depthwise,
            backbone=backbone,
            files={name: digest(made / name) for name in contents},
            ops={name: op_names(made / name) for name in (FEATURES, HEAD)},
            tools={name: importlib.metadata.version(name) for name in ("lrtflite", "tensorflow")},
        )
        write_manifest(made, manifest)
        for runtime in installed_runtimes():
            stage(f"verifying it on {describe_runtime(runtime)}")
            on_device.verify(made, runtime)
        if batch is not None and len(batch.slots):
            stage(f"filling its memory with {len(batch.slots)} latents")
            files = {**manifest.files, INITIAL: _seed(made, batch)}
            manifest = dataclasses.replace(manifest, files=files)
            write_manifest(made, manifest)
        if installed_runtimes():
            stage("measuring what it costs here")
            try:
                costs = on_device.measure(made, installed_runtimes()[0])
            except ConversionError as error:
                # A full memory may not fit into RAM here; the bundle is good all the same.
                stage(f"not measured: {error}")
            else:
                manifest = dataclasses.replace(manifest, measured=costs)
                write_manifest(made, manifest)
    return destination.path


def _features(model: keras.Model, options: ExportOptions) -> Features:
    network = below(model, options.replay_layer)
    if not options.adapt_moments:
        return Features(network)
    units = units_below(model, options.replay_layer)
    return AdaptingFeatures(network, units, group=options.minibatch[1])


def _initial_head(
    model: keras.Model, options: ExportOptions, latent_shape: tuple[int, ...]
) -> tuple[tuple[str | None, ...], Head]:
    """The label of each slot, and a head that knows what the model's `fc7` has learned."""
    fc7 = next((layer for layer in model.layers if layer.name == "fc7"), None)
    features = int(find_layer(model, "pool6").output_shape[-1])
    learned: Sequence[str] = fc7.labels if fc7 is not None else ()
    labels = [check_label(label) for label in options.labels or learned]
    slots = options.classes or (len(labels) + FREE_SLOTS if labels else DEFAULT_SLOTS)
    if len(labels) > slots:
        raise ModelError(f"Expected at least {len(labels)} classes for the labels, got {slots}")
    if len(learned) > len(labels):
        raise ModelError(
            f"Expected labels for the {len(learned)} classes that the model has learned, "
            f"got {len(labels)}"
        )
    trunk = Trunk(
        units_above(model, options.replay_layer, train_depthwise=options.train_depthwise),
        latent_shape=latent_shape,
    )
    head = Head(
        cw=np.zeros((slots, features), np.float32),
        past=np.zeros(slots, np.float32),
        batch_size=options.minibatch[0],
        trunk=trunk,
    )
    if fc7 is not None and learned:
        # The host's training was the first session: its weights are consolidated like any other's.
        free = slots - len(learned)
        head.tw.assign(np.pad(fc7.kernel.numpy().T[: len(learned)], ((0, free), (0, 0))))
        head.consolidate(counts=np.pad(np.array(fc7.counts, np.float32), (0, free)))
        head.tw.assign(tf.zeros_like(head.tw))
    return (*labels, *[None] * (slots - len(labels))), head


def _seed(made: Path, batch: FirstBatch) -> File:
    with tempfile.TemporaryDirectory() as folder:
        frames = Path(folder) / "frames.npz"
        frames.write_bytes(batch.to_npz())
        on_device.seed(made, frames)
    return digest(made / INITIAL)


def _npz(arrays: dict[str, NDArray[Any]]) -> bytes:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()
