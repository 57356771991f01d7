"""Check the signatures of a bundle's models against the contract."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from lrtflite.bundle.bundle import Bundle
from lrtflite.bundle.feeding import NOTHING
from lrtflite.bundle.manifest import Manifest
from lrtflite.contract.signatures import ADAPTS, FEATURES, HEAD, SignatureSpec, Sizes, signatures_of
from lrtflite.errors import BundleError
from lrtflite.runtime.model import Model, Signature, Tensor


def check_contract(bundle: Bundle, features: Model, head: Model) -> None:
    """Raise BundleError if a model of a bundle breaks the contract."""
    for name, model in ((FEATURES, features), (HEAD, head)):
        if problems := breaches(bundle.manifest, name, model.signatures):
            raise BundleError(
                f"The manifest of {bundle.path} does not fit its {name}: {'; '.join(problems)}",
                "convert the bundle again",
            )


def breaches(manifest: Manifest, model: str, found: Mapping[str, Signature]) -> list[str]:
    """Return each way in which a model's signatures break the contract, in words."""
    specs, sizes = signatures_of(model), Sizes.of(manifest)
    problems = [f"no {name}" for name in _missing(manifest, model, found)]
    problems += [f"{name} is not in the contract" for name in found if name not in specs]
    for name, spec in specs.items():
        if name in found:
            problems += _odd(spec, found[name], sizes)
            if spec.takes_rates:
                problems += _odd_rates(spec, found[name], manifest)
    saved = found["save"].outputs if "save" in found else {}
    restored = found["restore"].inputs if "restore" in found else {}
    if not problems and saved != restored:
        problems.append("restore does not take what save gives")
    return problems


def _missing(manifest: Manifest, model: str, found: Mapping[str, Signature]) -> Iterator[str]:
    for spec in signatures_of(model).values():
        wanted = not spec.optional or (spec.optional == ADAPTS and manifest.adapt_moments)
        if wanted and spec.name not in found:
            yield spec.name
    if model == HEAD:
        if "train" not in found and "gather" not in found:
            yield "train or gather"
        if manifest.feeding.gathers != NOTHING and "gather" not in found:
            yield "gather, which the feeding asks for"
        if "train" not in found and "gather" in found and manifest.feeding.gathers == NOTHING:
            yield "train, and the feeding gathers nothing"


def _odd(spec: SignatureSpec, found: Signature, sizes: Sizes) -> Iterator[str]:
    """Yield inputs and outputs that differ from the contract's.

    Shapes of outputs are not compared, because a runtime may report an output without its shape.
    """
    if not found.inputs:
        yield f"{spec.name} has no input, which Java refuses to call"
    for name, wanted in spec.inputs.items():
        tensor, expected = found.inputs.get(name), sizes.tensor(wanted)
        if tensor is None:
            yield f"{spec.name} has no input {name}"
        elif tensor != expected:
            yield f"{spec.name}.{name} is {_shown(tensor)}, not {_shown(expected)}"
    for name, wanted in spec.optional_inputs.items():
        if name in found.inputs and found.inputs[name] != sizes.tensor(wanted):
            expected = sizes.tensor(wanted)
            yield f"{spec.name}.{name} is {_shown(found.inputs[name])}, not {_shown(expected)}"
    for name, wanted in spec.outputs.items():
        if name not in found.outputs:
            yield f"{spec.name} has no output {name}"
        elif found.outputs[name].dtype != sizes.tensor(wanted).dtype:
            yield f"{spec.name} gives {name} as {found.outputs[name].dtype}"
    if not spec.takes_rates and not spec.tensors:
        for name in spec.rates(found):
            yield f"{spec.name} takes {name}, which is not in the contract"


def _odd_rates(spec: SignatureSpec, found: Signature, manifest: Manifest) -> Iterator[str]:
    named = manifest.training.names
    for name in spec.rates(found):
        if found.inputs[name] != Tensor((1,), np.dtype(np.float32)):
            yield f"{spec.name}.{name} is {_shown(found.inputs[name])}, not (1,) float32"
        elif name not in named:
            yield f"{spec.name} takes {name}, which is not among the rates"


def _shown(tensor: Tensor) -> str:
    return f"{tensor.shape} {tensor.dtype}"
