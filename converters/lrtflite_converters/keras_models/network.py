"""A user's own Keras model as a network: which of its layers can be the replay layer."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import tf_keras as keras

from lrtflite.errors import ModelError, problem_of
from lrtflite.files.keras import read_keras_file
from lrtflite.host.cost import LayerCost
from lrtflite.host.network import Network
from lrtflite.networks.architecture import Architecture, refuse_unknown_layer
from lrtflite_converters.blocks.block import Block
from lrtflite_converters.blocks.split import Walk, maker
from lrtflite_converters.features.sample_frames import pale_frames
from lrtflite_converters.keras_models.cost import count_costs
from lrtflite_converters.keras_models.graph import read_graph
from lrtflite_converters.keras_models.model import OwnModel, build_model
from lrtflite_converters.keras_models.teachable import without_own_layers
from lrtflite_converters.request.scaling import Scaling

# Largest share of a network's ops above a replay layer that trains with the quick rates, in
# percent. It is that of MobileNetV1's lowest such layer (docs/replay-layers.md).
QUICK_COMPUTATION = 87.2
# Number of frames with which the strength of features is measured, and the mean square of the
# features that the learning rate of the last layer was chosen for: 1.4 with ImageNet's weights,
# 1.1 with the demo's.
SAMPLES, MEAN_SQUARE = 6, 1.3
MIN_STRENGTH = 1e-3


@dataclass(frozen=True)
class OwnArchitecture(Architecture):
    """The architecture of a user's model.

    Attributes:
        places: layer of the file -> layer of the network that gives the same output.
        obstacle: why layers below `lowest` cannot train, or "" if all layers can.
        lowest: the lowest replay layer above which everything can train.
        dropped: names of the layers of the classifier that were left out.
        made_by: the tool that made the model, or "" if it is unknown.
        scale: the scaling with which that tool trains.
    """

    places: Mapping[str, str] = field(default_factory=dict)
    obstacle: str = ""
    lowest: str = ""
    dropped: tuple[str, ...] = ()
    made_by: str = ""
    scale: str | None = None

    def check_layer(self, name: str) -> None:
        """Raise ModelError for a layer that cannot be the replay layer, and say which can."""
        if name in self.replay_layers and not (self.obstacle and self.reads_frames(name)):
            return
        if name in self.dropped:
            raise ModelError(
                f"Expected a replay layer below the classifier, got {name!r}",
                f"choose {self.pooled!r}",
            )
        place = self.places.get(name)
        if place is None:
            refuse_unknown_layer(name, self.usable)
        if place != name and place in self.usable:
            raise ModelError(
                f"Expected a replay layer that computes something, got {name!r}, which only passes "
                "on its input",
                f"choose {place!r}",
            )
        order = list(self.places.values())
        above = [layer for layer in self.usable if order.index(layer) > order.index(str(place))]
        if self.obstacle and order.index(str(place)) < order.index(self.lowest):
            raise ModelError(
                f"Expected a replay layer with only layers above it that can train, got {name!r}: "
                f"{self.obstacle}",
                f"choose {self.lowest!r} or a higher layer",
            )
        raise ModelError(
            f"Expected a replay layer that ends a unit and that all paths go through, got {name!r};"
            f" choose {above[0] if above else self.pooled!r}"
        )

    @property
    def usable(self) -> tuple[str, ...]:
        """Return the replay layers above which everything can train."""
        return self.replay_layers[1:] if self.obstacle else self.replay_layers


@dataclass(frozen=True)
class OwnNetwork(Network):
    """The network of a user's model, with the costs of its layers."""

    architecture: OwnArchitecture
    costs: tuple[LayerCost, ...] = ()

    def strength(self, layer: str | None = None) -> float:
        """Return the squared length of the classifier's input, in units of MobileNetV1's features.

        A step of the last layer changes scores in proportion to it, so the rate must fit it.
        """
        pooled = layer not in (None, self.architecture.pooled)
        output = self.output(layer or self.architecture.pooled, pooled=pooled)
        frames = pale_frames(SAMPLES, self.input_size, np.random.default_rng(0))
        x = keras.Model(self.model.input, output)(self.scale(frames)).numpy()
        return max(float(np.square(x).sum(axis=-1).mean()) / MEAN_SQUARE, MIN_STRENGTH)


def read_network(
    path: Path, scaling: Scaling | None = None, *, otherwise: Scaling | None = None
) -> OwnNetwork:
    """Read a user's model; raise ModelError for a file or a layer that does not fit.

    `scaling` is for a model that does not scale its input itself; `otherwise` for one whose scaling
    is unknown and does not matter.
    """
    file = read_keras_file(path)
    graph = without_own_layers(read_graph(file), file.config)
    own = build_model(graph, scaling, otherwise=otherwise)
    tensors, blocks, obstacle = _walk(own.model)
    costs = count_costs(own.model, tensors)
    architecture = replace(
        _architecture(path.stem, own, tensors, blocks, obstacle, costs),
        made_by=graph.made_by,
        scale=graph.scale if scaling is None else None,
    )
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    origin = f"{path.name} (sha256 {digest[:12]})"
    return OwnNetwork(architecture, own.model, own.scaling, origin, costs)


def _walk(model: keras.Model) -> tuple[list[Any], list[Block], str]:
    """Return the tensors between blocks from the top down, the blocks, and why the walk ended."""
    walk = Walk(maker(model.input).name, model.input, train_depthwise=True)
    tensors, blocks = [model.output], list[Block]()
    try:
        for block, tensor in walk.down(model.output):
            blocks.append(block)
            tensors.append(tensor)
    except ModelError as error:
        return [*tensors, model.input], blocks, _reason(error)
    return tensors, blocks, ""


def _reason(error: ModelError) -> str:
    """Return the layer that cannot train, and what was expected of it, without the advice."""
    expected, _, got = problem_of(error).partition(", got ")
    return f"{got} cannot train ({expected[0].lower()}{expected[1:]})"


def _architecture(
    name: str,
    own: OwnModel,
    tensors: list[Any],
    blocks: list[Block],
    obstacle: str,
    costs: tuple[LayerCost, ...],
) -> OwnArchitecture:
    names = [maker(tensor).name for tensor in reversed(tensors)]
    # Blocks from the top down; a layer rests if no block above it has weights.
    resting, trains = [names[-1]], False
    for block, layer in zip(blocks, reversed(names[:-1])):
        trains = trains or bool(block.tensors)
        if not trains:
            resting.append(layer)
    quick = [each.name for each in costs if each.computation <= QUICK_COMPUTATION]
    return OwnArchitecture(
        name=name,
        title=name,
        replay_layers=tuple(names),
        classifier="",
        resting_layers=tuple(reversed(resting)),
        lowest_quick=quick[0],
        build="",
        places={**own.places, **{layer: layer for layer in names}},
        obstacle=obstacle,
        lowest=names[1] if obstacle else names[0],
        dropped=own.dropped,
    )
