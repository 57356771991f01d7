"""The contract between a client and a bundle's two models: every signature, once.

A client calls signatures by name and contains no learning algorithm. `verify`, `Learner.open`, the
converter, the table in docs/bundle.md and the tests read this file. `n` is any number of patterns,
`B` the feeding's batch_size, `G` its new_per_batch, `C` the number of class slots, `S` the input
size, and `latent` the shape of a latent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Union

import numpy as np

from lrtflite.bundle.manifest import Manifest
from lrtflite.files.bundle_file import BundleFile
from lrtflite.runtime.flatbuffer import FlatTable, read_model
from lrtflite.runtime.model import Signature, Tensor

Axis = Union[int, str]
FEATURES, HEAD = "features", "head"


@dataclass(frozen=True)
class Sizes:
    """Values of the contract's letters in one bundle."""

    input_size: int
    latent_shape: tuple[int, ...]
    slots: int
    batch_size: int
    group: int
    extracted: str = "float32"  # dtype of the latents that `extract` returns
    trained: str = "float32"  # dtype of the latents that the head takes

    @classmethod
    def of(cls, manifest: Manifest) -> Sizes:
        return cls(
            input_size=manifest.input_size,
            latent_shape=manifest.latent_shape,
            slots=manifest.slots,
            batch_size=manifest.feeding.batch_size,
            group=manifest.feeding.new_per_batch,
            extracted=manifest.latent_dtype,
            trained=manifest.train_dtype,
        )

    def tensor(self, spec: Spec) -> Tensor:
        """Return the shape and dtype of a spec in this bundle; -1 is any number."""
        letters = {"n": -1, "B": self.batch_size, "G": self.group, "C": self.slots}
        letters["S"] = self.input_size
        shape: list[int] = []
        for axis in spec.shape:
            if axis == "latent":
                shape += self.latent_shape
            else:
                shape.append(axis if isinstance(axis, int) else letters[axis])
        dtypes = {"extracted": self.extracted, "trained": self.trained}
        return Tensor(tuple(shape), np.dtype(dtypes.get(spec.dtype, spec.dtype)))


@dataclass(frozen=True)
class Spec:
    """A tensor of a signature. Its axes are numbers, or letters of the contract."""

    shape: tuple[Axis, ...]
    dtype: str = "float32"

    def __str__(self) -> str:
        shape = ", ".join("..." if axis == "latent" else str(axis) for axis in self.shape)
        kind = {"float32": "", "extracted": " as extracted", "trained": " as trained"}
        return f"[{shape}]{kind.get(self.dtype, ' ' + self.dtype)}"


@dataclass(frozen=True)
class SignatureSpec:
    """One signature.

    With `takes_rates` it may have further inputs of shape [1], fed by name from the manifest.
    `tensors` is "inputs" or "outputs" if the model's named tensors are among those, else empty.
    """

    model: str
    name: str
    does: str
    inputs: Mapping[str, Spec] = field(default_factory=dict)
    outputs: Mapping[str, Spec] = field(default_factory=dict)
    optional_outputs: Mapping[str, Spec] = field(default_factory=dict)
    optional_inputs: Mapping[str, Spec] = field(default_factory=dict)
    takes_rates: bool = False
    tensors: str = ""
    optional: str = ""  # when the signature is present; empty if it always is

    def rates(self, found: Signature) -> tuple[str, ...]:
        """Return the inputs of a model's signature that are rates."""
        own = (*self.inputs, *self.optional_inputs)
        return tuple(name for name in found.inputs if name not in own)


# Optional input of `gather`.
REPLAYED = "replayed"
_ONE = Spec((1,))
_SLOTS = Spec(("C",))
_FRAMES = Spec(("G", "S", "S", 3), "uint8")
_BATCH = {"latents": Spec(("B", "latent"), "trained"), "targets": Spec(("B", "C"))}
# When the signatures that move moments are present; see `SignatureSpec.optional`.
ADAPTS = "where moments below the replay layer adapt"

