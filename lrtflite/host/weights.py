"""Networks with weights from one of four sources: `imagenet`, `demo`, a file, or `none`."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

import tf_keras as keras

from lrtflite.errors import ModelError
from lrtflite.files.keras import first_line
from lrtflite.host.family import (
    EFFICIENTNET_LITE0_FAMILY,
    MOBILENET_V1_FAMILY,
    MOBILENET_V2_FAMILY,
    Family,
    family_of,
    keras_application,
)
from lrtflite.host.keras_weights import BackboneWeights
from lrtflite.host.network import Network
from lrtflite.host.weight_files import (
    from_model,
    read_with_digest,
    write_weights,
)
from lrtflite.networks.architecture import RELU, RELU6
from lrtflite.photos.batch_norm_folding import with_epsilon
from lrtflite.photos.weights import origin_of

# Weights of a small backbone that comes with the package.
DEMO_FILE = Path(__file__).with_name("demo_backbone.npz")


def mobilenet_with_weights(
    family: Family = MOBILENET_V1_FAMILY,
    *,
    weights: str,
    alpha: float | None = None,
    input_size: int = 128,
    classes: int = 50,
    activation: str | None = None,
) -> tuple[keras.Model, str]:
    """Return a network with backbone weights, and one line about the source of the weights.

    Args:
        family: the network, MobileNetV1 by default.
        weights: "imagenet", "none" (random), "demo" (MobileNetV1 only) or the path of a .npz, .h5
            or .keras file.
        alpha: width; None uses the weights' own (1.0 for "imagenet" and "none").
        input_size: side of the square input.
        classes: slots of the classifier, whose weights stay random; 0 leaves it out.
        activation: one of `ACTIVATIONS`; None uses the weights' own, or ReLU6 if their file does
            not say.
    """
    architecture = family.architecture
    if weights == "demo" and weights not in architecture.named_weights:
        raise ModelError(
            f"Expected {', '.join(architecture.named_weights)} or a file as the weights of "
            f"{architecture.name}, got 'demo'",
            "choose one of these",
        )
    read = None
    if weights not in ("imagenet", "none"):
        read, origin = _read(weights, family)
        alpha = family.find_alpha(read.arrays) if alpha is None else alpha
        activation = read.activation if activation is None else activation
    model = family.build(
        alpha=1.0 if alpha is None else alpha,
        input_size=input_size,
        classes=classes,
        activation=activation or RELU6,
    )
    if read is None:
        return model, load_weights(model, weights)
    _assign(model, read, origin)
    return model, origin


def build_mobilenet_v1(
    *, weights: str, alpha: float | None, input_size: int, activation: str | None = None
) -> Network:
    """Build MobileNetV1 for conversion, without a classifier; see `mobilenet_with_weights`."""
    return _network(MOBILENET_V1_FAMILY, weights, alpha, input_size, activation)


def build_mobilenet_v2(
    *, weights: str, alpha: float | None, input_size: int, activation: str | None = None
) -> Network:
    """Build MobileNetV2 for conversion, without a classifier; see `mobilenet_with_weights`."""
    return _network(MOBILENET_V2_FAMILY, weights, alpha, input_size, activation)


def build_efficientnet_lite0(
    *, weights: str, alpha: float | None, input_size: int, activation: str | None = None
) -> Network:
    """Build EfficientNet-Lite0 for conversion, without a classifier; see `mobilenet_with_weights`.

    Its published weights come from a package.
    """
    return _network(EFFICIENTNET_LITE0_FAMILY, weights, alpha, input_size, activation)


def _network(
    family: Family, weights: str, alpha: float | None, input_size: int, activation: str | None
) -> Network:
    model, origin = mobilenet_with_weights(
        family,
        weights=weights,
        alpha=alpha,
        input_size=input_size,
        classes=0,
        activation=activation,
    )
    found = from_model(model, family)
    width = alpha or family.find_alpha(found.arrays)
    title = f"{family.architecture.title} alpha {width:g}"
    # A bundle of the default names no activation, as before there was a choice.
    title += " with ReLU" if found.activation == RELU else ""
    return Network(family.architecture, model, family.scale, f"{title}, {origin}")


def load_weights(model: keras.Model, weights: str) -> str:
    """Set the weights of `model` below its classifier; return one line about their source.

    Batch Norm weights that were trained with another epsilon give the same outputs as before: the
    difference is added to the variance. After a ModelError `model` is unchanged.
    """
    if weights == "none":
        return "random"
    family = family_of(model)
    if weights == "imagenet":
        alpha = family.find_alpha(from_model(model, family).arrays)
        found, origin = _imagenet(family, alpha=alpha, size=model.input_shape[1])
    else:
        found, origin = _read(weights, family)
    _assign(model, found, origin)
    return origin


def write_npz(model: keras.Model, path: Path) -> None:
    """Write the backbone of `model` under keras.applications' names, for `load_weights`."""
    write_weights(from_model(model, family_of(model)), path)


