"""Closed-form heads in TFLite do what they do in TensorFlow, on both runtimes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from closed_form_head import TEMPERATURE, Clouds, forget, make_head, saved, scores, teach
from lda_reference import LdaReference, far_apart
from lrtflite.runtime.flatbuffer import custom_ops

SLOTS, FEATURES, BATCH = 5, 48, 16
DEVICE = """
import sys
from pathlib import Path
import numpy as np
from lrtflite.runtime.model import Model
path, runtime, inputs, outputs = sys.argv[1:]
data, zero = np.load(inputs), np.zeros(1, np.float32)
head = Model(Path(path), runtime=runtime)
found = {}

def gather(model, latents, slots):
    for start in range(0, len(latents), 16):
        part, own = latents[start : start + 16], slots[start : start + 16]
        batch, targets = np.zeros((16, 48), np.float32), np.zeros((16, 5), np.float32)
        batch[: len(part)] = part
        targets[np.arange(len(part)), own] = 1
        model.run("gather", latents=batch, targets=targets)

for session in range(3):
    latents, slots = data[f"latents{session}"], data[f"slots{session}"]
    counts = np.bincount(slots, minlength=5).astype(np.float32)
    head.run("begin", counts=counts)
    half = len(latents) // 32 * 16
    gather(head, latents[:half], slots[:half])
    if session == 1:  # another device goes on in the middle of a session
        state, head = head.run("save", zero=zero), Model(Path(path), runtime=runtime)
        head.run("restore", **state)
    gather(head, latents[half:], slots[half:])
    head.run("consolidate", counts=counts, temperature=data["temperature"])
found.update(head.run("infer", latents=data["probe"]))
state = head.run("save", zero=zero)
found.update({f"state/{name}": value for name, value in state.items()})
fresh = Model(Path(path), runtime=runtime)
found["learned"] = fresh.run("restore", **state)["learned"]
again = fresh.run("infer", latents=data["probe"])
found["same"] = np.array([np.array_equal(again[name], found[name]) for name in again])
found["left"] = fresh.run("forget", mask=np.eye(5, dtype=np.float32)[1])["learned"]
found["forgotten"] = fresh.run("infer", latents=data["probe"])["probabilities"]
np.savez(outputs, **found)
"""


@pytest.mark.parametrize("kind", ["lda", "ncm"])
def test_tflite_does_what_tensorflow_does(kind: str, runtime: str, tmp_path: Path) -> None:
    clouds = Clouds(4, FEATURES)
    probe, _ = clouds.of_each(10)
    # Scores of the nearest mean are cosines.
    temperature = TEMPERATURE if kind == "lda" else 0.1
    inputs = {"probe": probe, "temperature": np.array([temperature], "f")}
    head, reference = make_head(kind, SLOTS, FEATURES, batch_size=BATCH), LdaReference(4, FEATURES)
    path = tmp_path / "head.tflite"
    path.write_bytes(head.to_tflite(variables=True))
    assert custom_ops(path) == []
    for session, kinds in enumerate(((0, 1), (2, 1), (3,))):
        latents = np.concatenate([clouds.draw(each, 35) for each in kinds])
        slots = np.repeat(kinds, 35)
        inputs[f"latents{session}"], inputs[f"slots{session}"] = latents, slots
        teach(head, latents, slots, temperature=temperature)
        reference.gather(latents, slots)
    np.savez(tmp_path / "inputs.npz", **inputs)
    command = [sys.executable, "-c", DEVICE, path, runtime]
    command += [tmp_path / "inputs.npz", tmp_path / "outputs.npz"]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    with np.load(tmp_path / "outputs.npz") as archive:
        found = dict(archive)

    divisor = found["state/temperature"]
    assert found["same"].all()
    np.testing.assert_array_equal(found["learned"], [1, 1, 1, 1, 0])
    np.testing.assert_array_equal(found["left"], [1, 0, 1, 1, 0])
    expected = head.run("infer", latents=probe)
    # Scores of several hundred, in float32, divided by 100.
    np.testing.assert_allclose(found["probabilities"], expected["probabilities"], atol=1e-4)
    np.testing.assert_allclose(found["familiarity"], expected["familiarity"], atol=1e-3)
    for name, value in saved(head).items():
        largest = np.abs(value).max()
        np.testing.assert_allclose(found[f"state/{name}"], value, atol=1e-3 * largest, err_msg=name)
    if kind == "lda":
        on_device = divisor * np.log(found["probabilities"][:, :4].astype(float))
        assert far_apart(on_device, reference.scores(probe)) < 1e-4
    forget(head, 1)
    others = scores(head, probe, [0, 2, 3])
    on_device = divisor * np.log(found["forgotten"][:, [0, 2, 3]].astype(float))
    assert far_apart(on_device, others) < 1e-4
    np.testing.assert_array_equal(found["forgotten"][:, [1, 4]], 0)
