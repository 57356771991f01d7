"""Check that a state belongs to a bundle, and that its arrays are what the models take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrtflite.arguments import printable
from lrtflite.bundle.bundle import Bundle
from lrtflite.errors import StateError
from lrtflite.files.tensors import Entry
from lrtflite.replay.codecs import CODECS
from lrtflite.runtime.model import Signature, Tensor
from lrtflite.state.meta import StateMeta


@dataclass(frozen=True)
class StateForm:
    """The form of every state of a bundle: names, shapes and dtypes of its arrays.

    `tensors` are the inputs of `restore`, by their names in a state; `code` is the form of a row.
    """

    bundle: Bundle
    tensors: Mapping[str, Tensor]
    code: Tensor

    @classmethod
    def of(
        cls, bundle: Bundle, head: Mapping[str, Signature], features: Mapping[str, Signature]
    ) -> StateForm:
        models = {"head/": head, "features/": features}
        manifest = bundle.manifest
        codec = CODECS.choose(manifest.codec)(manifest.latent_form)
        return cls(
            bundle,
            {
                prefix + name: tensor
                for prefix, signatures in models.items()
                if "restore" in signatures
                for name, tensor in signatures["restore"].inputs.items()
            },
            Tensor(tuple(codec.shape), np.dtype(codec.dtype)),
        )

    def check_meta(self, meta: StateMeta) -> None:
        """Raise StateError for a state of another bundle, ValueError for invalid labels."""
        layer, codec = self.bundle.manifest.replay_layer, self.bundle.manifest.codec
        if meta.bundle != self.bundle.identity:
            same = layer == meta.replay_layer
            layer_of_other = printable(meta.replay_layer)
            other = "from other weights or another conversion" if same else layer_of_other
            raise StateError(
                f"Expected a state for the bundle {self.bundle.path} ({layer}), got one for "
                f"another bundle ({other})",
                "open its own bundle, or a new state path",
            )
        if meta.codec != codec:
            raise StateError(
                f"Expected a state with codec {codec}, got {printable(meta.codec)}",
                "open its own bundle",
            )
        if len(meta.labels) != self.bundle.manifest.slots:
            raise ValueError(f"{len(meta.labels)} labels")

    def check_entries(self, entries: Mapping[str, Entry]) -> None:
        """Raise ValueError unless the arrays have the names, shapes and dtypes of the models."""
        found = {name: Tensor(entry.shape, entry.dtype) for name, entry in entries.items()}
        if found != self.tensors:
            odd = sorted(
                name
                for name in {*found, *self.tensors}
                if found.get(name) != self.tensors.get(name)
            )
            raise ValueError(f"{odd[0]!r} is missing, unknown or of another shape")

    def check_code(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        """Raise ValueError unless rows have the shape and dtype of the bundle's codes."""
        if (shape, dtype) != (self.code.shape, self.code.dtype):
            raise ValueError(f"rows of {shape} {dtype}")


def check_finite(arrays: Mapping[str, NDArray[Any]]) -> None:
    """Raise ValueError for NaN or infinity."""
    for name, values in arrays.items():
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            raise ValueError(f"NaN or infinity in {name}")
