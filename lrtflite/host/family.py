"""Published networks: how each is built, and what keras.applications calls its weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import tf_keras as keras
from numpy.typing import NDArray

from lrtflite.errors import ModelError
from lrtflite.host.mobilenet import conv_name, mobilenet_v1, norm_name
from lrtflite.host.mobilenet_v2 import mobilenet_v2
from lrtflite.networks.architecture import Architecture
from lrtflite.networks.mobilenet_v1 import ALPHAS, KERAS_NAMES, MOBILENET_V1
from lrtflite.networks.mobilenet_v2 import MOBILENET_V2, blocks, first_width, last_width

Arrays = Mapping[str, NDArray[np.float32]]
NORM_PARTS = ("gamma", "beta", "moving_mean", "moving_variance")


@dataclass(frozen=True)
class UnitNames:
    """A convolution and its norm: the layers here, and the layers of keras.applications.

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
        application: name of the function in keras.applications.
        published_alphas: widths for which keras.applications has weights.
        published_sizes: input sizes for which it has weights.
    """

    architecture: Architecture
    build: Callable[..., keras.Model]
    units: tuple[UnitNames, ...]
    find_alpha: Callable[[Arrays], float]
    application: str
    published_alphas: tuple[float, ...]
    published_sizes: tuple[int, ...]

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
    """Return a width at which every convolution has the filters of these arrays.

    Several widths round to the same filters; published and round ones come first.
    """
    found = _v2_widths(arrays)
    steps = [step / digits for digits in (10, 100, 1000) for step in range(1, int(4 * digits) + 1)]
    for alpha in (*V2_ALPHAS, *(step for step in steps if ALPHAS[0] <= step <= ALPHAS[1])):
        widths = [first_width(alpha), *(block.filters for block in blocks(alpha))]
        if [*widths, last_width(alpha)] == found:
            return alpha
    raise ModelError(
        "Expected the numbers of filters of a MobileNetV2 of some alpha, got "
        f"{', '.join(map(str, found))}",
        "use weights of keras.applications' network",
    )


def _v2_widths(arrays: Arrays) -> list[int]:
    kernels = ["Conv1", "expanded_conv_project"]
    kernels += [f"block_{number}_project" for number in range(1, 17)]
    return [int(arrays[f"{name}/kernel"].shape[-1]) for name in (*kernels, "Conv_1")]


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
FAMILIES: dict[str, Family] = {
    family.architecture.name: family for family in (MOBILENET_V1_FAMILY, MOBILENET_V2_FAMILY)
}


def keras_application(family: Family, **options: Any) -> keras.Model:
    """Return the network of keras.applications, without its classifier."""
    build = getattr(keras.applications, family.application)
    return build(include_top=False, **options)
