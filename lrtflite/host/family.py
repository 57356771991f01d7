"""Published networks: how each is built, and what files call its weights."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import tf_keras as keras
from numpy.typing import NDArray

from lrtflite.errors import ModelError
from lrtflite.host.efficientnet_lite0 import efficientnet_lite0
from lrtflite.host.efficientnet_lite0 import scale_frames as scale_lite0_frames
from lrtflite.host.mobilenet import conv_name, mobilenet_v1, norm_name, scale_frames
from lrtflite.host.mobilenet_v2 import mobilenet_v2
from lrtflite.networks import efficientnet_lite0 as lite0
from lrtflite.networks.architecture import Architecture
from lrtflite.networks.mobilenet_v1 import ALPHAS, KERAS_NAMES, MOBILENET_V1
from lrtflite.networks.mobilenet_v2 import MOBILENET_V2, blocks, first_width, last_width
from lrtflite.photos import weights as lite0_weights

Arrays = Mapping[str, NDArray[np.float32]]
NORM_PARTS = ("gamma", "beta", "moving_mean", "moving_variance")


@dataclass(frozen=True)
class UnitNames:
    """A convolution and its norm: the layers here, and their names in files of weights.

    The names in files are those of keras.applications, if it has the network.

    `norms` are the names that the norm may have, depending on the width.
    """

    convolution: str
    norms: tuple[str, ...]
    keras_convolution: str
    keras_norm: str
    kernel: str = "kernel"  # or "depthwise_kernel"

    @property
    def weights(self) -> tuple[str, ...]:
        """Return the names of the five arrays in keras.applications."""
        norms = (f"{self.keras_norm}/{part}" for part in NORM_PARTS)
        return (f"{self.keras_convolution}/{self.kernel}", *norms)


@dataclass(frozen=True)
class Family:
    """A published network at every width.

    Attributes:
        architecture: the names of its layers.
        build: returns the Keras model, from `alpha`, `input_size`, `classes` and `activation`.
        units: its convolutions, in network order.
        find_alpha: returns the width of a network with the given arrays.
        published_alphas: widths for which weights are published.
        published_sizes: input sizes for which weights are published.
        application: name of the function in keras.applications that has the weights; None if a
            package has them instead.
        scale: turns frames into inputs of the network.
        package_file: returns the path of the package's PyTorch file.
        read_pytorch: returns the arrays of such a file, from its path and its bytes.
    """

    architecture: Architecture
    build: Callable[..., keras.Model]
    units: tuple[UnitNames, ...]
    find_alpha: Callable[[Arrays], float]
    published_alphas: tuple[float, ...]
    published_sizes: tuple[int, ...]
    application: str | None = None
    scale: Callable[[Any], Any] = scale_frames
    package_file: Callable[[], Path] | None = None
    read_pytorch: Callable[[Path, bytes], Arrays] | None = None

    @cached_property
    def weight_names(self) -> tuple[str, ...]:
        """The names of all arrays below the classifier, in network order."""
        return tuple(name for unit in self.units for name in unit.weights)

    @cached_property
    def keras_layers(self) -> dict[str, str]:
        """The layer of keras.applications for each layer of this project."""
        found = {unit.convolution: unit.keras_convolution for unit in self.units}
        return {**found, **{norm: unit.keras_norm for unit in self.units for norm in unit.norms}}

    def keras_name(self, layer: str, weight: str) -> str:
        """Return keras.applications' name of an array, from a layer and a weight of either."""
        part = weight.split(":")[0].rsplit("/", 1)[-1]
        return f"{self.keras_layers.get(layer, layer)}/{part}"

    @cached_property
    def norms(self) -> frozenset[str]:
        """The norms of this project's network, by name."""
        return frozenset(norm for unit in self.units for norm in unit.norms)


def family_of(model: keras.Model) -> Family:
    """Return the family of a model that one of the families built."""
    return FAMILIES[model.name]


def find_family(network: str) -> Family:
    """Return the family of a network's name; raise ModelError for a network of a plugin."""
    if network not in FAMILIES:
        raise ModelError(
            f"Expected a network of {', '.join(FAMILIES)}, got {network!r}, which has no published "
            "widths and weights",
            "choose one of these",
        )
    return FAMILIES[network]


def _v1_units() -> tuple[UnitNames, ...]:
    return tuple(
        UnitNames(
            conv_name(paper),
            (norm_name(paper),),
            name,
            f"{name}_bn",
            "depthwise_kernel" if "_dw_" in name else "kernel",
        )
        for paper, name in KERAS_NAMES.items()
    )


def _v1_alpha(arrays: Arrays) -> float:
    """Return the width, from the `int(1024 * alpha)` filters of the last convolution."""
    return float(arrays["conv_pw_13/kernel"].shape[-1]) / 1024


