"""Networks by name, as far as they are known before TensorFlow is loaded.

To add one, write a function in a file of its own that builds it (`lrtflite.host.network.Network`),
describe it as an `Architecture` and register that in `NETWORKS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches

from lrtflite.errors import ModelError
from lrtflite.table import Table

# Greatest number of class slots.
MOST_CLASSES = 100_000


def refuse_unknown_layer(name: str, layers: tuple[str, ...]) -> None:
    """Raise ModelError for a layer that is not among `layers`, with the nearest name."""
    if name in layers:
        return
    halves = [layer for layer in layers if layer.startswith(f"{name}/")]
    if near := halves or get_close_matches(name.lower(), layers, n=1, cutoff=0.75):
        meant = " or ".join(map(repr, near))
        raise ModelError(f"Expected a replay layer, got {name!r}; did you mean {meant}?")
    raise ModelError(
        f"Expected a replay layer of {', '.join(layers)}, got {name!r}; take one of these"
    )


@dataclass(frozen=True)
class Architecture:
    """A network without its weights.

    Attributes:
        name: as a user types it, "mobilenet_v1".
        title: as its authors write it, "MobileNetV1".
        replay_layers: where latents can be taken, in network order. The first one is the input, so
            its latents are the frames; the last one is pooled, so its latents are vectors.
        classifier: name of the last layer, in models that have one.
        resting_layers: replay layers above which only the classifier has weights.
        lowest_quick: lowest replay layer above which a trunk takes the quick rates.
        build: "module:function" that returns the `Network`, from the keywords `weights`, `alpha`
            and `input_size`.
        named_weights: weights that have a name; the first one is the default, all others are files.
        explain_layer: raises a ModelError of its own for a name that is not a replay layer.
    """

    name: str
    title: str
    replay_layers: tuple[str, ...]
    classifier: str
    resting_layers: tuple[str, ...]
    lowest_quick: str
    build: str
    named_weights: tuple[str, ...] = ("none",)
    explain_layer: Callable[[str], None] | None = None

    @property
    def pooled(self) -> str:
        return self.replay_layers[-1]

    def reads_frames(self, replay_layer: str) -> bool:
        """Return whether the latents of a layer are the frames themselves."""
        return replay_layer == self.replay_layers[0]

    def trains_trunk(self, replay_layer: str) -> bool:
        """Return whether more than the classifier has weights above a layer."""
        return replay_layer not in self.resting_layers

    def check_layer(self, name: str) -> None:
        """Raise ModelError for a name that is not a replay layer."""
        if name not in self.replay_layers and self.explain_layer is not None:
            self.explain_layer(name)
        refuse_unknown_layer(name, self.replay_layers)


NETWORKS: Table[Architecture] = Table(
    "network", {"mobilenet_v1": "lrtflite.layer_names:MOBILENET_V1"}
)