def _read(weights: str, family: Family) -> tuple[BackboneWeights, str]:
    """Return the weights of a file, or the demo's, and one line about their source."""
    path = _file(weights)
    found, digest = read_with_digest(path, family)
    return found, f"{'demo backbone' if weights == 'demo' else path.name} (sha256 {digest[:12]})"


def _file(weights: str) -> Path:
    if weights != "demo":
        return Path(weights)
    if not DEMO_FILE.is_file():
        raise ModelError(
            f"Expected the packaged demo weights, got no {DEMO_FILE.name}",
            "install the package again, or use --weights imagenet",
        )
    return DEMO_FILE


def _imagenet(family: Family, *, alpha: float, size: int) -> tuple[BackboneWeights, str]:
    alphas = family.published_alphas
    if alpha not in alphas:
        raise ModelError(
            f"Expected one of the published alphas {', '.join(map(str, alphas))} "
            f"with --weights imagenet, got {alpha:g}",
            "choose one, or give a weights file",
        )
    if family.package_file is not None:
        found, digest = read_with_digest(family.package_file(), family)
        return found, origin_of(digest)
    nearest = min(family.published_sizes, key=lambda published: (abs(published - size), -published))
    try:
        # Keras prints its download on stdout, which is for results only.
        with contextlib.redirect_stdout(sys.stderr):
            model = keras_application(
                family, input_shape=(nearest, nearest, 3), alpha=alpha, weights="imagenet"
            )
    except Exception as error:  # Keras raises plain Exception when a download fails.
        raise ModelError(
            f"Expected to download the ImageNet weights, got {first_line(error)}",
            "connect to the internet once, or give a file with --weights",
        ) from error
    origin = (
        f"ImageNet, keras.applications {family.application} alpha {alpha:g} at {nearest} "
        "(Apache-2.0)"
    )
    return from_model(model, family), origin


def _assign(model: keras.Model, found: BackboneWeights, origin: str) -> None:
    family = family_of(model)
    own = from_model(model, family)
    for name, array in own.arrays.items():
        if found.arrays[name].shape != array.shape:
            alphas = [family.find_alpha(weights.arrays) for weights in (own, found)]
            raise ModelError(
                f"Expected weights for alpha {alphas[0]:.3g}, got alpha {alphas[1]:g} "
                f"in {origin}: {name} is {found.arrays[name].shape}, not {array.shape}",
                f"use --alpha {alphas[1]:g}",
            )
    if found.activation not in (None, own.activation):
        raise ModelError(
            f"Expected weights trained with {own.activation}, got {found.activation} in {origin}",
            f"use --activation {found.activation}",
        )
    for layer in model.layers:
        for weight in layer.weights:
            name = family.keras_name(layer.name, weight.name)
            if name not in own.arrays:
                continue
            value = found.arrays[name]
            if name.endswith("moving_variance"):
                value = with_epsilon(value, found.epsilon, layer.epsilon)
            weight.assign(value)
