"""A bundle split below the last layer, with numpy models in place of TFLite ones.

Latents are frames less a mean that adapts (or the frames themselves, at `images`). The head has a
trunk of one scale and one moment, which `train` moves by exactly `trunk_lr` and `moment_rate`;
`train_last` leaves both alone. A bundle's `strategy` is one of STEPS.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from learning import DEFAULTS
from lrtflite import Learner, Training
from lrtflite.bundle.bundle import FILES, Bundle
from lrtflite.bundle.feeding import Feeding
from lrtflite.bundle.manifest import Manifest
from lrtflite.bundle.manifest_json import read_manifest
from lrtflite.contract.checking import breaches
from lrtflite.contract.signatures import FEATURES, HEAD, Sizes, signatures_of
from lrtflite.files.bundle_file import BundleFile
from lrtflite.files.digest import digest
from lrtflite.opening import open_committed
from lrtflite.options import LearnerOptions
from lrtflite.runtime.model import Signature, Tensor

SIZE, SLOTS, BATCH, NEW = 4, 5, 6, 3
SHAPE = (SIZE, SIZE, 3)
FEEDING = Feeding(batch_size=BATCH, new_per_batch=NEW, epochs=2, least_steps=1)
TRAINING = replace(
    DEFAULTS.with_options(lr=0.5, trunk_lr=0.25, moment_rate=0.125, adapt_rate=0.0625),
    feeding=FEEDING,
)
# Signatures with which the head of each strategy learns.
STEPS = {
    "steps": ("train", "train_last"),
    "one kind of step": ("train",),
    "gathering": ("gather",),
    "steps and gathering": ("train", "train_last", "gather"),
}
_LAST = ("lr", "momentum", "weight_decay")
_EVERY = (*_LAST, "trunk_lr", "moment_rate")
RATES = {"begin": ("head_start",), "train": _EVERY, "train_last": _LAST}
RATES["adapt"] = ("adapt_rate", "epochs")


def make_bundle(folder: Path, *, training: Training = TRAINING, **changes: Any) -> Path:
    """Write a bundle at conv5_4/dw with adapting moments; `changes` replace manifest fields."""
    folder.mkdir(parents=True)
    layer = changes.get("replay_layer", "conv5_4/dw")
    for name in FILES:
        (folder / name).write_text(f"{name} of {layer}")
    facts: dict[str, Any] = {
        "network": "mobilenet_v1",
        "replay_layer": layer,
        "strategy": "steps",
        "input_size": SIZE,
        "latent_shape": SHAPE,
        "latent_range": (-255.0, 255.0),
        "labels": (None,) * SLOTS,
        "feeding": training.feeding,
        "rates": training.rates,
        "merging": {},
        "replay_size": 8,
        "policy": "algorithm1",
        "backbone": "a few lines of numpy",
        "trains_trunk": True,
        "files": {name: digest(folder / name) for name in FILES},
        "adapt_moments": True,
    }
    manifest = Manifest(**{**facts, **changes})
    (folder / "manifest.json").write_text(manifest.to_json())
    return folder


def tensors(**shapes: tuple[int, ...]) -> dict[str, Tensor]:
    return {name: Tensor(shape, np.dtype(np.float32)) for name, shape in shapes.items()}


def one(value: Any) -> np.ndarray:
    return np.full(1, value, np.float32)


class FakeModel:
    """A stand-in for `lrtflite.runtime.model.Model`; `calls` has each call with its inputs."""

    runtime = "fake"

    def __init__(
        self,
        file: Path | BundleFile,
        *,
        runtime: str = "auto",
        threads: int = 1,
        prepare: bool = False,
    ) -> None:
        self.path = path = BundleFile.of(file).path
        self.calls: list[tuple[str, dict[str, Any]]] = []
        manifest = (path.parent / "manifest.json").read_text()
        self.manifest = read_manifest(manifest, where=str(path))
        part = path.stem
        self.signatures = self._signatures(part)
        assert breaches(self.manifest, part, self.signatures) == []
        self.state: dict[str, Any] = {
            name: np.zeros(tensor.shape, np.float32)
            for name, tensor in self.signatures.get("restore", Signature({}, {})).inputs.items()
        }

    def buffer(self, signature: str, name: str) -> Any:
        tensor = self.signatures[signature].inputs[name]
        return np.empty(tensor.shape, tensor.dtype)

    def run(self, signature: str, **inputs: Any) -> dict[str, Any]:
        self._check(f"{signature} takes", inputs, self.signatures[signature].inputs)
        self.calls.append((signature, {name: np.array(value) for name, value in inputs.items()}))
        with np.errstate(over="ignore"):
            outputs: dict[str, Any] = getattr(self, signature)(**inputs)
        self._check(f"{signature} gives", outputs, self.signatures[signature].outputs)
        return outputs

    def inputs_of(self, signature: str) -> list[dict[str, Any]]:
        return [inputs for name, inputs in self.calls if name == signature]

    def save(self, zero: Any) -> dict[str, Any]:
        return {name: values + zero for name, values in self.state.items()}

    def restore(self, **state: Any) -> dict[str, Any]:
        self.state = {name: np.array(values) for name, values in state.items()}
        return self._learned() if "past" in state else {"restored": one(len(state))}

    # The features.

    def extract(self, frames: Any) -> dict[str, Any]:
        if self.manifest.latent_dtype == "uint8":
            return {"latents": frames.copy()}
        return {"latents": frames.astype(np.float32) - self.state.get("mean", np.float32(0))}

    def adapt(self, frames: Any, adapt_rate: Any, epochs: Any) -> dict[str, Any]:
        before, rate = self.state["mean"], 1 - (1 - adapt_rate) ** epochs
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
        several = (counts > 0).sum() > 1
        return {"trains": one(several and self.manifest.trains_trunk)}

    def train(self, latents: Any, targets: Any, lr: Any, **rates: Any) -> dict[str, Any]:
        self.state["scale"] = self.state["scale"] + rates["trunk_lr"]
        self.state["moment"] = self.state["moment"] + rates["moment_rate"]
        return self.train_last(latents, targets, lr, **rates)

    def train_last(self, latents: Any, targets: Any, lr: Any, **_: Any) -> dict[str, Any]:
        rows = latents.reshape(len(latents), -1).astype(np.float32)
        self.state["cw"] = self.state["cw"] + lr * (targets.T @ rows) / 1000
        return {"loss": one(1), "accuracy": one(0.5)}

    def gather(self, latents: Any, targets: Any) -> dict[str, Any]:
        rows = latents.reshape(len(latents), -1).astype(np.float32)
        self.state["cw"] = self.state["cw"] + targets.T @ rows
        return {"patterns": one(targets.sum())}

    def consolidate(self, counts: Any) -> dict[str, Any]:
        self.state["past"] = self.state["past"] + counts
        return self._learned()

    def forget(self, mask: Any) -> dict[str, Any]:
        self.state["past"] = self.state["past"] * (1 - mask)
        self.state["cw"] = self.state["cw"] * (1 - mask)[:, np.newaxis]
        return self._learned()

    def _learned(self) -> dict[str, Any]:
        return {"learned": (self.state["past"] > 0).astype(np.float32)}

    def _check(self, what: str, given: dict[str, Any], listed: dict[str, Tensor]) -> None:
        assert set(given) == set(listed), f"{what} {set(listed)}"
        for name, value in given.items():
            assert value.dtype == listed[name].dtype, f"{what} {name} as {value.dtype}"
            assert value.ndim == len(listed[name].shape), f"{what} {name} as {value.shape}"
            fixed = [n for n in zip(value.shape, listed[name].shape) if n[1] != -1]
            assert all(found == wanted for found, wanted in fixed), f"{name} is {value.shape}"

    def _signatures(self, part: str) -> dict[str, Signature]:
        """Return the signatures of this model, with its own rates and tensors."""
        sizes, found = Sizes.of(self.manifest), {}
        own = {
            FEATURES: tensors(mean=(1,)),
            HEAD: tensors(cw=(SLOTS, SIZE * SIZE * 3), past=(SLOTS,), scale=(1,), moment=(1,)),
        }[part]
        learning = ("train", "train_last", "gather")
        for name, spec in signatures_of(part).items():
            if part == FEATURES and name != "extract" and not self.manifest.adapt_moments:
                continue
            if name in learning and name not in STEPS[self.manifest.strategy]:
                continue
            inputs = {key: sizes.tensor(each) for key, each in spec.inputs.items()}
            outputs = {key: sizes.tensor(each) for key, each in spec.outputs.items()}
            inputs.update(
                {rate: Tensor((1,), np.dtype(np.float32)) for rate in RATES.get(name, ())}
            )
            {"inputs": inputs, "outputs": outputs, "": {}}[spec.tensors].update(own)
            found[name] = Signature(inputs, outputs)
        return found


# What `open_committed` takes to load fake models, which are not tried first.
FAKES: dict[str, Any] = {"load": FakeModel, "trial": lambda *_, **__: None}


def open_fake(bundle: Path, state: Path | None = None, **options: Any) -> Learner:
    """Open a learner with fake models, which are not tried first."""
    return Learner(open_committed(Bundle.open(bundle), state, LearnerOptions(**options), **FAKES))


def frames(*values: int) -> np.ndarray:
    """Return frames (n, 4, 4, 3) uint8 of one grey each."""
    return np.stack([np.full(SHAPE, value, np.uint8) for value in values])


def fake(model: Any) -> FakeModel:
    assert isinstance(model, FakeModel)
    return model


def mean_of(model: Any) -> float:
    return float(fake(model).state["mean"].item())
