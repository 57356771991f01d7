"""A bundle split below the last layer, with models of a few lines of numpy in place of TFLite's.

Latents are frames less a mean that adapts (or the frames themselves, at `images`). The head has a
trunk of one scale and one moment, which `train` moves by exactly `trunk_lr` and `moment_rate`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from learning import DEFAULTS
from lrtflite.bundle import FILES, digest
from lrtflite.manifest import Manifest
from lrtflite.runtime import Signature, Tensor

SIZE, SLOTS, BATCH, NEW = 4, 5, 6, 3
SHAPE = (SIZE, SIZE, 3)
TRAINING = DEFAULTS.with_options(
    lr=0.5, epochs=2, trunk_lr=0.25, moment_rate=0.125, adapt_rate=0.0625, least_steps=1
)


def make_bundle(folder: Path, **changes: Any) -> Path:
    """The files of a bundle at conv5_4/dw that adapts its moments, unless `changes` say other."""
    folder.mkdir(parents=True)
    layer = changes.get("replay_layer", "conv5_4/dw")
    for name in FILES:
        (folder / name).write_text(f"{name} of {layer}")
    facts: dict[str, Any] = {
        "replay_layer": layer,
        "input_size": SIZE,
        "latent_shape": SHAPE,
        "latent_range": (-255.0, 255.0),
        "labels": (None,) * SLOTS,
        "batch_size": BATCH,
        "new_per_batch": NEW,
        "training": TRAINING,
        "replay_size": 8,
        "policy": "algorithm1",
        "backbone": "a few lines of numpy",
        "files": {name: digest(folder / name) for name in FILES},
        "adapt_moments": True,
    }
    manifest = Manifest(**{**facts, **changes})
    (folder / "manifest.json").write_text(manifest.to_json())
    return folder


def tensors(dtype: Any = np.float32, **shapes: tuple[int, ...]) -> dict[str, Tensor]:
    return {name: Tensor(shape, np.dtype(dtype)) for name, shape in shapes.items()}


class FakeModel:
    """Stands for `lrtflite.runtime.Model`; `calls` has each signature that ran, with its inputs."""

    runtime = "fake"

    def __init__(self, path: Path, *, runtime: str = "auto", threads: int = 1) -> None:
        self.path = path
        self.calls: list[tuple[str, dict[str, Any]]] = []
        manifest = (path.parent / "manifest.json").read_text()
        self.manifest = Manifest.from_json(manifest, where=str(path))
        head = path.name == "head.tflite"
        self.signatures = self._head_signatures() if head else self._features_signatures()
        self.state: dict[str, Any] = {
            name: np.zeros(tensor.shape, np.float32)
            for name, tensor in self.signatures.get("restore", Signature({}, {})).inputs.items()
        }

    def buffer(self, signature: str, name: str) -> Any:
        tensor = self.signatures[signature].inputs[name]
        return np.empty(tensor.shape, tensor.dtype)

    def run(self, signature: str, **inputs: Any) -> dict[str, Any]:
        listed = self.signatures[signature].inputs
        assert set(inputs) == set(listed), f"{signature} takes {set(listed)}"
        for name, value in inputs.items():
            assert value.dtype == listed[name].dtype, f"{signature} {name} is {value.dtype}"
            fixed = [n for n in zip(value.shape, listed[name].shape) if n[1] != -1]
            assert all(found == wanted for found, wanted in fixed), f"{name} is {value.shape}"
        self.calls.append((signature, {name: np.array(value) for name, value in inputs.items()}))
        with np.errstate(over="ignore"):
            outputs: dict[str, Any] = getattr(self, signature)(**inputs)
        return outputs

    def inputs_of(self, signature: str) -> list[dict[str, Any]]:
        return [inputs for name, inputs in self.calls if name == signature]

    def save(self) -> dict[str, Any]:
        return {name: values.copy() for name, values in self.state.items()}

    def restore(self, **state: Any) -> dict[str, Any]:
        self.state = {name: np.array(values) for name, values in state.items()}
        return {}

    # The features.

    def extract(self, frames: Any) -> dict[str, Any]:
        if self.manifest.latent_dtype == "uint8":
            return {"latents": frames.copy()}
        return {"latents": frames.astype(np.float32) - self.state.get("mean", np.float32(0))}

    def adapt(self, frames: Any, rate: Any) -> dict[str, Any]:
        before = self.state["mean"]
        self.state["mean"] = before + rate * (frames.mean(dtype=np.float32) - before)
        return {"moved": abs(self.state["mean"] - before)}

    # The head.

    def infer(self, latents: Any) -> dict[str, Any]:
        rows = latents.reshape(len(latents), -1).astype(np.float32) * (1 + self.state["scale"])
        scores = rows @ self.state["cw"].T
        known = self.state["past"] > 0
        shares = np.where(known, np.exp(scores - scores.max()), 0)
        return {"probabilities": (shares / max(shares.sum(), 1e-9)).astype(np.float32)}

    def begin(self, counts: Any, head_start: Any) -> dict[str, Any]:
        return {"classes": np.float32((counts > 0).sum())}

    def train(self, latents: Any, targets: Any, lr: Any, **rates: Any) -> dict[str, Any]:
        rows = latents.reshape(len(latents), -1).astype(np.float32)
        self.state["cw"] = self.state["cw"] + lr * (targets.T @ rows) / 1000
        self.state["scale"] = self.state["scale"] + rates.get("trunk_lr", np.float32(0))
        self.state["moment"] = self.state["moment"] + rates.get("moment_rate", np.float32(0))
        return {"loss": np.float32(1), "accuracy": np.float32(0.5)}

    def consolidate(self, counts: Any) -> dict[str, Any]:
        self.state["past"] = self.state["past"] + counts
        return {"average": np.float32(0)}

    def _features_signatures(self) -> dict[str, Signature]:
        frames = tensors(np.uint8, frames=(-1, *SHAPE))
        latents = tensors(self.manifest.latent_dtype, latents=(-1, *SHAPE))
        found = {"extract": Signature(frames, latents)}
        if self.manifest.adapt_moments:
            group = tensors(np.uint8, frames=(NEW, *SHAPE))
            found["adapt"] = Signature({**group, **tensors(rate=(1,))}, tensors(moved=()))
            found["save"] = Signature({}, tensors(mean=(1,)))
            found["restore"] = Signature(tensors(mean=(1,)), {})
        return found

    def _head_signatures(self) -> dict[str, Signature]:
        dtype = self.manifest.latent_dtype
        state = tensors(cw=(SLOTS, SIZE * SIZE * 3), past=(SLOTS,), scale=(1,), moment=(1,))
        rates = tensors(lr=(1,), trunk_lr=(1,), momentum=(1,), weight_decay=(1,), moment_rate=(1,))
        batch = {**tensors(dtype, latents=(BATCH, *SHAPE)), **tensors(targets=(BATCH, SLOTS))}
        return {
            "infer": Signature(
                tensors(dtype, latents=(-1, *SHAPE)), tensors(probabilities=(-1, SLOTS))
            ),
            "begin": Signature(tensors(counts=(SLOTS,), head_start=(1,)), tensors(classes=())),
            "train": Signature({**batch, **rates}, tensors(loss=(), accuracy=())),
            "consolidate": Signature(tensors(counts=(SLOTS,)), tensors(average=())),
            "save": Signature({}, state),
            "restore": Signature(state, {}),
        }
