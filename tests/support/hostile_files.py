"""Keras files and weights that try to run code, to read other files, or to fill the RAM.

`payload(marker)` is what they run: it creates the file `marker`.
"""

from __future__ import annotations

import importlib
import io
import json
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py  # type: ignore[import-untyped]
import numpy as np
import tf_keras

from lrtflite.host.mobilenet import ClassSlots, mobilenet_v1

SIZE = 32
ESCAPE = "\x1b[31mred\x1b[0m\x07"
# Bytes that the bombs unpack to.
HUGE = 3_500_000_000


def executing(keras: Any, marker: Path) -> Any:
    """Return a layer with bytecode that creates `marker` whenever a model with it is built."""
    name = str(marker)
    return keras.layers.Lambda(
        lambda x: (open(name, "w").close(), x)[1],  # type: ignore[func-returns-value]
        name="code",
    )


def with_code(keras: Any, marker: Path, *, slots: bool = False, nested: bool = False) -> Any:
    """Return a model of Keras's layers with bytecode; `slots` adds the project's last layer."""
    layers = keras.layers
    images = keras.Input((SIZE, SIZE, 3))
    x = layers.Conv2D(4, 3)(layers.Rescaling(1 / 255)(images))
    if nested:
        inner = keras.Input(x.shape[1:])
        x = keras.Model(inner, executing(keras, marker)(inner), name="inner")(x)
    else:
        x = executing(keras, marker)(x)
    x = layers.GlobalAveragePooling2D()(x)
    x = ClassSlots(3, name="fc7")(x) if slots else layers.Dense(3)(x)
    return keras.Model(images, x, name="mobilenet_v1")


class Runs:
    """An object whose unpickling runs `open(marker, "w")`."""

    def __init__(self, marker: Path) -> None:
        self.marker = str(marker)

    def __reduce__(self) -> Any:
        return open, (self.marker, "w")


def changed_archive(source: Path, target: Path, change: Callable[[Any], None]) -> None:
    """Copy a `.keras` file with another configuration."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name == "config.json":
                config = json.loads(content)
                change(config)
                content = json.dumps(config).encode()
            new.writestr(name, content)


def changed_h5(source: Path, target: Path, change: Callable[[Any], None]) -> None:
    """Copy an `.h5` file of a model with another configuration."""
    target.write_bytes(source.read_bytes())
    with h5py.File(target, "a") as file:
        config = json.loads(file.attrs["model_config"])
        change(config)
        file.attrs["model_config"] = json.dumps(config)


def zeros(size: int) -> bytes:
    """Return a raw deflate stream of `size` zeros, or a few more, without computing it."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = packer.compress(bytes(1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    return block * (size // (1 << 20) + 1) + b"\x03\x00"


def deflated(name: str, start: bytes, size: int, *, declared: int | None = None) -> bytes:
    """Return a zip archive of one member: `start`, then zeros up to `size` bytes."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = packer.compress(start) + packer.flush(zlib.Z_FULL_FLUSH) + zeros(size - len(start))
    numbers = (0, len(packed), size if declared is None else declared)
    title = name.encode()
    local = struct.pack("<4s5H3I2H", b"PK\3\4", 20, 0, 8, 0, 33, *numbers, len(title), 0)
    entry = struct.pack(
        "<4s6H3I5H2I", b"PK\1\2", 20, 20, 0, 8, 0, 33, *numbers, len(title), 0, 0, 0, 0, 0, 0
    )
    body = local + title + packed
    end = struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, 1, 1, len(entry) + len(title), len(body), 0)
    return body + entry + title + end


def npy_header(shape: tuple[int, ...]) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(  # type: ignore[no-untyped-call]
        buffer, {"descr": "<f4", "fortran_order": False, "shape": shape}
    )
    return buffer.getvalue()


def hostile_changes(folder: Path, marker: Path) -> tuple[Callable[[Any], None], ...]:
    """Return changes of a configuration that name code, or put it in a network of the project."""
    code = json.loads(h5py.File(folder / "slots.h5")["/"].attrs["model_config"])
    code = next(layer for layer in code["config"]["layers"] if layer["class_name"] == "Lambda")

    def smuggle(config: Any) -> None:
        """Replace an activation of the project's own network by bytecode."""
        layer = config["config"]["layers"][3]
        layer.update(class_name="Lambda", module="keras.layers", registered_name=None)
        layer["config"] = {**code["config"], "name": layer["config"]["name"]}

    def popen(config: Any) -> None:
        layer = config["config"]["layers"][3]
        layer.update(class_name="Popen", module="subprocess", registered_name="Popen")
        layer["config"] = {"args": ["touch", str(marker)], "name": layer["name"]}

    def system(config: Any) -> None:
        layer = config["config"]["layers"][1]
        given = {"module": "os", "class_name": "function", "config": "system"}
        layer["config"]["activation"] = given
        config["config"]["layers"][2]["config"]["name"] = ESCAPE

    def wrapped(config: Any) -> None:
        layer = config["config"]["layers"][3]
        layer.update(class_name="TimeDistributed", module="keras.layers", registered_name=None)
        layer["config"] = {"name": layer["config"]["name"], "layer": code}

    def vocabulary(config: Any) -> None:
        layer = config["config"]["layers"][3]
        layer.update(class_name="TextVectorization", module="keras.layers", registered_name=None)
        layer["config"] = {"name": layer["config"]["name"], "vocabulary": str(folder / "secret")}

    def said(config: Any) -> None:
        config["config"]["name"] = ESCAPE

    return smuggle, popen, system, wrapped, vocabulary, said