SIGNATURES = (
    SignatureSpec(
        FEATURES,
        "extract",
        "turn frames into latents; scaling is in the graph",
        {"frames": Spec(("n", "S", "S", 3), "uint8")},
        {"latents": Spec(("n", "latent"), "extracted")},
    ),
    SignatureSpec(
        FEATURES,
        "adapt",
        "move the Batch Renorm moments towards those of these frames",
        {"frames": _FRAMES},
        {"moved": _ONE},
        takes_rates=True,
        optional=ADAPTS,
    ),
    SignatureSpec(
        FEATURES, "save", "give the moments", {"zero": _ONE}, tensors="outputs", optional=ADAPTS
    ),
    SignatureSpec(
        FEATURES,
        "restore",
        "take the moments that `save` gave",
        outputs={"restored": _ONE},
        tensors="inputs",
        optional=ADAPTS,
    ),
    SignatureSpec(
        HEAD,
        "infer",
        "answer; 0 for slots that have not learned",
        {"latents": Spec(("n", "latent"), "trained")},
        {"probabilities": Spec(("n", "C"))},
        {"familiarity": Spec(("n",))},
    ),
    SignatureSpec(
        HEAD,
        "begin",
        "start a session; `trains` is 0 where only the last layer will learn",
        {"counts": _SLOTS},
        {"trains": _ONE},
        takes_rates=True,
    ),
    SignatureSpec(
        HEAD,
        "train",
        "take one step",
        _BATCH,
        {"loss": _ONE, "accuracy": _ONE},
        takes_rates=True,
        optional="in every head that has no `gather`",
    ),
    SignatureSpec(
        HEAD,
        "train_last",
        "take a cheaper step, in sessions whose `trains` is 0",
        _BATCH,
        {"loss": _ONE, "accuracy": _ONE},
        takes_rates=True,
        optional="in some heads",
    ),
    SignatureSpec(
        HEAD,
        "gather",
        "see each pattern once, after the last step; a row of zeros in `targets` is an empty "
        "place; `replayed` is 1 for patterns of the memory, 0 for those of the session",
        _BATCH,
        {"patterns": _ONE},
        optional_inputs={REPLAYED: _ONE},
        takes_rates=True,
        optional="in every head that has no `train`",
    ),
    SignatureSpec(
        HEAD,
        "consolidate",
        "end the session",
        {"counts": _SLOTS},
        {"learned": _SLOTS},
        takes_rates=True,
    ),
    SignatureSpec(
        HEAD, "forget", "unlearn the classes whose mask is 1", {"mask": _SLOTS}, {"learned": _SLOTS}
    ),
    SignatureSpec(
        HEAD, "save", "give all that outlives a session", {"zero": _ONE}, tensors="outputs"
    ),
    SignatureSpec(
        HEAD,
        "restore",
        "take what `save` gave",
        outputs={"learned": _SLOTS},
        tensors="inputs",
    ),
)
# Value of the input `zero`. The graph adds it, so that the converter keeps the input.
ZERO = np.zeros(1, np.float32)


def signatures_of(model: str) -> dict[str, SignatureSpec]:
    """Return the signatures of "features" or "head" by name."""
    return {spec.name: spec for spec in SIGNATURES if spec.model == model}


def as_markdown() -> str:
    """Return the contract as the table of docs/bundle.md."""
    rows = [
        "| model | signature | inputs | outputs | what it does |",
        "| --- | --- | --- | --- | --- |",
    ]
    for spec in SIGNATURES:
        inputs = _cells(spec.inputs)
        inputs += [f"{cell}, optional" for cell in _cells(spec.optional_inputs)]
        if spec.takes_rates:
            inputs += ["rates by name [1]"]
        outputs = _cells(spec.outputs)
        outputs += [f"{cell}, optional" for cell in _cells(spec.optional_outputs)]
        (inputs if spec.tensors == "inputs" else outputs).extend(
            ["named tensors"] if spec.tensors else []
        )
        does = f"{spec.does}; {spec.optional}" if spec.optional else spec.does
        cells = (spec.model, f"`{spec.name}`", ", ".join(inputs), ", ".join(outputs), does)
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def _cells(specs: Mapping[str, Spec]) -> list[str]:
    return [f"`{name}` {spec}" for name, spec in specs.items()]


def read_signatures(file: Path | BundleFile) -> dict[str, tuple[str, ...]]:
    """Return the input names of each signature; signatures are sorted by name."""
    return read_model(file, lambda model: dict(sorted(map(_signature, model.tables(7)))))


def describe_signatures(model: str, file: Path | BundleFile) -> str:
    """List the signatures of "features" or "head" in the contract's order, with their rates."""
    found = read_signatures(file)
    words = []
    for name, spec in signatures_of(model).items():
        if name in found:
            rates = [] if spec.tensors else [i for i in found[name] if i not in spec.inputs]
            words.append(f"{name} ({', '.join(rates)})" if rates else name)
    return ", ".join(words)


def _signature(table: FlatTable) -> tuple[str, tuple[str, ...]]:
    return table.string(2), tuple(sorted(each.string(0) for each in table.tables(0)))
