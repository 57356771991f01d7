"""Inference graphs: constants for variables, folded units, pruned classes, metadata, failures."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from lrtflite.bundle.bundle import Bundle
from lrtflite.errors import ConversionError, DataError, StateError
from lrtflite.runtime.flatbuffer import FlatTable
from lrtflite_converters.export import export
from lrtflite_converters.export.baking import baked_graph
from lrtflite_converters.export.classes import keep_classes
from lrtflite_converters.export.folding import fold
from lrtflite_converters.export.int8 import quantise
from lrtflite_converters.export.metadata import model_metadata
from lrtflite_converters.export.request import Files, LearnedClasses
from lrtflite_converters.export.settling import interpreter, settle
from lrtflite_converters.features.features import Features
from lrtflite_converters.heads.head import softmax_over
from lrtflite_converters.quantise.calibration import check_frames
from lrtflite_converters.tflite.convert import to_tflite
from lrtflite_converters.tflite.graph import Code, Graph
from lrtflite_converters.tflite.graph_file import load, signature_graph, to_bytes
from lrtflite_converters.tflite.joining import join
from residual_network import SIZE, make_network
from trunk_head import make_head

RNG = np.random.default_rng(0)


def graph_of(function: Any, shape: tuple[int, ...]) -> Graph:
    """Convert a function of one tensor, and fix its shapes."""
    module = tf.Module()
    spec = tf.TensorSpec((None, *shape[1:]), tf.float32, name="x")
    traced = tf.function(lambda x: {"y": function(x)}, input_signature=[spec])
    content = to_tflite(module, {"run": traced.get_concrete_function()}, variables=False)
    graph = signature_graph(load(content, where="a test"), "run")
    settle(graph)
    return graph


def run(graph: Graph, x: np.ndarray) -> np.ndarray:
    model = interpreter(to_bytes(graph))
    return model.get_signature_runner("serving_default")(x=x)["y"]


def test_a_unit_becomes_one_convolution() -> None:
    kernel = RNG.normal(size=(1, 3, 5)).astype("f")
    scale, shift = RNG.normal(size=(2, 5)).astype("f")

    def unit(x: tf.Tensor) -> tf.Tensor:
        # A sum of x keeps the converter from folding: it looks like weights that change.
        weights = kernel + 0.0 * tf.reduce_sum(x)
        z = tf.matmul(tf.reshape(x, [1, -1, 3]), weights)
        return tf.reshape(tf.nn.relu6(z * scale + shift), [-1, 4, 4, 5])

    graph = graph_of(unit, (1, 4, 4, 3))
    product = next(op for op in graph.ops if op.code == Code.BATCH_MATMUL)
    assert product.inputs[1] is not None
    product.inputs[1].value = kernel
    fold(graph)
    assert [op.code for op in graph.ops] == [Code.CONV_2D]
    x = RNG.normal(size=(1, 4, 4, 3)).astype("f")
    wanted = np.clip((x @ kernel[0]) * scale + shift, 0, 6)
    np.testing.assert_allclose(run(graph, x), wanted, atol=1e-5)


def test_a_product_that_is_used_twice_is_not_scaled() -> None:
    kernel = RNG.normal(size=(3, 5)).astype("f")

    def both(x: tf.Tensor) -> tf.Tensor:
        z = tf.matmul(x, kernel)
        return z * 3.0 + tf.sin(z)

    graph = graph_of(both, (1, 3))
    fold(graph)
    x = RNG.normal(size=(1, 3)).astype("f")
    z = x @ kernel
    np.testing.assert_allclose(run(graph, x), 3 * z + np.sin(z), atol=1e-5)


def test_outputs_of_learned_classes_alone() -> None:
    kernel = RNG.normal(size=(3, 6)).astype("f")
    learned = np.array([1, 0, 0, 1, 1, 0], "f")
    graph = graph_of(lambda x: softmax_over(tf.matmul(x, kernel), tf.constant(learned)), (1, 3))
    keep_classes(graph, "y", [0, 3, 4])
    fold(graph)
    assert [op.code for op in graph.ops] == [Code.FULLY_CONNECTED, Code.SOFTMAX]
    x = RNG.normal(size=(1, 3)).astype("f")
    scores = np.exp((x @ kernel)[:, [0, 3, 4]])
    np.testing.assert_allclose(run(graph, x), scores / scores.sum(), atol=1e-6)


def test_an_answer_that_is_no_softmax_keeps_its_ops() -> None:
    graph = graph_of(lambda x: tf.square(x), (1, 4))
    keep_classes(graph, "y", [3, 1])
    x = RNG.normal(size=(1, 4)).astype("f")
    np.testing.assert_allclose(run(graph, x), x[:, [3, 1]] ** 2, rtol=1e-6)


class Twins(tf.Module):
    """Two variables with one name, and one that `restore` does not know."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = (tf.Variable(tf.zeros(2), name="weights") for _ in range(2))
        self.c = tf.Variable([5.0, 7.0], name="other")

    @tf.function(input_signature=[tf.TensorSpec((None, 2), tf.float32)])
    def infer(self, x: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"y": self.a * x + self.b + self.c}

    @tf.function(
        input_signature=[tf.TensorSpec(2, tf.float32, name=name) for name in ("first", "second")]
    )
    def restore(self, first: tf.Tensor, second: tf.Tensor) -> dict[str, tf.Tensor]:
        self.a.assign(first)
        self.b.assign(second)
        return {"done": first + second}


