"""The seam of a regulariser, and the one that changes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import tensorflow as tf

from lrtflite_converters.window import Tensor

if TYPE_CHECKING:
    from lrtflite_converters.parameter import Parameter


class Regulariser(tf.Module):
    """Protects weights that earlier sessions needed; this one protects none.

    `scalars` names the rates that each signature of a head takes for it.
    """

    scalars: Mapping[str, tuple[str, ...]] = {}

    def protect(self, parameters: Sequence[Parameter]) -> None:
        """Make whatever is kept of each parameter; called once, before anything else."""

    @property
    def state(self) -> dict[str, tf.Variable]:
        """Return what outlives a session, by the name of its tensor."""
        return {}

    def begin(self, zero: Tensor) -> None:
        """Start a session; `zero` is a 0 that is not a constant, to fill arrays with."""

    def gradient(
        self, parameter: Parameter, value: Tensor, gradient: Tensor, rates: Mapping[str, Tensor]
    ) -> Tensor:
        """Return the gradient to train with: a penalty adds its own."""
        return gradient

    def update(self, parameter: Parameter, update: Tensor, rates: Mapping[str, Tensor]) -> Tensor:
        """Return what is to be taken off the weight: protection may scale it."""
        return update

    def stepped(
        self, parameter: Parameter, gradient: Tensor, before: Tensor, after: Tensor
    ) -> None:
        """Take note of a step; `gradient` is the one without any penalty."""

    def consolidate(self, rates: Mapping[str, Tensor]) -> None:
        """End a session."""
