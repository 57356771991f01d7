"""What a bundle's models remember, as arrays of a state: `head/NAME` and `features/NAME`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from lrtflite.runtime import Model


def save_models(head: Model, features: Model) -> dict[str, NDArray[Any]]:
    """The tensors of both. Features whose moments are frozen remember nothing."""
    return {
        prefix + name: values
        for prefix, model in _models(head, features).items()
        for name, values in model.run("save").items()
    }


def restore_models(arrays: Mapping[str, NDArray[Any]], head: Model, features: Model) -> None:
    """Undo all that happened to both since `save_models`; other arrays are left alone."""
    for prefix, model in _models(head, features).items():
        mine = {
            name[len(prefix) :]: values
            for name, values in arrays.items()
            if name.startswith(prefix)
        }
        model.run("restore", **mine)


def _models(head: Model, features: Model) -> dict[str, Model]:
    models = {"head/": head, "features/": features}
    return {prefix: model for prefix, model in models.items() if "save" in model.signatures}
