"""The paper's network as a table, with the names of its layers; imports no TensorFlow."""

from __future__ import annotations

from lrtflite.errors import ModelError
from lrtflite.networks.architecture import Architecture

# Rows of the paper's Table "model_arch": block, filters of its pointwise convolution at alpha 1.0,
# stride of its depthwise one. conv1 (3x3, 32 filters, stride 2) precedes them, pool6 and fc7 follow
# them.
CONV1_FILTERS = 32
BLOCKS = (
    ("conv2_1", 64, 1),
    ("conv2_2", 128, 2),
    ("conv3_1", 128, 1),
    ("conv3_2", 256, 2),
    ("conv4_1", 256, 1),
    ("conv4_2", 512, 2),
    ("conv5_1", 512, 1),
    ("conv5_2", 512, 1),
    ("conv5_3", 512, 1),
    ("conv5_4", 512, 1),
    ("conv5_5", 512, 1),
    ("conv5_6", 1024, 2),
    ("conv6", 1024, 1),
)

# Paper's name -> name of the same convolution in keras.applications, in network order.
KERAS_NAMES: dict[str, str] = {"conv1": "conv1"}
for _number, (_block, _, _) in enumerate(BLOCKS, start=1):
    KERAS_NAMES[f"{_block}/dw"] = f"conv_dw_{_number}"
    KERAS_NAMES[f"{_block}/sep"] = f"conv_pw_{_number}"
PAPER_NAMES: dict[str, str] = {keras_name: paper for paper, keras_name in KERAS_NAMES.items()}

# Layers that can be the replay layer, from the input to the last layer below the classifier.
REPLAY_LAYERS: tuple[str, ...] = ("images", *KERAS_NAMES, "pool6")


# Smallest and largest side of a frame, then smallest and largest width relative to the paper's
# network.
SIZES = (32, 1024)
ALPHAS = (1 / CONV1_FILTERS, 4.0)


def check_network(alpha: float | None, input_size: int) -> None:
    """Raise ModelError for an alpha or input size out of range; None is an unknown alpha."""
    if alpha is not None and not ALPHAS[0] <= alpha <= ALPHAS[1]:  # NaN fails too
        raise ModelError(
            f"Expected an alpha from {ALPHAS[0]:g} to {ALPHAS[1]:g}, got {alpha:g}",
        )
    if not SIZES[0] <= input_size <= SIZES[1]:
        raise ModelError(
            f"Expected an input size from {SIZES[0]} to {SIZES[1]}, got {input_size}",
        )


def check_replay_layer(name: str) -> None:
    """Raise ModelError for a layer that does not exist, or that lies inside a unit."""
    MOBILENET_V1.check_layer(name)


def _explain_layer(name: str) -> None:
    """Raise ModelError for names that users may know from elsewhere, with the right name."""
    if name.endswith("_relu") and (unit := PAPER_NAMES.get(name.removesuffix("_relu"))):
        raise ModelError(
            f"Expected a replay layer by the paper's name, got {name!r}", f"choose {unit!r}"
        )
    if unit := _unit_around(name):
        raise ModelError(
            f"Expected a replay layer that ends a unit, got {name!r}, which lies inside one",
            f"choose {unit!r}",
        )
    if name == "fc7":
        raise ModelError(
            "Expected a replay layer below the classifier, got 'fc7'", "choose 'pool6'"
        )


def _unit_around(name: str) -> str | None:
    """Return the unit that contains a layer, given by our name or by keras.applications'."""
    unit = name.rpartition("/")[0]
    if unit in REPLAY_LAYERS:
        return unit
    if name in PAPER_NAMES:
        return PAPER_NAMES[name]
    return PAPER_NAMES.get(name.removesuffix("_bn"))


MOBILENET_V1 = Architecture(
    name="mobilenet_v1",
    title="MobileNetV1",
    replay_layers=REPLAY_LAYERS,
    classifier="fc7",
    resting_layers=("conv6/sep", "pool6"),
    # Lower units adapt to the light of the last sessions too quickly
    # (docs/studies/replay-layers.md).
    lowest_quick="conv3_1/dw",
    build="lrtflite.host.weights:build_mobilenet_v1",
    named_weights=("demo", "imagenet", "none"),
    explain_layer=_explain_layer,
    activation_varies=True,
    # Its average is a better vector than pool6 where the backbone does not fit, and saves two
    # convolutions (docs/studies/closed-form.md).
    refit_layer="conv5_6/sep",
    second_layer="conv5_6/sep",
    # docs/studies/host-training.md
    freeze_below="conv6/dw",
)
