"""Files of backbone weights: arrays under keras.applications' names, in several formats.

| format   | content                                                                       |
| -------- | ----------------------------------------------------------------------------- |
| `.npz`   | `conv_dw_3/depthwise_kernel`, `conv_dw_3_bn/gamma`, ...; optional `bn_epsilon` |
|          | (absent: 1e-3, as in keras.applications) and `activation`                     |
| `.h5`    | weights or a whole model, of keras.applications' MobileNet or of this project |
| `.keras` | a whole model, of either kind                                                 |
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
from lrtflite.host.batch_renorm import BatchRenorm
from lrtflite.host.mobilenet import conv_name, norm_name
from lrtflite.host.model_file import UNREADABLE, first_line, load_model, writing_model
from lrtflite.layer_names import KERAS_NAMES
from lrtflite.whole_file import replacing

KERAS_EPSILON = 1e-3
BRN_EPSILON = 1e-5

# Layer of this project -> layer of keras.applications.
_LAYERS = {conv_name(paper): name for paper, name in KERAS_NAMES.items()}
_LAYERS |= {norm_name(paper): f"{name}_bn" for paper, name in KERAS_NAMES.items()}


@dataclass(frozen=True)
class BackboneWeights:
    """The weights from conv1 to conv6/sep: float32 arrays under keras.applications' names."""

    arrays: Mapping[str, NDArray[np.float32]]
    epsilon: float = KERAS_EPSILON
    activation: str = "relu6"

    @property
    def alpha(self) -> float:
        """Return the width, from the `int(1024 * alpha)` filters of the last convolution."""
        return float(self.arrays["conv_pw_13/kernel"].shape[-1]) / 1024


def weight_names() -> list[str]:
    """Return the names of the 135 arrays of a MobileNetV1 without its classifier, in order."""
    names = []
    for name in KERAS_NAMES.values():
        names.append(f"{name}/{'depthwise_kernel' if '_dw_' in name else 'kernel'}")
        for part in ("gamma", "beta", "moving_mean", "moving_variance"):
            names.append(f"{name}_bn/{part}")
    return names


def read_weights(path: Path) -> BackboneWeights:
    """Return the weights in a `.npz`, `.h5` or `.keras` file; raise ModelError if it has none."""
    weights, _ = read_with_digest(path)
    return weights


def read_with_digest(path: Path) -> tuple[BackboneWeights, str]:
    """Return the weights of a file as `read_weights` does, and the SHA-256 of its bytes.

    The file is read once, except that Keras opens whole models itself.
    """
    readers = {".npz": _read_npz, ".h5": _read_h5, ".hdf5": _read_h5, ".keras": _read_keras}
    if path.suffix not in readers:
        raise ModelError(
            f"Expected weights as demo, imagenet or a .npz, .h5 or .keras file, got {path}; "
            "give one of these"
        )
    if not path.is_file():
        raise ModelError(
            f"Expected a weights file, got {path}, which does not exist; check the path"
        )
    try:
        content = path.read_bytes()
    except OSError as error:
        raise _damaged(path, error) from error
    weights = readers[path.suffix](path, content)
    _check(weights, path)
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


def from_model(model: keras.Model) -> BackboneWeights:
    """Return the backbone weights of a MobileNet of this project or of keras.applications."""
    arrays = _by_keras_name(
        (f"{layer.name}/{weight.name.rsplit('/', 1)[-1]}", weight.numpy())
        for layer in model.layers
        for weight in layer.weights
    )
    norms = [layer for layer in model.layers if isinstance(layer, BatchRenorm)]
    if not norms:
        return BackboneWeights(arrays)
    # INVARIANT: mobilenet_v1 gives every norm the same epsilon, every unit the same activation.
    bounded = any(getattr(layer, "max_value", None) is not None for layer in model.layers)
    return BackboneWeights(arrays, norms[0].epsilon, "relu6" if bounded else "relu")


def _by_keras_name(
    named: Iterable[tuple[str, NDArray[Any]]],
) -> dict[str, NDArray[np.float32]]:
    wanted = set(weight_names())
    arrays = {}
    for full_name, array in named:
        layer, weight = full_name.split(":")[0].rsplit("/", 1)
        name = f"{_LAYERS.get(layer, layer)}/{weight}"
        if name in wanted:
            arrays[name] = np.asarray(array, np.float32)
    return arrays


def _read_npz(path: Path, content: bytes) -> BackboneWeights:
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
            epsilon = float(arrays.pop("bn_epsilon", np.asarray(KERAS_EPSILON)))
            activation = str(arrays.pop("activation", np.asarray("relu6")))
            return BackboneWeights(
                {name: np.asarray(array, np.float32) for name, array in arrays.items()},
                epsilon,
                activation,
            )
    except (OSError, ValueError, TypeError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise _damaged(path, error) from error


def _read_h5(path: Path, content: bytes) -> BackboneWeights:
    try:
        with h5py.File(io.BytesIO(content), "r") as file:
            if "model_config" in file.attrs:
                return _read_keras(path, content)
            named = [
                (_text(weight), file[_text(layer)][_text(weight)][()])
                for layer in file.attrs["layer_names"]
                for weight in file[_text(layer)].attrs["weight_names"]
            ]
    except UNREADABLE as error:
        raise _damaged(path, error) from error
    # Weights alone do not include epsilon, but their names show where they come from.
    ours = any(name.startswith(f"{norm_name('conv1')}/") for name, _ in named)
    return BackboneWeights(_by_keras_name(named), BRN_EPSILON if ours else KERAS_EPSILON)


def _read_keras(path: Path, content: bytes) -> BackboneWeights:
    # Keras reads a `.keras` file from its path only, not from bytes.
    return from_model(load_model(path))


def _text(name: str | bytes) -> str:
    return name.decode() if isinstance(name, bytes) else name


def _damaged(path: Path, error: BaseException) -> ModelError:
    return ModelError(
        f"Expected the weights of a MobileNetV1 in {path}, got a file that cannot be read "
        f"({first_line(error)}); download or save it again"
    )


def _check(weights: BackboneWeights, path: Path) -> None:
    missing = [name for name in weight_names() if name not in weights.arrays]
    if missing:
        raise ModelError(
            f"Expected the {len(weight_names())} arrays of a MobileNetV1 in {path}, got none "
            f"called {missing[0]} ({len(missing)} missing); use keras.applications' names"
        )
    for name in weight_names():
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
