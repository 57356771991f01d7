"""Export what a learner has learned as one plain TFLite model, and its labels."""

from __future__ import annotations

import importlib.metadata
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable

import numpy as np
from numpy.typing import NDArray

from lrtflite.bundle.bundle import FEATURES_FILE, HEAD_FILE, Bundle
from lrtflite.contract.signatures import ZERO
from lrtflite.files.atomic import replacing, writing
from lrtflite_converters.export.baking import baked_graph
from lrtflite_converters.export.classes import keep_classes
from lrtflite_converters.export.folding import fold
from lrtflite_converters.export.int8 import quantise
from lrtflite_converters.export.metadata import model_metadata, with_files
from lrtflite_converters.export.request import FLOAT, INT8, LABELS_FILE, Files, Learned
from lrtflite_converters.export.settling import interpreter, settle
from lrtflite_converters.tflite.graph import Graph
from lrtflite_converters.tflite.graph_file import load, to_bytes
from lrtflite_converters.tflite.joining import join

FACTS_FILE = "lrtflite.json"
FRAMES, PROBABILITIES = "frames", "probabilities"
Stage = Callable[[str], None]


@dataclass(frozen=True)
class Exported:
    """The files that were written, and the labels of the model's outputs.

    `numbers` is the kind of the weights: float32, int8, or float32 above int8 features.
    """

    model: Path
    labels_file: Path
    labels: tuple[str, ...]
    bytes: int
    numbers: str


def export_model(
    bundle: Bundle,
    learned: Learned | None,
    files: Files,
    *,
    frames: NDArray[np.uint8] | None = None,
    stage: Stage = lambda text: None,
) -> Exported:
    """Write the model of a bundle with what was learned, in int8 if there are `frames`.

    `learned` is None for a bundle without a state, whose models have the values from conversion.
    """
    contents = {name: _content(bundle, name) for name in (FEATURES_FILE, HEAD_FILE)}
    if learned is None:
        learned = learned_as_converted(bundle, contents[HEAD_FILE])
    stage("joining both models")
    graph = inference_graph(bundle, contents, learned)
    if frames is not None:
        stage(f"quantising with {len(frames)} frames")
        graph = quantise(graph, frames)
    numbers = FLOAT if frames is None else INT8
    if bundle.manifest.latent_dtype == INT8:
        numbers = f"{FLOAT} above {INT8} features"
    labels = "".join(f"{label}\n" for label in learned.labels)
    facts = json.dumps(_facts(bundle, learned, numbers), indent=2) + "\n"
    description = f"{bundle.manifest.network}, {bundle.manifest.strategy}, by lrtflite"
    metadata = model_metadata(
        name=files.model.stem, description=description, labels_file=LABELS_FILE
    )
    content = with_files(
        to_bytes(graph, description=description, metadata=metadata),
        {LABELS_FILE: labels, FACTS_FILE: facts},
    )
    with writing(files.model), replacing(files.labels) as text, replacing(files.model) as model:
        text.write_bytes(labels.encode())
        model.write_bytes(content)
    return Exported(files.model, files.labels, learned.labels, len(content), numbers)


def inference_graph(bundle: Bundle, contents: Mapping[str, bytes], learned: Learned) -> Graph:
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


def _content(bundle: Bundle, name: str) -> bytes:
    return bundle.contents[name] if name in bundle.contents else (bundle.path / name).read_bytes()


def learned_as_converted(bundle: Bundle, head: bytes) -> Learned:
    """Return what the head had learned when it was converted."""
    model = interpreter(head)
    tensors = model.get_signature_runner("save")(zero=ZERO)
    learned = model.get_signature_runner("restore")(**tensors)["learned"] > 0
    named = {f"head/{name}": value for name, value in tensors.items()}
    return Learned.of(named, learned.tolist(), bundle.manifest.labels, sessions=0)


def _facts(bundle: Bundle, learned: Learned, numbers: str) -> dict[str, Any]:
    """Return the facts about the model that its users may need."""
    manifest = bundle.manifest
    return {
        "network": manifest.network,
        "backbone": manifest.backbone,
        "replay_layer": manifest.replay_layer,
        "strategy": manifest.strategy,
        "input_size": manifest.input_size,
        "frames": "uint8 RGB, centre square resized by area; scaling is in the model",
        "labels": list(learned.labels),
        "slots": list(learned.slots),
        "sessions": learned.sessions,
        "numbers": numbers,
        "bundle": bundle.identity,
        "tools": {name: importlib.metadata.version(name) for name in ("lrtflite", "tensorflow")},
    }
