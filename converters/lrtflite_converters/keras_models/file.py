"""Read the configuration and the weights of a Keras file, without running anything from it.

Three forms are read: the `.keras` archive of Keras 3 and of tf-keras, and the older `.h5` file.
Keras's own loaders import modules and rebuild functions that a file names. This module only parses
JSON and copies arrays, within limits, and needs no TensorFlow.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrtflite.arguments import printable
from lrtflite.errors import ModelError
from lrtflite.files.strict_json import strict_json

# Maximum number of bytes in a configuration, and in the weights of a model.
MOST_CONFIG, MOST_WEIGHTS = 1 << 25, 1 << 31
# Errors of zipfile, h5py and json for damaged files.
UNREADABLE = (
    OSError,
    EOFError,
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    RuntimeError,
    NotImplementedError,
    RecursionError,
    zipfile.BadZipFile,
)
Arrays = tuple[NDArray[np.float32], ...]
# Folder of a model's layers in the weights, of current and of older versions, and of variables.
_FOLDERS, _VARIABLES = ("layers", "_layer_checkpoint_dependencies"), "vars"
# The class of the last layer in models that `lrtflite train` saves.
_CLASS_SLOTS = b"lrtflite>ClassSlots"


@dataclass(frozen=True)
class KerasFile:
    """The content of a file: its configuration, the version of Keras, and arrays by path.

    `legacy` is True for an `.h5` file, which has other paths.
    """

    name: str
    config: Mapping[str, Any]
    version: str
    arrays: Mapping[str, NDArray[np.float32]]
    legacy: bool
    # Name of the layer that a group of arrays belongs to, where Keras 3 wrote it.
    owners: Mapping[str, str]

    @property
    def is_keras_3(self) -> bool:
        return not self.version.startswith(("1.", "2."))

    def of_layers(self, folder: str, layers: Sequence[tuple[str, str]]) -> list[str]:
        """Return the path of each layer (class, name) of a model whose own path is `folder`.

        Keras numbers the layers of each class: `conv2d`, `conv2d_1` and so on.
        """
        if self.legacy:
            return [name for _, name in layers]
        bases = [f"{folder}{each}/" for each in _FOLDERS]
        used = [base for base in bases if any(key.startswith(base) for key in self.arrays)]
        base = (used or bases)[0]
        owned = {
            owner: path
            for path, owner in self.owners.items()
            if path.startswith(base) and "/" not in path[len(base) :]
        }
        found, seen = [], dict[str, int]()
        for kind, name in layers:
            snake = _snake_case(kind)
            number = seen.get(snake, 0)
            seen[snake] = number + 1
            numbered = f"{base}{snake}" + (f"_{number}" if number else "")
            found.append(owned.get(name, numbered))
        return found

    def weights(self, path: str) -> Arrays:
        """Return the arrays of the layer at a path, in Keras's order."""
        if self.legacy:
            # A layer inside another model is stored with it: `base/inner/kernel:0`.
            owners = {key: key.rpartition("/")[0] for key in self.arrays}
            own = [key for key, owner in owners.items() if owner == f"{path}/{path}"]
            own = own or [key for key, owner in owners.items() if owner.endswith(f"/{path}")]
            return tuple(self.arrays[key] for key in own)
        prefix = f"{path}/{_VARIABLES}/"
        numbered = {
            int(key[len(prefix) :]): array
            for key, array in self.arrays.items()
            if key.startswith(prefix) and key[len(prefix) :].isdigit()
        }
        return tuple(array for _, array in sorted(numbered.items()))


def read_keras_file(path: Path) -> KerasFile:
    """Read a file, or raise ModelError if it is not a complete Keras model."""
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise ModelError(
            f"Expected a Keras model file (.keras or .h5), got {path}, which {what}; check the "
            "path, or save the model with model.save('my.keras')"
        )
    try:
        with path.open("rb") as file:
            start = file.read(8)
        if start.startswith(b"PK"):
            return _read_archive(path)
        if start == b"\x89HDF\r\n\x1a\n":
            return _read_h5(path)
    except UNREADABLE as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise ModelError(
            f"Expected a complete Keras model in {path}, got a damaged file "
            f"({printable(lines[0])[:160]}); save it again"
        ) from error
    raise ModelError(
        f"Expected a Keras model file (.keras or .h5), got {path}, which is neither; save the "
        "model with model.save('my.keras')"
    )


