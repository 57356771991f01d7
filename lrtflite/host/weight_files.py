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
import io
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py  # type: ignore[import-untyped]
import numpy as np
import tf_keras as keras
from numpy.typing import NDArray

from lrtflite.errors import ModelError
from lrtflite.files.atomic import replacing
from lrtflite.host.batch_renorm import BatchRenorm
from lrtflite.host.family import MOBILENET_V1_FAMILY, Family
from lrtflite.host.model_file import UNREADABLE, first_line, load_model, writing_model
from lrtflite.photos.batch_norm_folding import EPSILON, PUBLISHED_EPSILON


@dataclass(frozen=True)
class BackboneWeights:
    """The weights below the classifier: float32 arrays under keras.applications' names."""

    arrays: Mapping[str, NDArray[np.float32]]
    epsilon: float = PUBLISHED_EPSILON
    activation: str = "relu6"


def read_weights(path: Path, family: Family = MOBILENET_V1_FAMILY) -> BackboneWeights:
    """Return the weights in a `.npz`, `.h5` or `.keras` file; raise ModelError if it has none."""
    weights, _ = read_with_digest(path, family)
    return weights


def read_with_digest(path: Path, family: Family) -> tuple[BackboneWeights, str]:
    """Return the weights of a file as `read_weights` does, and the SHA-256 of its bytes.

    The file is read once, except that Keras opens whole models itself.
    """
    readers = {".npz": _read_npz, ".h5": _read_h5, ".hdf5": _read_h5, ".keras": _read_keras}
    if family.read_pytorch is not None:
        readers[".pth"] = _read_pytorch
    if path.suffix not in readers:
        named = ", ".join(family.architecture.named_weights)
        raise ModelError(
            f"Expected weights as {named} or a {_endings(readers)} file, got {path}; "
            "give one of these"
        )
    if not path.is_file():
        raise ModelError(
            f"Expected a weights file, got {path}, which does not exist; check the path"
        )
    try:
        content = path.read_bytes()
    except OSError as error:
        raise _damaged(path, family, error) from error
    weights = readers[path.suffix](path, content, family)
    _check(weights, path, family)
    return weights, hashlib.sha256(content).hexdigest()


def write_weights(weights: BackboneWeights, path: Path) -> None:
    """Write a `.npz` file for `read_weights`; an old file stays until the new one is complete."""
    if path.suffix != ".npz":
        raise ModelError(
            f"Expected a weights file name that ends in .npz, got {path}; choose another name"
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
    norms = [layer for layer in model.layers if isinstance(layer, BatchRenorm)]
    if not norms:
        return BackboneWeights(arrays)
    # INVARIANT: a family gives every norm the same epsilon, every unit the same activation.
    bounded = any(getattr(layer, "max_value", None) is not None for layer in model.layers)
    return BackboneWeights(arrays, norms[0].epsilon, "relu6" if bounded else "relu")


def _wanted(
    family: Family, named: Iterable[tuple[str, NDArray[Any]]]
) -> dict[str, NDArray[np.float32]]:
    names = set(family.weight_names)
    return {name: np.asarray(array, np.float32) for name, array in named if name in names}


def _read_npz(path: Path, content: bytes, family: Family) -> BackboneWeights:
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
            epsilon = float(arrays.pop("bn_epsilon", np.asarray(PUBLISHED_EPSILON)))
            activation = str(arrays.pop("activation", np.asarray("relu6")))
            return BackboneWeights(
                {name: np.asarray(array, np.float32) for name, array in arrays.items()},
                epsilon,
                activation,
            )
    except (OSError, ValueError, TypeError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise _damaged(path, family, error) from error


def _read_h5(path: Path, content: bytes, family: Family) -> BackboneWeights:
    try:
        with h5py.File(io.BytesIO(content), "r") as file:
            if "model_config" in file.attrs:
                return _read_keras(path, content, family)
            named = [
                (_text(weight), file[_text(layer)][_text(weight)][()])
                for layer in file.attrs["layer_names"]
                for weight in file[_text(layer)].attrs["weight_names"]
            ]
    except UNREADABLE as error:
        raise _damaged(path, family, error) from error
    # Weights alone do not include epsilon, but their names show where they come from.
    ours = any(name.rpartition("/")[0] in family.norms for name, _ in named)
    arrays = _wanted(
        family, ((family.keras_name(name.rpartition("/")[0], name), array) for name, array in named)
    )
    return BackboneWeights(arrays, EPSILON if ours else PUBLISHED_EPSILON)


def _read_keras(path: Path, content: bytes, family: Family) -> BackboneWeights:
    # Keras reads a `.keras` file from its path only, not from bytes.
    return from_model(load_model(path), family)


def _read_pytorch(path: Path, content: bytes, family: Family) -> BackboneWeights:
    assert family.read_pytorch is not None
    return BackboneWeights(family.read_pytorch(path, content))


def _endings(readers: Iterable[str]) -> str:
    *others, last = (ending for ending in readers if ending != ".hdf5")
    return f"{', '.join(others)} or {last}"


def _text(name: str | bytes) -> str:
    return name.decode() if isinstance(name, bytes) else name


def _damaged(path: Path, family: Family, error: BaseException) -> ModelError:
    return ModelError(
        f"Expected the weights of a {family.architecture.title} in {path}, got a file that cannot "
        f"be read ({first_line(error)}); download or save it again"
    )


def _check(weights: BackboneWeights, path: Path, family: Family) -> None:
    names, title = family.weight_names, family.architecture.title
    missing = [name for name in names if name not in weights.arrays]
    if missing:
        raise ModelError(
            f"Expected the {len(names)} arrays of a {title} in {path}, got none called "
            f"{missing[0]} ({len(missing)} missing); use keras.applications' names, or the "
            "--network of these weights"
        )
    for name in names:
        array = weights.arrays[name]
        if not np.isfinite(array).all():
            raise ModelError(
                f"Expected finite weights in {path}, got NaN or infinity in {name}; "
                "train with a lower rate, or use other weights"
            )
        if name.endswith("moving_variance") and (array + weights.epsilon <= 0).any():
            raise ModelError(
                f"Expected variances of at least 0 in {path}, got less in {name}; use other weights"
            )
