"""Networks with weights from one of four sources: `imagenet`, `demo`, a file, or `none`."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

import numpy as np
import tf_keras as keras

from lrtflite.errors import ModelError
from lrtflite.host.mobilenet import conv_name, mobilenet_v1, norm_name, scale_frames
from lrtflite.host.model_file import first_line
from lrtflite.host.network import Network
from lrtflite.host.weight_files import (
    BackboneWeights,
    from_model,
    read_with_digest,
    write_weights,
)
from lrtflite.layer_names import KERAS_NAMES, MOBILENET_V1

# Sizes and widths for which keras.applications has weights.
PUBLISHED_SIZES = (128, 160, 192, 224)
PUBLISHED_ALPHAS = (0.25, 0.5, 0.75, 1.0)

# Weights of a small backbone that comes with the package.
DEMO_FILE = Path(__file__).with_name("demo_backbone.npz")


def mobilenet_with_weights(
    *,
    weights: str,
    alpha: float | None = None,
    input_size: int = 128,
    classes: int = 50,
    activation: str | None = None,
) -> tuple[keras.Model, str]:
    """Return a MobileNetV1 with backbone weights, and one line about the source of the weights.

    Args:
        weights: "imagenet", "demo", "none" (random) or the path of a .npz, .h5 or .keras file.
        alpha: width; None uses the weights' own (1.0 for "imagenet" and "none").
        input_size: side of the square input.
        classes: slots of `fc7`, whose weights stay random; 0 leaves it out.
        activation: "relu6" or "relu"; None uses the weights' own.
    """
    read = None
    if weights not in ("imagenet", "none"):
        read, origin = _read(weights)
        alpha = read.alpha if alpha is None else alpha
        activation = read.activation if activation is None else activation
    model = mobilenet_v1(
        alpha=1.0 if alpha is None else alpha,
        input_size=input_size,
        classes=classes,
        activation=activation or "relu6",
    )
    if read is None:
        return model, load_weights(model, weights)
    _assign(model, read, origin)
    return model, origin


def build_mobilenet_v1(*, weights: str, alpha: float | None, input_size: int) -> Network:
    """Build the network for conversion, without a classifier; see `mobilenet_with_weights`."""
    model, origin = mobilenet_with_weights(
        weights=weights, alpha=alpha, input_size=input_size, classes=0
    )
    width = model.get_layer(MOBILENET_V1.pooled).output_shape[-1] / 1024
    return Network(
        MOBILENET_V1, model, scale_frames, f"{MOBILENET_V1.title} alpha {width:g}, {origin}"
    )


def load_weights(model: keras.Model, weights: str) -> str:
    """Set the backbone weights of `model` (not `fc7`); return one line about their source.

    Batch Norm weights that were trained with another epsilon give the same outputs as before: the
    difference is added to the variance. After a ModelError `model` is unchanged.
    """
    if weights == "none":
        return "random"
    if weights == "imagenet":
        found, origin = _imagenet(alpha=from_model(model).alpha, size=model.input_shape[1])
    else:
        found, origin = _read(weights)
    _assign(model, found, origin)
    return origin


def write_npz(model: keras.Model, path: Path) -> None:
    """Write the backbone of `model` under keras.applications' names, for `load_weights`."""
    write_weights(from_model(model), path)


def _read(weights: str) -> tuple[BackboneWeights, str]:
    """Return the weights of a file, or the demo's, and one line about their source."""
    path = _file(weights)
    found, digest = read_with_digest(path)
    return found, f"{'demo backbone' if weights == 'demo' else path.name} (sha256 {digest[:12]})"


def _file(weights: str) -> Path:
    if weights != "demo":
        return Path(weights)
    if not DEMO_FILE.is_file():
        raise ModelError(
            f"Expected the packaged demo weights, got no {DEMO_FILE.name}; "
            "install the package again, or use --weights imagenet"
        )
    return DEMO_FILE


def _imagenet(*, alpha: float, size: int) -> tuple[BackboneWeights, str]:
    if alpha not in PUBLISHED_ALPHAS:
        raise ModelError(
            f"Expected one of the published alphas {', '.join(map(str, PUBLISHED_ALPHAS))} "
            f"with --weights imagenet, got {alpha:g}; choose one, or give a weights file"
        )
    nearest = min(PUBLISHED_SIZES, key=lambda published: (abs(published - size), -published))
    try:
        # Keras prints its download on stdout, which is for results only.
        with contextlib.redirect_stdout(sys.stderr):
            model = keras.applications.MobileNet(
                (nearest, nearest, 3), alpha=alpha, include_top=False, weights="imagenet"
            )
    except Exception as error:  # Keras raises plain Exception when a download fails.
        raise ModelError(
            f"Expected to download the ImageNet weights, got {first_line(error)}; "
            "connect to the internet once, or give a file with --weights"
        ) from error
    origin = f"ImageNet, keras.applications MobileNet alpha {alpha:g} at {nearest} (Apache-2.0)"
    return from_model(model), origin


def _assign(model: keras.Model, found: BackboneWeights, origin: str) -> None:
    own = from_model(model)
    for name, array in own.arrays.items():
        if found.arrays[name].shape != array.shape:
            raise ModelError(
                f"Expected weights for alpha {own.alpha:g}, got alpha {found.alpha:g} "
                f"in {origin}: {name} is {found.arrays[name].shape}, not {array.shape}; "
                f"use --alpha {found.alpha:g}"
            )
    if found.activation != own.activation:
        raise ModelError(
            f"Expected weights trained with {own.activation}, got {found.activation} in {origin}; "
            f"use --activation {found.activation}"
        )
    for paper, name in KERAS_NAMES.items():
        convolution = model.get_layer(conv_name(paper))
        kernel = "depthwise_kernel" if "_dw_" in name else "kernel"
        getattr(convolution, kernel).assign(found.arrays[f"{name}/{kernel}"])
        norm = model.get_layer(norm_name(paper))
        for part in ("gamma", "beta", "moving_mean"):
            getattr(norm, part).assign(found.arrays[f"{name}_bn/{part}"])
        variance = found.arrays[f"{name}_bn/moving_variance"].astype(np.float64)
        norm.moving_variance.assign(variance + found.epsilon - norm.epsilon)
