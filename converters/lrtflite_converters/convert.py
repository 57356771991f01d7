"""What `lrtflite convert` does: find the network, then export it as a bundle."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from lrtflite.destination import Destination
from lrtflite.host.first_batch import FirstBatch, read_first_batch
from lrtflite.host.model_file import load_model
from lrtflite.host.weights import network
from lrtflite_converters.export import export_bundle
from lrtflite_converters.options import ExportOptions, check_source

if TYPE_CHECKING:
    import tf_keras as keras  # lrtflite.host loads it, quietly


def convert(
    out: str | Path | Destination,
    *,
    options: ExportOptions,
    model: str | None = None,
    weights: str | None = None,
    alpha: float | None = None,
    input_size: int = 128,
    replace: bool = False,
    stage: Callable[[str], None] = lambda text: None,
) -> Path:
    """Make the bundle `out` from a saved model, or from weights (by default the demo backbone)."""
    check_source(model, weights, alpha, input_size)
    destination = Destination.at(out, replace=replace)
    stage("reading the weights")
    found, backbone = _find(model, weights, alpha=alpha, input_size=input_size)
    return export_bundle(
        found,
        destination,
        options=options,
        backbone=backbone,
        batch=None if model is None else _batch(Path(model), options.seed_memory),
        stage=stage,
    )


def _batch(model: Path, count: int) -> FirstBatch | None:
    """Return at most `count` of the frames that a saved model was trained with."""
    found = read_first_batch(model) if count else None
    return None if found is None else found.sample(count, np.random.default_rng(0))


def _find(
    model: str | None, weights: str | None, *, alpha: float | None, input_size: int
) -> tuple[keras.Model, str]:
    if model is None:
        found, origin = network(
            weights=weights or "demo", alpha=alpha, input_size=input_size, classes=0
        )
        width = found.get_layer("pool6").output_shape[-1] / 1024
        return found, f"MobileNetV1 alpha {width:g}, {origin}"
    found = load_model(Path(model))
    return found, f"{Path(model).name}, trained on the host"
