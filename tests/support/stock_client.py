"""Teach two classes with a stock interpreter: `python tests/support/stock_client.py MODULE BUNDLE`.

MODULE is that of a runtime, BUNDLE a converted folder. Only that module, numpy and JSON are used,
as in a client of another language. The results are printed as JSON.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

# Most steps until the loss has to be a tenth of the first one.
MAX_STEPS = 60
# Frames of each class that are taught, and that are held out.
TAUGHT, HELD_OUT = 20, 10
# Slots of the two classes.
SLOTS = (0, 7)


def frames_of(kind: int, count: int, size: int, *, seed: int) -> np.ndarray:
    """Return frames of one class: stripes of its own direction and colour on noise, uint8."""
    rng = np.random.default_rng((seed, kind))
    frames = rng.integers(0, 60, (count, size, size, 3))
    colour = ((200, 40, 20), (10, 90, 190))[kind]
    for frame in frames:
        begin = int(rng.integers(16))
        stripes = (np.arange(size) + begin) // 8 % 2 == 0
        (frame if kind else frame.transpose(1, 0, 2))[stripes] += np.array(colour)
    return np.clip(frames, 0, 255).astype(np.uint8)


class Client:
    """Runs signatures of a bundle by name."""

    def __init__(self, module: str, bundle: Path) -> None:
        self._interpreter = importlib.import_module(module).Interpreter
        self._bundle = bundle
        self.manifest = json.loads((bundle / "manifest.json").read_text())
        self._features = self.loaded("features.tflite")

    def loaded(self, name: str) -> Any:
        return self._interpreter(model_path=str(self._bundle / name), num_threads=1)

    def call(self, model: Any, name: str, **inputs: Any) -> dict[str, np.ndarray]:
        """Run a signature; its rates come from the manifest, by name."""
        runner = model.get_signature_runner(name)
        for rate, detail in runner.get_input_details().items():
            if rate not in inputs:
                value = self.manifest["rates"][rate]["value"]
                inputs[rate] = np.full(detail["shape"], value, np.float32)
        return {name: np.array(value) for name, value in runner(**inputs).items()}

    def latents_of(self, seed: int, count: int) -> np.ndarray:
        """Return the latents of both classes, `count` of each."""
        size = self.manifest["input_size"]
        frames = np.concatenate([frames_of(kind, count, size, seed=seed) for kind in (0, 1)])
        found = [self.call(self._features, "extract", frames=frame[np.newaxis]) for frame in frames]
        return np.concatenate([each["latents"] for each in found])


def main(module: str, bundle: Path) -> dict[str, Any]:
    client = Client(module, bundle)
    call, manifest, head = client.call, client.manifest, client.loaded("head.tflite")
    taught, truth = client.latents_of(0, TAUGHT), np.repeat(SLOTS, TAUGHT)
    probes, expected = client.latents_of(1, HELD_OUT), np.repeat(SLOTS, HELD_OUT)
    slots, batch = len(manifest["labels"]), manifest["feeding"]["batch_size"]
    counts = np.bincount(truth, minlength=slots).astype(np.float32)
    before = call(head, "infer", latents=probes)["probabilities"]
    call(head, "begin", counts=counts)
    rng = np.random.default_rng(0)
    losses: list[float] = []
    while len(losses) < MAX_STEPS and not (losses and losses[-1] < 0.1 * losses[0]):
        rows = rng.integers(0, len(taught), batch)
        targets = np.eye(slots, dtype=np.float32)[truth[rows]]
        losses.append(float(call(head, "train", latents=taught[rows], targets=targets)["loss"][0]))
    learned = call(head, "consolidate", counts=counts)["learned"]
    after = call(head, "infer", latents=probes)["probabilities"]
    saved = call(head, "save", zero=np.zeros(1, np.float32))
    fresh = client.loaded("head.tflite")
    unlearned = call(fresh, "infer", latents=probes)["probabilities"]
    call(fresh, "restore", **saved)
    again = call(fresh, "infer", latents=probes)["probabilities"]
    return {
        "signatures": sorted(head.get_signature_list()),
        "losses": losses,
        "learned": np.flatnonzero(learned).tolist(),
        "answered before": float(before.max()),
        "answered by a fresh head": float(unlearned.max()),
        "right": float((after.argmax(axis=1) == expected).mean()),
        "sum": [float(after.sum(axis=1).min()), float(after.sum(axis=1).max())],
        "same after restore": bool(np.array_equal(again, after)),
        "imported": [name for name in sys.modules if name.startswith(("lrtflite", "tensorflow"))],
    }


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], Path(sys.argv[2]))))
