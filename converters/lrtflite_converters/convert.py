"""What `lrtflite convert` does: find the network, then export it as a bundle."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import tf_keras as keras

from lrtflite.errors import ModelError
from lrtflite.host.model_file import load_model
from lrtflite.host.weights import network
from lrtflite_converters.export import ExportOptions, check_out, export_bundle


def convert(
    out: str | Path,
    *,
    options: ExportOptions,
    model: str | None = None,
    weights: str | None = None,
    alpha: float | None = None,
    input_size: int = 128,
    progress: Callable[[str], None] = lambda line: None,
) -> Path:
    """Make the bundle `out` from a saved model, or from weights (by default the demo backbone)."""
    check_out(Path(out))
    found, backbone = _find(model, weights, alpha=alpha, input_size=input_size)
    progress(f"Converting {backbone}, replay layer {options.replay_layer}")
    path = export_bundle(found, out, options=options, backbone=backbone)
    progress("Proved on every installed runtime")
    return path


def read_labels(text: str | None) -> tuple[str, ...]:
    """Labels from `a,b,c`, or from a file with one a line."""
    if not text:
        return ()
    try:
        lines = Path(text).read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise ModelError(f"Expected labels in UTF-8, one a line, got {text}: {error}") from error
    except OSError:  # no such file, or too long for a file's name: a list
        lines = text.split(",")
    labels = tuple(line.strip() for line in lines if line.strip())
    if not labels or not all(label.isprintable() for label in labels):
        raise ModelError(f"Expected labels as a,b,c or in a file, one a line, got {text!r}")
    return labels


def _find(
    model: str | None, weights: str | None, *, alpha: float | None, input_size: int
) -> tuple[keras.Model, str]:
    if model is None:
        found, origin = network(
            weights=weights or "demo", alpha=alpha, input_size=input_size, classes=0
        )
        width = found.get_layer("pool6").output_shape[-1] / 1024
        return found, f"MobileNetV1 alpha {width:g}, {origin}"
    if weights is not None or alpha is not None:
        raise ModelError("Expected --model or --weights and --alpha, got both; --model has its own")
    found = load_model(Path(model))
    return found, f"{Path(model).name}, trained on the host"
