"""Files of backbone weights: arrays under the names of a family, in several formats.

| format   | content                                                                       |
| -------- | ----------------------------------------------------------------------------- |
| `.npz`   | `conv_dw_3/depthwise_kernel`, `conv_dw_3_bn/gamma`, ...; optional `bn_epsilon` |
|          | (absent: 1e-3, as in keras.applications) and `activation`                     |
| `.h5`    | weights or a whole model, of keras.applications or of this project            |
| `.keras` | a whole model, of either kind                                                 |
| `.pth`   | EfficientNet-Lite0 only: a PyTorch file of the older layout                   |
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import tf_keras as keras
from numpy.typing import NDArray

from lrtflite.errors import ModelError
from lrtflite.files.atomic import replacing
from lrtflite.files.keras import first_line, parse_keras_file, read_given
from lrtflite.files.npz import read_npz
from lrtflite.files.zip import MALFORMED
from lrtflite.host.batch_renorm import BatchRenorm
from lrtflite.host.family import MOBILENET_V1_FAMILY, Family
from lrtflite.host.keras_weights import BackboneWeights, backbone_of
from lrtflite.host.model_file import writing_model
from lrtflite.networks.architecture import ACTIVATIONS, RELU, RELU6
from lrtflite.photos.batch_norm_folding import PUBLISHED_EPSILON

# Maximum number of bytes in a file, and of arrays that an `.npz` file unpacks to: the widest
# network has 210 MB.
MAX_BYTES, MAX_UNPACKED = 1 << 30, 1 << 29
SUFFIXES = (".npz", ".h5", ".hdf5", ".keras")
# Suffix of PyTorch's files, which some families have.
PYTORCH = ".pth"


def read_weights(path: Path, family: Family = MOBILENET_V1_FAMILY) -> BackboneWeights:
    """Return the weights in a `.npz`, `.h5` or `.keras` file; raise ModelError if it has none."""
    weights, _ = read_with_digest(path, family)
    return weights


def read_with_digest(path: Path, family: Family) -> tuple[BackboneWeights, str]:
    """Return the weights of a file as `read_weights` does, and the SHA-256 of its bytes.

    The file is read once, as data: nothing in it is executed.
    """
    suffixes = SUFFIXES if family.read_pytorch is None else (*SUFFIXES, PYTORCH)
    if path.suffix not in suffixes:
        named = ", ".join(family.architecture.named_weights)
        *others, last = (suffix for suffix in suffixes if suffix != ".hdf5")
        raise ModelError(
            f"Expected weights as {named} or a {', '.join(others)} or {last} file, got {path}",
            "give one of these",
        )
    if not path.is_file():
        raise ModelError(
            f"Expected a weights file, got {path}, which does not exist", "check the path"
        )
    try:
        content = read_given(path, most=MAX_BYTES)
        if path.suffix == PYTORCH:
            assert family.read_pytorch is not None
            weights = BackboneWeights(family.read_pytorch(path, content), activation=RELU6)
        else:
            weights = parse_weights(content, path.suffix, family)
    except MALFORMED as error:
        raise ModelError(
            f"Expected the weights of a {family.architecture.title} in {path}, got a file that "
            f"cannot be read ({first_line(error)})",
            "download or save it again",
        ) from error
    _check(weights, path, family)
    return weights, hashlib.sha256(content).hexdigest()


def parse_weights(content: bytes, suffix: str, family: Family) -> BackboneWeights:
    """Return the weights in the bytes of a file; raise one of `MALFORMED` for malformed ones."""
    if suffix == ".npz":
        return _parse_npz(content, family)
    file = parse_keras_file(content, "weights")
    if file is None:
        raise ValueError("neither a .keras nor an .h5 file")
    return backbone_of(file, family)


def write_weights(weights: BackboneWeights, path: Path) -> None:
    """Write a `.npz` file for `read_weights`; an old file stays until the new one is complete."""
    if path.suffix != ".npz":
        raise ModelError(
            f"Expected a weights file name that ends in .npz, got {path}", "choose another name"
        )
    arrays: dict[str, NDArray[Any]] = {**weights.arrays}
    arrays["bn_epsilon"] = np.asarray(weights.epsilon)
    arrays["activation"] = np.asarray(weights.activation)
    with writing_model(path), replacing(path) as temporary:
        np.savez(temporary, **arrays)


def from_model(model: keras.Model, family: Family) -> BackboneWeights:
    """Return the backbone weights of a network of this project or of keras.applications."""
    arrays = _wanted(
        family,
        (
            (family.keras_name(layer.name, weight.name), weight.numpy())
            for layer in model.layers
            for weight in layer.weights
        ),
    )
    # INVARIANT: a family gives every norm the same epsilon, every unit the same activation.
    bounded = any(getattr(layer, "max_value", None) is not None for layer in model.layers)
    activation = RELU6 if bounded else RELU
    norms = [layer for layer in model.layers if isinstance(layer, BatchRenorm)]
    epsilon = norms[0].epsilon if norms else PUBLISHED_EPSILON
    return BackboneWeights(arrays, epsilon, activation)


def _wanted(
    family: Family, named: Iterable[tuple[str, NDArray[Any]]]
) -> dict[str, NDArray[np.float32]]:
    names = set(family.weight_names)
    with np.errstate(over="ignore"):  # infinity is refused by `_check`
        return {name: np.asarray(array, np.float32) for name, array in named if name in names}


def _parse_npz(content: bytes, family: Family) -> BackboneWeights:
    names = {*family.weight_names, "bn_epsilon", "activation"}
    arrays = read_npz(content, most=MAX_UNPACKED, names=names)
    epsilon = float(arrays.pop("bn_epsilon", np.asarray(PUBLISHED_EPSILON)))
    activation = str(arrays.pop("activation")) if "activation" in arrays else None
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise ValueError(f"an epsilon of {epsilon}")
    if activation is not None and activation not in ACTIVATIONS:
        raise ValueError(f"an activation {activation[:40]!r}")
    return BackboneWeights(_wanted(family, arrays.items()), epsilon, activation)


def _check(weights: BackboneWeights, path: Path, family: Family) -> None:
    names, title = family.weight_names, family.architecture.title
    missing = [name for name in names if name not in weights.arrays]
    if missing:
        raise ModelError(
            f"Expected the {len(names)} arrays of a {title} in {path}, got none called "
            f"{missing[0]} ({len(missing)} missing)",
            "use keras.applications' names, or the --network of these weights",
        )
    for name in names:
        array = weights.arrays[name]
        axes = 4 if name.endswith("kernel") else 1
        if array.ndim != axes:
            raise ModelError(
                f"Expected {name} with {axes} axes in {path}, got {array.ndim}",
                "use keras.applications' arrays",
            )
        if not np.isfinite(array).all():
            raise ModelError(
                f"Expected finite weights in {path}, got NaN or infinity in {name}",
                "train with a lower rate, or use other weights",
            )
        if name.endswith("moving_variance") and (array + weights.epsilon <= 0).any():
            raise ModelError(
                f"Expected variances of at least 0 in {path}, got less in {name}",
                "use other weights",
            )
