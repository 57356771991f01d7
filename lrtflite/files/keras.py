"""Read the configuration and the weights of a Keras file, without running anything from it.

Four forms are read, by their content: the `.keras` archive of Keras 3 and of tf-keras, the older
`.h5` file of a model, the zip with such a file that Teachable Machine exports, and an `.h5` file of
weights alone. Keras's own loaders import modules and
rebuild functions that a file names. This module only parses JSON and copies arrays, within limits,
and needs no TensorFlow.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrtflite.arguments import printable
from lrtflite.errors import ModelError
from lrtflite.files.hdf5 import Hdf5
from lrtflite.files.strict_json import strict_json
from lrtflite.files.zip import MALFORMED, ZipContent

# Maximum number of bytes in a file, and in its configuration.
MAX_BYTES, MAX_CONFIG = 1 << 31, 1 << 25
# Maximum number of bytes of weights that were compressed, which Keras never does: a small archive
# can unpack to a thousand times its size.
MAX_UNPACKED = 1 << 29
Arrays = tuple[NDArray[np.float32], ...]
# Folder of a model's layers in the weights, of current and of older versions, and of variables.
_FOLDERS, _VARIABLES = ("layers", "_layer_checkpoint_dependencies"), "vars"
_CONFIG, _METADATA, _WEIGHTS = "config.json", "metadata.json", "model.weights.h5"
# The attribute with the configuration in an `.h5` file, and its group of weights.
_H5_CONFIG, _H5_WEIGHTS = "model_config", "model_weights"
# The model in the zip that Teachable Machine exports.
_TEACHABLE = "keras_model.h5"
# How the two kinds of file begin.
_ZIP, _HDF5 = b"PK", b"\x89HDF\r\n\x1a\n"
# The class of the last layer in models that `lrtflite train` saves.
_CLASS_SLOTS = "lrtflite>ClassSlots"
# Parts of a layer's weights in Keras's order.
_PARTS = (
    "depthwise_kernel",
    "pointwise_kernel",
    "kernel",
    "alpha",
    "gamma",
    "beta",
    "bias",
    "moving_mean",
    "moving_variance",
    "mean",
    "variance",
    "count",
    "momentum",
    "r_max",
    "d_max",
)


@dataclass(frozen=True)
class KerasFile:
    """The content of a file: its configuration, the version of Keras, and arrays by path.

    `legacy` is True for an `.h5` file, which has other paths. An `.h5` file of weights alone has an
    empty configuration.
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
            return tuple(self.arrays[key] for key in sorted(own, key=_place))
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
            f"Expected a Keras model file (.keras or .h5), got {path}, which {what}",
            "check the path, or save the model with model.save('my.keras')",
        )
    try:
        found = parse_keras_file(read_given(path, most=MAX_BYTES), path.name)
        if found is not None and not found.config:
            raise ValueError("weights without a model_config; save the whole model")
    except MALFORMED as error:
        raise ModelError(
            f"Expected a complete Keras model in {path}, got a damaged file ({first_line(error)})",
            "save it again",
        ) from error
    if found is None:
        raise ModelError(
            f"Expected a Keras model file (.keras or .h5), got {path}, which is neither",
            "save the model with model.save('my.keras')",
        )
    return found


def parse_keras_file(content: bytes, name: str) -> KerasFile | None:
    """Return what a file holds, or None for a file of another kind.

    Raise one of `zip_file.MALFORMED` for malformed bytes.
    """
    if content.startswith(_ZIP):
        archive = ZipContent(content)
        if _TEACHABLE in archive.names:
            most = MAX_UNPACKED if archive.is_compressed(_TEACHABLE) else MAX_BYTES
            return _parse_h5(archive.read(_TEACHABLE, most=most), name)
        return _parse_archive(archive, name)
    if content.startswith(_HDF5):
        return _parse_h5(content, name)
    return None


def read_given(path: Path, *, most: int) -> bytes:
    """Return the content of a file that the user named, or raise OSError or ValueError."""
    if path.stat().st_size > most:
        raise ValueError(f"more than {most:,} bytes")
    return path.read_bytes()


def first_line(error: BaseException) -> str:
    """Return the first line of an error's text, fit for a terminal and shortened."""
    lines = str(error).strip().splitlines()
    return printable(lines[0])[:160] if lines else type(error).__name__


def is_of_this_project(path: Path) -> bool:
    """Return whether `lrtflite train` saved a model: its last layer is the project's own."""
    try:
        content = read_given(path, most=MAX_BYTES)
        if content.startswith(_ZIP):
            config = _json(ZipContent(content).read(_CONFIG, most=MAX_CONFIG))
        elif content.startswith(_HDF5):
            with Hdf5(content) as file:
                config = _json((file.text(_H5_CONFIG, most=MAX_CONFIG) or "").encode())
        else:
            return False
        last = config["config"]["layers"][-1]
        return _CLASS_SLOTS in (last["class_name"], last.get("registered_name"))
    except MALFORMED:
        return False  # reading it says what is wrong


def _parse_archive(archive: ZipContent, name: str) -> KerasFile:
    config = _json(archive.read(_CONFIG, most=MAX_CONFIG))
    metadata = _json(archive.read(_METADATA, most=MAX_CONFIG))
    most = MAX_UNPACKED if archive.is_compressed(_WEIGHTS) else MAX_BYTES
    with Hdf5(archive.read(_WEIGHTS, most=most)) as file:
        found = file.contents(_VARIABLES)
    version = str(metadata.get("keras_version", ""))
    return KerasFile(name, config, version, found.arrays, False, found.names)


def _parse_h5(content: bytes, name: str) -> KerasFile:
    with Hdf5(content) as file:
        text = file.text(_H5_CONFIG, most=MAX_CONFIG)
        version = file.text("keras_version", most=MAX_CONFIG) or "2."
        found = file.contents(group=None if text is None else _H5_WEIGHTS)
    config = {} if text is None else _json(text.encode())
    return KerasFile(name, config, version, found.arrays, True, {})


def _json(content: bytes) -> dict[str, Any]:
    found = strict_json(content.decode())
    if not isinstance(found, dict):
        raise ValueError("a configuration that is not an object")
    return found


def part_of(key: str) -> str:
    """Return the last part of an array's path, without its number: `conv1/kernel:0` -> `kernel`."""
    return key.rpartition("/")[2].partition(":")[0]


def _place(key: str) -> tuple[int, str]:
    part = part_of(key)
    return _PARTS.index(part) if part in _PARTS else len(_PARTS), part


def _snake_case(name: str) -> str:
    """Return the name of a class as Keras writes it in paths: Conv2D -> conv2d."""
    name = re.sub(r"\W+", "", name)
    name = re.sub("(.)([A-Z][a-z]+)", r"\1_\2", name)
    return re.sub("([a-z])([A-Z])", r"\1_\2", name).lower()
