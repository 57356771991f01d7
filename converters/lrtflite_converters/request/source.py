"""The network and the labels of a conversion, checked before TensorFlow is loaded."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from lrtflite.errors import ModelError
from lrtflite.labels import new_labels
from lrtflite.networks.architecture import ACTIVATIONS, NETWORKS, Architecture
from lrtflite.networks.mobilenet_v1 import check_network
from lrtflite.system.extras import require
from lrtflite_converters.request.scaling import Scaling, read_scaling

# The networks of saved models.
TRAINED_NETWORKS = ("mobilenet_v1", "mobilenet_v2", "efficientnet_lite0")
# Side of the frames of a network that is built.
INPUT_SIZE = 128
# Endings by which a single label is treated as the name of a missing file.
LABEL_FILES = (".txt", ".csv", ".names", ".labels")


@dataclass(frozen=True)
class Source:
    """A saved model, or a network by name with its weights; None uses the network's default.

    The `activation` of a network is the weights' own by default.

    A `model` is one that `lrtflite train` saved, or a user's own. `scale` is the scaling of frames
    for a user's own model, or for `features`, a `.tflite` model from elsewhere.
    """

    network: str = "mobilenet_v1"
    model: str | None = None
    weights: str | None = None
    alpha: float | None = None
    input_size: int | None = None
    scale: str | None = None
    features: str | None = None
    activation: str | None = None

    def __post_init__(self) -> None:
        """Raise ModelError for a network that cannot be built, or a missing file."""
        check_network(self.alpha, self.side)
        if self.features is not None:
            self._check_features(self.features)
        if self.model is not None:
            if self.weights is not None or self.alpha is not None:
                raise ModelError(
                    "Expected --model, or --weights and --alpha, got both",
                    "leave --weights and --alpha out, because a model has its own",
                )
            if self.activation is not None:
                raise ModelError(
                    f"Expected --model without --activation, got {self.activation}",
                    "leave --activation out, because a model has its own",
                )
            if self.network not in TRAINED_NETWORKS:
                raise ModelError(
                    f"Expected --model with the network {' or '.join(TRAINED_NETWORKS)}, which "
                    f"`lrtflite train` saves, got {self.network!r}",
                    "leave --network or --model out",
                )
            if self.input_size not in (None, INPUT_SIZE):
                raise ModelError(
                    f"Expected --model without --input-size, got {self.input_size}",
                    "leave --input-size out, because a model has its own",
                )
            if not Path(self.model).is_file():
                raise ModelError(
                    f"Expected a saved model, got {self.model}, which is not a file",
                    "check the path",
                )
        if self.scale is not None:
            read_scaling(self.scale)
            if self.model is None and self.features is None:
                raise ModelError(
                    "Expected --scale with your own --model or --features, got a network "
                    "that scales its frames itself",
                    "leave --scale out",
                )
        architecture = NETWORKS.choose(self.network)
        self._check_activation(architecture)
        named = architecture.named_weights
        if self.weights not in (None, *named) and not Path(str(self.weights)).is_file():
            raise ModelError(
                f"Expected {', '.join(named)} or a file, got {self.weights}, which is not a file",
                "check the path",
            )
        if self.model is None and self.named_weights == "imagenet":
            require(*architecture.weights_packages)

    def _check_activation(self, architecture: Architecture) -> None:
        if self.activation is None:
            return
        ACTIVATIONS.check(self.activation)
        if not architecture.activation_varies:
            raise ModelError(
                f"Expected a network whose activation can be chosen, got {architecture.name}",
                "leave --activation out",
            )

    def _check_features(self, features: str) -> None:
        others = (self.model, self.weights, self.alpha, self.activation)
        if any(other is not None for other in others) or self.network != TRAINED_NETWORKS[0]:
            raise ModelError(
                "Expected --features alone, got --model, --network, --weights, --alpha or "
                "--activation too",
                "leave them out, because a .tflite model has its own weights",
            )
        if not Path(features).is_file():
            raise ModelError(
                f"Expected a .tflite model, got {features}, which is not a file", "check the path"
            )

    @property
    def side(self) -> int:
        """Return the side of the frames of a network that is built."""
        return INPUT_SIZE if self.input_size is None else self.input_size

    def with_default_size(self, size: int | None) -> Source:
        """Return a source whose network is built for frames of `size`, unless another is given."""
        is_built = self.model is None and self.features is None
        return replace(self, input_size=size) if is_built and self.input_size is None else self

    @property
    def scaling(self) -> Scaling | None:
        return None if self.scale is None else read_scaling(self.scale)

    @property
    def named_weights(self) -> str:
        """Return the given weights, or the network's default."""
        return self.weights or NETWORKS.choose(self.network).named_weights[0]


def read_labels(text: str | None) -> tuple[str, ...]:
    """Return labels from `a,b,c`, or from a file with one per line.

    The lines of a file may be numbered from 0, as Teachable Machine writes them: `0 mug`.
    """
    if not text:
        return ()
    try:
        # A file may have blank lines between its labels.
        lines = [line for line in Path(text).read_text("utf-8").splitlines() if line.strip()]
        lines = _without_numbers(lines)
    except UnicodeDecodeError as error:
        raise ModelError(
            f"Expected labels in UTF-8, one per line, got {text}: {error}", "save it as UTF-8"
        ) from error
    except OSError:  # not a file, or too long for a file name, so it is a list
        if "," not in text and ("/" in text or text.lower().endswith(LABEL_FILES)):
            raise ModelError(
                f"Expected labels as a,b,c or in a file, one per line, got {text}, which is not a "
                "file",
                "check the path",
            ) from None
        lines = text.split(",")
    labels = tuple(line.strip() for line in lines)
    if not labels or not all(labels):
        raise ModelError(
            f"Expected labels as a,b,c or in a file, one per line, got {text!r}", "leave none empty"
        )
    return new_labels(labels)


def _without_numbers(lines: list[str]) -> list[str]:
    """Return lines without their numbers, if every line begins with its own number from 0."""
    parts = [line.strip().split(" ", 1) for line in lines]
    numbered = all(len(each) == 2 and each[0] == str(i) for i, each in enumerate(parts))
    return [each[1] for each in parts] if numbered else lines
