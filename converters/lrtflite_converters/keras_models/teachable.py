"""Recognise a Keras model that Teachable Machine exported, and cut it off below its own layers.

Such a model is a sequential model of two others: MobileNetV2 with its global average, and two dense
layers that were trained on a few classes. Only the average is worth keeping as features.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from lrtflite_converters.keras_models.graph import INPUT, MODELS, Graph

SEQUENTIAL, POOLING, DENSE = "Sequential", "GlobalAveragePooling2D", "Dense"
# The tool as messages name it, and the scaling of frames with which it trains.
NAME, SCALE = "Teachable Machine", "-1..1"
# Activations of its two dense layers.
ACTIVATIONS = ("relu", "softmax")


def without_own_layers(graph: Graph, config: Mapping[str, Any]) -> Graph:
    """Return the graph below the dense layers of Teachable Machine; any other one as it is."""
    if not _is_exported(config) or len(graph.nodes) < len(ACTIVATIONS) + 2:
        return graph
    *below, first, last = graph.nodes
    is_chain = graph.output == len(graph.nodes) - 1 and last.inputs == (len(below),)
    if not is_chain or len(first.inputs) != 1:
        return graph
    return replace(
        graph,
        nodes=tuple(below),
        output=first.inputs[0],
        left_out=(first.name, last.name),
        made_by=NAME,
        scale=SCALE,
    )


def _is_exported(config: Mapping[str, Any]) -> bool:
    try:
        parts = _layers(config)
        if [_kind(part) for part in parts] != [SEQUENTIAL, SEQUENTIAL]:
            return False
        base, top = (_layers(part) for part in parts)
        activations = tuple(layer["config"].get("activation") for layer in top)
        return (
            len(base) == 2
            and _kind(base[0]) in MODELS
            and _kind(base[1]) == POOLING
            and [_kind(layer) for layer in top] == [DENSE, DENSE]
            and activations == ACTIVATIONS
        )
    except (KeyError, TypeError, AttributeError):
        return False


def _layers(model: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    if _kind(model) != SEQUENTIAL:
        return ()
    return [layer for layer in model["config"]["layers"] if _kind(layer) != INPUT]


def _kind(layer: Mapping[str, Any]) -> str:
    return str(layer["class_name"])
