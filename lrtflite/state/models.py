"""The models of a learner: which are loaded twice, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Callable

import numpy as np
from numpy.typing import NDArray

from lrtflite.bundle.bundle import Bundle
from lrtflite.contract.checking import check_contract
from lrtflite.contract.signatures import ZERO
from lrtflite.options import LearnerOptions
from lrtflite.runtime.model import Model


@dataclass(frozen=True)
class LoadedModels:
    """The head twice: `serving` answers at any time, `working` is trained by a session.

    Features whose moments adapt are loaded twice too: `features` extracts, `adapting` adapts. With
    frozen moments, or in a learner that only reads, both models of a pair are the same.
    """

    features: Model
    serving: Model
    working: Model
    adapting: Model

    @classmethod
    def of(
        cls, bundle: Bundle, options: LearnerOptions, load: Callable[..., Model]
    ) -> LoadedModels:
        """Load the models of a bundle with `load`, or raise BundleError if they do not fit it."""
        running: dict[str, Any] = {"runtime": options.runtime, "threads": options.threads}
        features = load(bundle.features, prepare=True, **running)
        serving = load(bundle.head, **running)
        check_contract(bundle, features, serving)
        if options.read_only:
            return cls(features, serving, serving, features)
        working = load(bundle.head, **running)
        adapts = bundle.manifest.adapt_moments
        return cls(
            features, serving, working, load(bundle.features, **running) if adapts else features
        )


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