def make_executing(folder: Path, marker: Path) -> list[Path]:
    """Write files of which each runs code, or names code to run, when a Keras loader reads it."""
    keras_3 = importlib.import_module("keras")
    made = {
        "lambda.h5": with_code(tf_keras, marker),
        "lambda.keras": with_code(tf_keras, marker),
        "slots.h5": with_code(tf_keras, marker, slots=True),
        "slots.keras": with_code(tf_keras, marker, slots=True),
        "nested.h5": with_code(tf_keras, marker, nested=True),
        "three.keras": with_code(keras_3, marker),
        "three.h5": with_code(keras_3, marker),
        "own.h5": mobilenet_v1(alpha=0.125, input_size=SIZE, classes=3),
        "own.keras": mobilenet_v1(alpha=0.125, input_size=SIZE, classes=3),
    }
    for name, model in made.items():
        model.save(folder / name)
    for name in ("lambda", "slots"):  # HDF5 in a file called .keras
        (folder / f"{name}-hdf5.keras").write_bytes((folder / f"{name}.h5").read_bytes())

    for change in hostile_changes(folder, marker):
        changed_h5(folder / "own.h5", folder / f"{change.__name__}.h5", change)
        changed_archive(folder / "own.keras", folder / f"{change.__name__}.keras", change)
    for name in ("own.h5", "own.keras"):
        (folder / name).unlink()
    objects = np.empty(1, dtype=object)
    objects[0] = Runs(marker)
    np.savez(folder / "pickled.npz", **{"conv1/kernel": objects, "record": objects})
    marker.unlink(missing_ok=True)
    return sorted(folder.iterdir())


def elsewhere(secret: Path) -> tuple[Callable[[Any], None], ...]:
    """Return changes of an `.h5` file, whose arrays then lie in `secret`, or nowhere."""
    place = "model_weights/conv1/conv/conv1/conv/kernel:0"

    def weights(file: Any) -> None:
        del file["model_weights"]
        file["model_weights"] = h5py.ExternalLink(str(secret), "model_weights")

    def array(file: Any) -> None:
        del file[place]
        file[place] = h5py.ExternalLink(str(secret), place)

    def raw(file: Any) -> None:
        del file[place]
        shape = (3, 3, 3, 4)
        file.create_dataset(place, shape, "f4", external=[(str(secret), 0, 432)])

    def virtual(file: Any) -> None:
        del file[place]
        layout = h5py.VirtualLayout((3, 3, 3, 4), "f4")
        layout[:] = h5py.VirtualSource(str(secret), place, (3, 3, 3, 4))
        file.create_virtual_dataset(place, layout)

    def packed(file: Any) -> None:
        del file[place]
        file.create_dataset(place, (1 << 20, 1 << 10), "f4", chunks=(1024, 1024), compression=4)

    def looping(file: Any) -> None:
        file["model_weights/again"] = file["model_weights"]
        del file[place]

    return weights, array, raw, virtual, packed, looping


def make_pointing(folder: Path, secret: Path) -> list[Path]:
    """Write files that point at the arrays or the text of another file, `secret`."""
    model = mobilenet_v1(alpha=0.125, input_size=SIZE, classes=3)
    model.save(folder / "own.h5")
    model.save(folder / "own.keras")
    model.save(secret)
    whole = (folder / "own.h5").read_bytes()

    def with_link(name: str, change: Callable[[Any], None]) -> None:
        (folder / name).write_bytes(whole)
        with h5py.File(folder / name, "a") as file:
            change(file)

    for change in elsewhere(secret):
        with_link(f"{change.__name__}.h5", change)
    link = zipfile.ZipInfo("config.json")
    link.external_attr = 0o120777 << 16
    with zipfile.ZipFile(folder / "symlink.keras", "w") as file:
        file.writestr(link, "/etc/passwd")
        file.writestr("metadata.json", "{}")
        file.writestr("model.weights.h5", "/etc/passwd")
    for name in ("own.h5", "own.keras"):
        (folder / name).unlink()
    return sorted(folder.iterdir())


def make_bombs(folder: Path) -> list[Path]:
    """Write small files that unpack to gigabytes, or say that they do."""
    count = (HUGE - 128) // 4
    array = npy_header((count,))
    (folder / "bomb.npz").write_bytes(deflated("conv1/kernel.npy", array, HUGE))
    liar = deflated("conv1/kernel.npy", array, HUGE, declared=1000)
    (folder / "liar.npz").write_bytes(liar)
    (folder / "bomb.keras").write_bytes(deflated("config.json", b"{", HUGE))
    with zipfile.ZipFile(folder / "other.npz", "w", zipfile.ZIP_BZIP2) as file:
        file.writestr("conv1/kernel.npy", array + bytes(1 << 24))
    with zipfile.ZipFile(folder / "huge.npz", "w") as file:
        file.writestr("conv1/kernel.npy", npy_header((1 << 20, 1 << 20)))
    nested = b"{'descr': " + b"(" * 5000 + b"}"
    header = b"\x93NUMPY\x01\x00" + len(nested).to_bytes(2, "little") + nested
    with zipfile.ZipFile(folder / "nested.npz", "w") as file:
        file.writestr("conv1/kernel.npy", header)
    with h5py.File(folder / "deep.h5", "w") as file:
        deep = file
        for _ in range(2000):
            deep = deep.create_group("deep")
    with h5py.File(folder / "list.h5", "w") as file:
        file.attrs["model_config"] = [b"{}"] * 3
    return sorted(folder.iterdir())
