"""Networks by name, described without TensorFlow.

To add a network, write a function that builds it (`lrtflite.host.network.Network`) in a new file,
describe it as an `Architecture` and register that in `NETWORKS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches

from lrtflite.errors import ModelError
from lrtflite.tables.table import Table

# Maximum number of class slots in a head.
MAX_CLASSES = 100_000
# Activations after each convolution with their upper limits, the default first.
RELU6, RELU = "relu6", "relu"
ACTIVATIONS: Table[float | None] = Table("activation", {RELU6: 6.0, RELU: None})


def refuse_unknown_layer(name: str, layers: tuple[str, ...]) -> None:
    """Raise ModelError with the nearest name for a layer that is not among `layers`."""
    if name in layers:
        return
    halves = [layer for layer in layers if layer.startswith(f"{name}/")]
    if near := halves or get_close_matches(name.lower(), layers, n=1, cutoff=0.75):
        meant = " or ".join(map(repr, near))
        raise ModelError(f"Expected a replay layer, got {name!r}", f"did you mean {meant}?")
    raise ModelError(
        f"Expected a replay layer of {', '.join(layers)}, got {name!r}", "choose one of these"
    )


@dataclass(frozen=True)
class Architecture:
    """A network without its weights.

    Attributes:
        name: as a user types it, "mobilenet_v1".
        title: as its authors write it, "MobileNetV1".
        replay_layers: layers that can be the replay layer, in network order. The first one is the
            input, so its latents are frames. The last one is pooled, so its latents are vectors.
        classifier: name of the last layer, in models that have one.
        resting_layers: replay layers above which only the classifier has weights.
        lowest_quick: lowest replay layer for which a trunk trains with the quick rates.
        refit_layer: layer whose average a closed form above a trunk is solved on; empty for the
            pooled layer. Replay layers at or above it use the pooled layer too.
        second_layer: layer that a second closed form next to the pooled layer gains most from;
            empty if no study has found one.
        build: "module:function" that returns the `Network`, from the keywords `weights`, `alpha`
            and `input_size`, and from `activation` if that can be chosen.
        named_weights: weights that have a name, the default first; any other weights are a file.
        freeze_below: layer at and below which host training of a first batch freezes the network by
            default; empty for the pooled layer.
        weights_packages: packages with the weights "imagenet", by the names of
            `lrtflite.system.extras`; none if they are a download.
        explain_layer: raises a ModelError with better advice for some names of other layers.
        activation_varies: whether the network can be built with each of `ACTIVATIONS`.
    """

    name: str
    title: str
    replay_layers: tuple[str, ...]
    classifier: str
    resting_layers: tuple[str, ...]
    lowest_quick: str
    build: str
    named_weights: tuple[str, ...] = ("none",)
    refit_layer: str = ""
    second_layer: str = ""
    freeze_below: str = ""
    weights_packages: tuple[str, ...] = ()
    explain_layer: Callable[[str], None] | None = None
    activation_varies: bool = False

    @property
    def pooled(self) -> str:
        return self.replay_layers[-1]

    def reads_frames(self, replay_layer: str) -> bool:
        """Return whether the latents of a replay layer are the frames themselves."""
        return replay_layer == self.replay_layers[0]

    def trains_trunk(self, replay_layer: str) -> bool:
        """Return whether layers other than the classifier have weights above a replay layer."""
        return replay_layer not in self.resting_layers

    def refits_at(self, replay_layer: str) -> str:
        """Return the layer that a closed form above a replay layer is solved on."""
        layers = self.replay_layers
        below = self.refit_layer and layers.index(replay_layer) < layers.index(self.refit_layer)
        return self.refit_layer if below else self.pooled

    def check_layer(self, name: str) -> None:
        """Raise ModelError for a name that is not a replay layer."""
        if name not in self.replay_layers and self.explain_layer is not None:
            self.explain_layer(name)
        refuse_unknown_layer(name, self.replay_layers)


NETWORKS: Table[Architecture] = Table(
    "network",
    {
        "mobilenet_v1": "lrtflite.networks.mobilenet_v1:MOBILENET_V1",
        "mobilenet_v2": "lrtflite.networks.mobilenet_v2:MOBILENET_V2",
        "efficientnet_lite0": "lrtflite.networks.efficientnet_lite0:EFFICIENTNET_LITE0",
    },
)
