"""Tensors of a bundle's models that are part of a state: `head/NAME` and `features/NAME`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrtflite.contract.signatures import ZERO
from lrtflite.runtime.model import Model


def save_models(head: Model, features: Model) -> dict[str, NDArray[Any]]:
    """Return the tensors of both models; features with frozen moments have none."""
    return {
        prefix + name: values
        for prefix, model in _models(head, features).items()
        for name, values in model.run("save", zero=ZERO).items()
    }


def restore_models(
    arrays: Mapping[str, NDArray[Any]], head: Model, features: Model
) -> NDArray[np.bool_]:
    """Put the tensors of `save_models` back into both models; return which slots have learned.

    Ignore other arrays.
    """
    found = {
        prefix: model.run("restore", **_with_prefix(arrays, prefix))
        for prefix, model in _models(head, features).items()
    }
    return np.asarray(found["head/"]["learned"] > 0)


def _with_prefix(arrays: Mapping[str, NDArray[Any]], prefix: str) -> dict[str, NDArray[Any]]:
    return {
        name[len(prefix) :]: values for name, values in arrays.items() if name.startswith(prefix)
    }


def _models(head: Model, features: Model) -> dict[str, Model]:
    models = {"head/": head, "features/": features}
    return {prefix: model for prefix, model in models.items() if "save" in model.signatures}
