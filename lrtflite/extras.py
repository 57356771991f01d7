"""Optional packages, and the pip command that installs each of them."""

from __future__ import annotations

from importlib.util import find_spec

from lrtflite.errors import MissingExtra

# Import name -> the smallest extra that installs it; see optional-dependencies in pyproject.toml.
EXTRAS = {
    "ai_edge_litert": "device",
    "tflite_runtime": "device-tflite",
    "rich": "device",
    "PIL": "device",
    "matplotlib": "report",
    "av": "video",
    "cryptography": "sign",
    "tensorflow": "host",
    "tf_keras": "host",
    "tensorflow_model_optimization": "host",
}
# Import name -> name of the package, where they differ.
NAMES = {"PIL": "Pillow", "av": "PyAV"}


def pip_command(package: str) -> str:
    """Return the advice that installs a package of EXTRAS."""
    extra = EXTRAS[package]
    return f"run: pip install 'lrtflite[{extra}]' (in a clone: pip install '.[{extra}]')"


def missing(package: str) -> MissingExtra:
    """Return the error for a package of EXTRAS that cannot be imported."""
    return MissingExtra(f"{NAMES.get(package, package)} is not installed; {pip_command(package)}")


def require(*packages: str) -> None:
    """Raise MissingExtra for the first package that is not installed; import none of them."""
    for package in packages:
        if find_spec(package) is None:
            raise missing(package)