def is_of_this_project(path: Path) -> bool:
    """Return whether `lrtflite train` saved a model: its last layer is the project's own."""
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                return _CLASS_SLOTS in _member(archive, "config.json", MOST_CONFIG)
        import h5py  # type: ignore[import-untyped]

        with h5py.File(path, "r") as file:
            return _CLASS_SLOTS in _text(file.attrs["model_config"]).encode()
    except UNREADABLE:
        return False  # reading it says what is wrong


def _read_archive(path: Path) -> KerasFile:
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        for member in ("config.json", "metadata.json", "model.weights.h5"):
            if member not in names:
                raise ValueError(f"{member} is missing")
        config = _json(_member(archive, "config.json", MOST_CONFIG))
        metadata = _json(_member(archive, "metadata.json", MOST_CONFIG))
        content = _member(archive, "model.weights.h5", MOST_WEIGHTS)
    arrays, owners = _arrays(content)
    version = str(metadata.get("keras_version", ""))
    return KerasFile(path.name, config, version, arrays, False, owners)


def _read_h5(path: Path) -> KerasFile:
    import h5py

    if path.stat().st_size > MOST_WEIGHTS:
        raise ValueError(f"more than {MOST_WEIGHTS:,} bytes")
    with h5py.File(path, "r") as file:
        if "model_config" not in file.attrs:
            raise ValueError("weights without a model_config; save the whole model")
        config = _json(_text(file.attrs["model_config"]).encode())
        version = _text(file.attrs.get("keras_version", "2."))
        stored = _datasets(file["model_weights"])
        order = {
            f"{_text(layer)}/{_text(weight)}": None
            for layer in _names(file["model_weights"], "layer_names")
            for weight in _names(file["model_weights"][_text(layer)], "weight_names")
        }
    missing = [key for key in order if key not in stored]
    if missing:
        raise ValueError(f"weights without {missing[0]}")
    return KerasFile(path.name, config, version, {key: stored[key] for key in order}, True, {})


def _member(archive: zipfile.ZipFile, name: str, most: int) -> bytes:
    with archive.open(name) as member:
        content = member.read(most + 1)
    if len(content) > most:
        raise ValueError(f"{name} of more than {most:,} bytes")
    return content


def _json(content: bytes) -> dict[str, Any]:
    if len(content) > MOST_CONFIG:
        raise ValueError(f"a configuration of more than {MOST_CONFIG:,} bytes")
    found = strict_json(content.decode())
    if not isinstance(found, dict):
        raise ValueError("a configuration that is not an object")
    return found


def _arrays(content: bytes) -> tuple[dict[str, NDArray[np.float32]], dict[str, str]]:
    """Return the arrays of a weights file by path, and the layer that each group belongs to."""
    import h5py

    with h5py.File(io.BytesIO(content), "r") as file:
        owners: dict[str, str] = {}

        def visit(path: str, found: Any) -> None:
            folder, _, last = path.rpartition("/")
            name = found.attrs.get("name") if last == _VARIABLES else None
            if isinstance(name, str):
                owners[folder] = name

        file.visititems(visit)
        return _datasets(file), owners


def _datasets(group: Any) -> dict[str, NDArray[np.float32]]:
    """Return the arrays of a group by path; links are not followed, so no other file is read."""
    import h5py

    found: dict[str, NDArray[np.float32]] = {}
    size = 0

    def visit(path: str, data: Any) -> None:
        nonlocal size
        if not isinstance(data, h5py.Dataset) or data.dtype.kind not in "fiu":
            return
        size += data.nbytes
        # An array without its own bytes may be of any size, or lie in another file.
        if data.is_virtual or data.external or data.chunks is not None or size > MOST_WEIGHTS:
            raise ValueError(f"an array {path} that is not stored as Keras does")
        if data.id.get_storage_size() != data.nbytes:
            raise ValueError(f"an array {path} without its values")
        found[path] = np.asarray(data[()], np.float32)

    group.visititems(visit)
    return found


def _names(group: Any, name: str) -> list[Any]:
    """Return a list of names, which Keras divides into several attributes if it is long."""
    if name in group.attrs:
        return list(group.attrs[name])
    found: list[Any] = []
    while (part := f"{name}{len(found)}") in group.attrs:
        found.append(list(group.attrs[part]))
    return [each for part in found for each in part]


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _snake_case(name: str) -> str:
    """Return the name of a class as Keras writes it in paths: Conv2D -> conv2d."""
    name = re.sub(r"\W+", "", name)
    name = re.sub("(.)([A-Z][a-z]+)", r"\1_\2", name)
    return re.sub("([a-z])([A-Z])", r"\1_\2", name).lower()