def _v2_units() -> tuple[UnitNames, ...]:
    def unit(name: str, theirs: str, norm: str, kernel: str = "kernel") -> UnitNames:
        return UnitNames(conv_name(name), (norm_name(name),), theirs, norm, kernel)

    units = [unit("conv1", "Conv1", "bn_Conv1")]
    for block in blocks(1.0):
        name, theirs = block.name, block.name if block.expands else "expanded_conv"
        if block.expands:
            units.append(unit(f"{name}/expand", f"{theirs}_expand", f"{theirs}_expand_BN"))
        depthwise = f"{theirs}_depthwise"
        units.append(unit(f"{name}/dw", depthwise, f"{depthwise}_BN", "depthwise_kernel"))
        last, project = f"{name}/project", f"{theirs}_project"
        # A block without a join ends at the norm, which then has the block's name.
        units.append(UnitNames(conv_name(last), (last, name), project, f"{project}_BN"))
    units.append(unit("conv_last", "Conv_1", "Conv_1_bn"))
    return tuple(units)


def _v2_alpha(arrays: Arrays) -> float:
    names = ["Conv1", "expanded_conv_project"]
    names += [f"block_{number}_project" for number in range(1, 17)]
    return _alpha_of("MobileNetV2", _widths(arrays, (*names, "Conv_1")), _v2_widths, V2_ALPHAS)


def _v2_widths(alpha: float) -> list[int]:
    return [first_width(alpha), *(block.filters for block in blocks(alpha)), last_width(alpha)]


def _widths(arrays: Arrays, names: Iterable[str]) -> list[int]:
    return [int(arrays[f"{name}/kernel"].shape[-1]) for name in names]


def _alpha_of(
    title: str,
    found: list[int],
    widths: Callable[[float], list[int]],
    published: tuple[float, ...],
) -> float:
    """Return a width at which a network has the given numbers of filters.

    Several widths round to the same filters; published and round ones come first.
    """
    steps = [step / digits for digits in (10, 100, 1000) for step in range(1, int(4 * digits) + 1)]
    for alpha in (*published, *(step for step in steps if ALPHAS[0] <= step <= ALPHAS[1])):
        if widths(alpha) == found:
            return alpha
    raise ModelError(
        f"Expected the numbers of filters of a {title} of some alpha, got "
        f"{', '.join(map(str, found))}",
        "use the weights of the published network",
    )


def _lite0_units() -> tuple[UnitNames, ...]:
    units = []
    for name, _, _ in lite0_weights.units():
        kernel = lite0_weights.kernel_name(name)
        # The norm of a projection has the name of the projection, or of its block.
        norms = (norm_name(name), name, name.removesuffix("/project"))
        convolution, _, kernel = kernel.rpartition("/")
        units.append(UnitNames(convolution, norms, convolution, norm_name(name), kernel))
    return tuple(units)


def _lite0_alpha(arrays: Arrays) -> float:
    names = [conv_name(f"block_{number}/project") for number in range(len(_lite0_widths(1.0)))]
    title = lite0.EFFICIENTNET_LITE0.title
    return _alpha_of(title, _widths(arrays, names), _lite0_widths, (1.0,))


def _lite0_widths(alpha: float) -> list[int]:
    return [block.filters for block in lite0.blocks(alpha)]


V2_ALPHAS = (1.0, 0.35, 0.5, 0.75, 1.3, 1.4)
MOBILENET_V1_FAMILY = Family(
    MOBILENET_V1,
    mobilenet_v1,
    _v1_units(),
    _v1_alpha,
    application="MobileNet",
    published_alphas=(0.25, 0.5, 0.75, 1.0),
    published_sizes=(128, 160, 192, 224),
)
MOBILENET_V2_FAMILY = Family(
    MOBILENET_V2,
    mobilenet_v2,
    _v2_units(),
    _v2_alpha,
    application="MobileNetV2",
    published_alphas=tuple(sorted(V2_ALPHAS)),
    published_sizes=(96, 128, 160, 192, 224),
)
EFFICIENTNET_LITE0_FAMILY = Family(
    lite0.EFFICIENTNET_LITE0,
    efficientnet_lite0,
    _lite0_units(),
    _lite0_alpha,
    published_alphas=(1.0,),
    published_sizes=(224,),
    scale=scale_lite0_frames,
    package_file=lite0_weights.package_file,
    read_pytorch=lite0_weights.read_pytorch,
)
FAMILIES: dict[str, Family] = {
    family.architecture.name: family
    for family in (MOBILENET_V1_FAMILY, MOBILENET_V2_FAMILY, EFFICIENTNET_LITE0_FAMILY)
}


def keras_application(family: Family, **options: Any) -> keras.Model:
    """Return the network of keras.applications, without its classifier."""
    assert family.application is not None
    build = getattr(keras.applications, family.application)
    return build(include_top=False, **options)
