"""Exported models answer as the learner does, in a stock interpreter on every runtime."""

from __future__ import annotations

import importlib
import json
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from export_bundles import BUNDLES, SIZE
from lrtflite import Learner
from lrtflite.runtime.flatbuffer import custom_ops, read_ops
from lrtflite.runtime.model import RUNTIMES
from made_bundles import made_by

ROOT = Path(__file__).resolve().parents[2]
# Slots of a deleted class and free slots are not outputs.
TAUGHT = ("mug", "hat", "shoe", "pen")
FORGOTTEN = "hat"
LABELS = ("mug", "shoe", "pen")
# Every kind of head, with and without a trunk. Bundles of other tests, and those of BUNDLES.
NAMES = ("demo", "lda", "ncm", "last-dslda", "deep-ar1", "deep-lwf", *BUNDLES)
# Bundles whose int8 answers can be compared. Closed forms on the features of a random network, with
# dozens of patterns, change half of their answers in int8; docs/export.md has them on photographs.
ROBUST = ("demo", "deep-ar1", "deep-lwf", "adapts")
TEMPERATURE = 10.0
# Numbers in the schema of ops that hold or change variables.
VARIABLE_OPS = {129, 142, 143, 144}
# Largest difference of a probability, by rounding alone.
ROUNDING = 1e-4