def test_variables_become_the_tensors_of_a_state() -> None:
    twins = Twins()
    signatures = {name: getattr(twins, name) for name in ("infer", "restore")}
    model = load(to_tflite(twins, signatures, variables=True), where="a test")
    first, second = np.array([2.0, 3.0], "f"), np.array([10.0, 20.0], "f")
    graph = baked_graph(model, "infer", {"first": first, "second": second})
    settle(graph)
    x = RNG.normal(size=(1, 2)).astype("f")
    np.testing.assert_allclose(run(graph, x), first * x + second + [5, 7], rtol=1e-6)
    for wrong in ({"first": first}, {"first": first, "second": second[:1]}):
        with pytest.raises(StateError, match="'second' of"):
            baked_graph(model, "infer", wrong)


def test_metadata_names_the_file_of_labels() -> None:
    data = model_metadata(name="things", description="a test", labels_file="labels.txt")
    assert data[4:8] == b"M001"
    model = FlatTable(data, struct.unpack_from("<I", data, 0)[0])
    assert (model.string(0), model.string(1)) == ("things", "a test")
    (graph,) = model.tables(3)
    (frames,), (answers,) = graph.tables(2), graph.tables(3)
    assert (frames.string(0), answers.string(0)) == ("frames", "probabilities")
    (labels,) = answers.tables(6)
    assert labels.string(0) == "labels.txt"
    assert labels.scalar(2, "<b", 0) == 2, "TENSOR_AXIS_LABELS"


def test_a_failed_export_leaves_the_old_files(
    demo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> bytes:
        raise ConversionError("no")

    monkeypatch.setattr(export, "run_child", fails)
    files = Files(tmp_path / "model.tflite")
    files.model.write_text("old")
    bundle = Bundle.open(demo)
    learned = with_one_class(bundle)
    with pytest.raises(ConversionError, match="no"):
        export.export_model(bundle, learned, files, frames=np.zeros((1, 128, 128, 3), np.uint8))
    assert [path.name for path in tmp_path.iterdir()] == ["model.tflite"]
    assert files.model.read_text() == "old"


def with_one_class(bundle: Bundle) -> LearnedClasses:
    """Return the values of a head as converted, as if it had learned a class in slot 0."""
    model = interpreter(bundle.head.path.read_bytes())
    tensors = model.get_signature_runner("save")(zero=np.zeros(1, "f"))
    tensors["past"][0] = 1
    return LearnedClasses.of(
        {f"head/{name}": value for name, value in tensors.items()},
        [slot == 0 for slot in range(bundle.manifest.slots)],
        ["mug", *bundle.manifest.labels[1:]],
        sessions=1,
    )


def test_frames_to_calibrate_with() -> None:
    flat = np.full((8, 8, 3), 7, np.uint8)
    with pytest.raises(DataError, match="got none"):
        check_frames([], "nothing", 8)
    with pytest.raises(DataError, match="one colour each"):
        check_frames([flat, np.full_like(flat, 9)], "walls", 8)
    check_frames([flat, np.arange(192, dtype=np.uint8).reshape(8, 8, 3)], "things", 8)


def test_a_residual_trunk_is_convolutions_and_additions() -> None:
    network = make_network(0)
    features, head = Features(network, "stem"), make_head(network, "stem", batch_size=4)
    tensors = head.run("save", zero=np.zeros(1, "f"))
    rng = np.random.default_rng(1)
    graph = join(
        baked_graph(load(features.to_bytes(), where="a test"), "extract", {}),
        baked_graph(load(head.to_tflite(variables=True), where="a test"), "infer", tensors),
        {"latents": "latents"},
    )
    graph.outputs = {"y": graph.outputs["probabilities"]}
    graph.inputs = {"x": graph.inputs["frames"]}
    settle(graph)
    keep_classes(graph, "y", range(len(tensors["past"])))
    fold(graph)
    assert {op.name for op in graph.ops} == {
        *("CAST", "MUL", "SUB"),  # scaling of the frame
        *("CONV_2D", "DEPTHWISE_CONV_2D", "ADD", "MEAN", "FULLY_CONNECTED", "SOFTMAX"),
    }
    frame = rng.integers(0, 256, (1, SIZE, SIZE, 3), np.uint8)
    latents = features.run("extract", frames=frame)["latents"]
    wanted = head.run("infer", latents=latents)["probabilities"]
    np.testing.assert_allclose(run(graph, frame), wanted, atol=1e-5)
    quantised = quantise(graph, rng.integers(0, 256, (8, SIZE, SIZE, 3), np.uint8))
    found = run(quantised, frame).astype("f") / 256
    assert np.abs(found - wanted).max() < 0.2
