"""Make the model of an export from the models of a bundle, in a process of its own.

The models may come from somebody else, and TensorFlow runs them.
"""

from __future__ import annotations

import importlib.metadata
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from lrtflite.bundle.bundle import FEATURES_FILE, HEAD_FILE, Bundle
from lrtflite.contract.signatures import ZERO
from lrtflite.verification.trial import unpacked
from lrtflite_converters.export.baking import baked_graph
from lrtflite_converters.export.classes import keep_classes
from lrtflite_converters.export.folding import fold
from lrtflite_converters.export.int8 import quantise
from lrtflite_converters.export.metadata import model_metadata, with_files
from lrtflite_converters.export.request import (
    FLOAT,
    FRAMES,
    INT8,
    LABELS_FILE,
    LEARNED,
    LearnedClasses,
)
from lrtflite_converters.export.resizing import take_frames
from lrtflite_converters.export.settling import interpreter, settle
from lrtflite_converters.tflite.graph import Graph
from lrtflite_converters.tflite.graph_file import load, to_bytes
from lrtflite_converters.tflite.joining import join

FACTS_FILE = "lrtflite.json"
PROBABILITIES = "probabilities"


def in_child(stream: BinaryIO, path: str, name: str, side: str) -> bytes:
    """Return a line of JSON, `labels` and `numbers`, and the model; see `export_model`."""
    bundle = unpacked(Path(path), stream)
    with np.load(io.BytesIO(stream.read()), allow_pickle=False) as archive:
        arrays = dict(archive)
    frames = arrays.pop(FRAMES, None)
    learned = LearnedClasses.from_arrays(arrays) if LEARNED in arrays else None
    header, content = made_model(bundle, learned, name=name, frames=frames, side=int(side))
    return json.dumps(header).encode() + b"\n" + content


def made_model(
    bundle: Bundle,
    learned: LearnedClasses | None,
    *,
    name: str,
    frames: NDArray[np.uint8] | None,
    side: int | None = None,
) -> tuple[dict[str, Any], bytes]:
    """Return the labels and the kind of numbers of an exported model, and its bytes."""
    contents = {each: bundle.content(each) for each in (FEATURES_FILE, HEAD_FILE)}
    if learned is None:
        learned = learned_as_converted(bundle, contents[HEAD_FILE])
    graph = inference_graph(bundle, contents, learned)
    if frames is not None:
        graph = quantise(graph, frames)
    side = side or bundle.manifest.input_size
    graph = take_frames(graph, side)
    numbers = FLOAT if frames is None else INT8
    if bundle.manifest.latent_dtype == INT8:
        numbers = f"{FLOAT} above {INT8} features"
    labels = "".join(f"{label}\n" for label in learned.labels)
    facts = json.dumps(_facts(bundle, learned, numbers, side), indent=2) + "\n"
    description = f"{bundle.manifest.network}, {bundle.manifest.strategy}, by lrtflite"
    metadata = model_metadata(name=name, description=description, labels_file=LABELS_FILE)
    content = with_files(
        to_bytes(graph, description=description, metadata=metadata),
        {LABELS_FILE: labels, FACTS_FILE: facts},
    )
    return {"labels": learned.labels, "numbers": numbers}, content


def inference_graph(
    bundle: Bundle, contents: Mapping[str, bytes], learned: LearnedClasses
) -> Graph:
    """Return one graph in float32: a frame in, the probabilities of learned classes out."""

    def part(name: str, signature: str, prefix: str) -> Graph:
        own = {
            key[len(prefix) :]: value
            for key, value in learned.tensors.items()
            if key.startswith(prefix)
        }
        model = load(contents[name], where=str(bundle.path / name))
        return baked_graph(model, signature, own)

    features = part(FEATURES_FILE, "extract", "features/")
    head = part(HEAD_FILE, "infer", "head/")
    graph = join(features, head, {"latents": "latents"})
    # Familiarity has no place in a plain classifier.
    graph.outputs = {PROBABILITIES: graph.outputs[PROBABILITIES]}
    settle(graph)
    keep_classes(graph, PROBABILITIES, learned.slots)
    fold(graph)
    return graph


def learned_as_converted(bundle: Bundle, head: bytes) -> LearnedClasses:
    """Return what the head had learned when it was converted."""
    model = interpreter(head)
    tensors = model.get_signature_runner("save")(zero=ZERO)
    learned = model.get_signature_runner("restore")(**tensors)["learned"] > 0
    named = {f"head/{name}": value for name, value in tensors.items()}
    return LearnedClasses.of(named, learned.tolist(), bundle.manifest.labels, sessions=0)


def _facts(bundle: Bundle, learned: LearnedClasses, numbers: str, side: int) -> dict[str, Any]:
    """Return the facts about the model that its users may need."""
    manifest = bundle.manifest
    return {
        "network": manifest.network,
        "backbone": manifest.backbone,
        "replay_layer": manifest.replay_layer,
        "strategy": manifest.strategy,
        "input_size": side,
        "resized_to": manifest.input_size,
        "frames": "uint8 RGB, centre square resized by area; scaling is in the model",
        "labels": list(learned.labels),
        "slots": list(learned.slots),
        "sessions": learned.sessions,
        "numbers": numbers,
        "bundle": bundle.identity,
        "tools": {name: importlib.metadata.version(name) for name in ("lrtflite", "tensorflow")},
    }