def frames_of(kind: int, count: int, size: int, *, seed: int) -> np.ndarray:
    """Return frames of one class: a coloured square on noise, (count, size, size, 3) uint8."""
    rng = np.random.default_rng((seed, kind))
    frames = rng.integers(0, 256, (count, size, size, 3)) // 3
    colour = np.random.default_rng(50 + kind).integers(0, 256, 3)
    for frame in frames:
        top, left = rng.integers(0, size // 2, 2)
        frame[top : top + size // 2, left : left + size // 2] = colour
    return frames.astype(np.uint8)


def held_out(size: int) -> np.ndarray:
    return np.concatenate([frames_of(kind, 6, size, seed=1) for kind in range(len(TAUGHT))])


@pytest.fixture(scope="session")
def exported(
    tmp_path_factory: pytest.TempPathFactory,
    demo: Path,
    strategy_bundles: Path,
    closed_form_bundles: Path,
) -> Path:
    """Return a folder with bundles, states of three classes, and their exported models."""
    folder = made_by("export_bundles.py", tmp_path_factory.mktemp("exported"))
    sources = {"demo": demo.parent, **dict.fromkeys(("lda", "ncm"), closed_form_bundles)}
    for name in NAMES:
        if name not in BUNDLES:
            source = sources.get(name, strategy_bundles)
            (folder / name).symlink_to(demo if name == "demo" else source / name)
        teach(folder / name, folder / f"{name}-state")
        np.save(folder / f"{name}.npy", held_out(sizes(name)))
    return made_by("exported_models.py", folder)


def sizes(name: str) -> int:
    """Return the side of a bundle's frames."""
    return 128 if name == "demo" else SIZE


def teach(bundle: Path, state: Path) -> None:
    """Teach four classes in two sessions, and forget one."""
    with Learner.open(bundle, state) as learner:
        size, training = learner.bundle.manifest.input_size, learner.training
        training = training.with_options(epochs=2, least_steps=6)
        if learner.bundle.manifest.strategy == "ncm":
            # A random network has class directions so close that the default temperature amplifies
            # rounding: the learner itself differs by 2e-4 between runtimes, the export by 4e-4.
            training = training.with_options(temperature=TEMPERATURE)
        for kinds in ((0, 1), (2, 3)):
            frames = np.concatenate([frames_of(kind, 12, size, seed=0) for kind in kinds])
            labels = [TAUGHT[kind] for kind in kinds for _ in range(12)]
            learner.learn(frames, labels, training=training)
        learner.forget(FORGOTTEN)


def stock(path: Path, runtime: str) -> Any:
    """Return the runtime's own interpreter, as any other program uses it."""
    module = importlib.import_module(RUNTIMES[runtime][1])
    interpreter = module.Interpreter(model_path=str(path), num_threads=1)
    interpreter.allocate_tensors()
    return interpreter


def answers(interpreter: Any, frames: np.ndarray) -> np.ndarray:
    """Return the outputs (n, classes) as probabilities."""
    (into,), (out,) = interpreter.get_input_details(), interpreter.get_output_details()
    found = []
    for frame in frames:
        interpreter.set_tensor(into["index"], frame[np.newaxis])
        interpreter.invoke()
        found.append(interpreter.get_tensor(out["index"])[0].astype(np.float64))
    scale, zero = out["quantization"]
    return (np.array(found) - zero) * scale if scale else np.array(found)


def learner_answers(folder: Path, name: str, runtime: str) -> np.ndarray:
    """Return the learner's probabilities (n, 3) of the learned classes, in the order of slots."""
    state = folder / f"{name}-state"
    with Learner.open(folder / name, state, runtime=runtime, read_only=True) as learner:
        found = learner.probabilities(learner.extract(held_out(sizes(name))))
        return found[:, [learner.labels.index(label) for label in LABELS]]


@pytest.mark.parametrize("name", NAMES)
def test_a_float_model_answers_as_the_learner(exported: Path, name: str, runtime: str) -> None:
    model = stock(exported / f"{name}-float32" / "model.tflite", runtime)
    found = answers(model, held_out(sizes(name)))
    wanted = learner_answers(exported, name, runtime)
    assert np.ptp(wanted) > 0.02, "the learner tells the frames apart"
    np.testing.assert_allclose(found, wanted, rtol=0, atol=ROUNDING)


@pytest.mark.parametrize("name", ROBUST)
def test_an_int8_model_agrees_where_the_learner_is_sure(
    exported: Path, name: str, runtime: str
) -> None:
    model = stock(exported / f"{name}-int8" / "model.tflite", runtime)
    found, wanted = answers(model, held_out(sizes(name))), learner_answers(exported, name, runtime)
    first, second = np.sort(wanted, axis=1)[:, [-1, -2]].T
    agree = (found.argmax(axis=1) == wanted.argmax(axis=1))[first - second > 0.3]
    assert agree.size > 20, "the learner is sure of most frames"
    assert agree.sum() >= 0.9 * agree.size - 1
    # The networks are random, and a step of 16 channels is large; photographs: docs/export.md.
    assert np.abs(found - wanted).mean() < 0.1


@pytest.mark.parametrize("numbers", ["float32", "int8"])
@pytest.mark.parametrize("name", NAMES)
def test_a_model_is_a_plain_classifier(
    exported: Path, name: str, numbers: str, runtime: str
) -> None:
    path = exported / f"{name}-{numbers}" / "model.tflite"
    model = stock(path, runtime)
    assert model.get_signature_list() == {
        "serving_default": {"inputs": ["frames"], "outputs": ["probabilities"]}
    }
    (into,), (out,) = model.get_input_details(), model.get_output_details()
    side = sizes(name)
    assert into["shape"].tolist() == into["shape_signature"].tolist() == [1, side, side, 3]
    assert out["shape"].tolist() == [1, len(LABELS)]
    assert into["dtype"] == np.uint8
    assert out["dtype"] == (np.float32 if numbers == "float32" else np.uint8)
    assert VARIABLE_OPS.isdisjoint(op.code for op in read_ops(path))
    assert custom_ops(path) == []


@pytest.mark.parametrize("name", ["demo", "deep-ar1", "deep-lwf", "adapts"])
def test_a_trunk_is_convolutions_alone(exported: Path, name: str) -> None:
    # CAST, MUL and SUB scale the frame. CONV_2D, DEPTHWISE_CONV_2D, MEAN, FULLY_CONNECTED, SOFTMAX.
    expected = {53, 18, 41, 3, 4, 40, 9, 25}
    found = {op.code for op in read_ops(exported / f"{name}-float32" / "model.tflite")}
    assert found <= expected


def test_labels_and_facts_are_in_a_zip_at_the_end(exported: Path) -> None:
    folder = exported / "lda-int8"
    text = (folder / "labels.txt").read_text(encoding="utf-8")
    assert text.splitlines() == list(LABELS)
    with zipfile.ZipFile(folder / "model.tflite") as archive:
        assert archive.testzip() is None
        assert archive.read("labels.txt").decode() == text
        facts = json.loads(archive.read("lrtflite.json"))
    assert facts["labels"] == list(LABELS)
    assert facts["slots"] == [0, 2, 3]
    assert (facts["strategy"], facts["replay_layer"], facts["sessions"]) == (
        "lda",
        "conv5_6/sep",
        2,
    )
    assert (facts["numbers"], facts["input_size"]) == ("int8", SIZE)
    assert sorted(path.name for path in folder.iterdir()) == ["labels.txt", "model.tflite"]


def test_snippet_of_the_page(
    exported: Path, runtime: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    from PIL import Image

    page = (ROOT / "docs" / "export.md").read_text(encoding="utf-8")
    (snippet,) = re.findall(r"^```python\n(.*?)^```", page, re.M | re.S)
    snippet = snippet.replace("ai_edge_litert.interpreter", RUNTIMES[runtime][1])
    folder = exported / "demo-int8"
    monkeypatch.chdir(tmp_path)
    for name in ("model.tflite", "labels.txt"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    Image.fromarray(held_out(128)[0]).save("picture.png")
    exec(compile(snippet, "export.md", "exec"), {})
    label, _, share = capsys.readouterr().out.strip().rpartition(" ")
    assert label in LABELS
    assert 0 < float(share) <= 1
