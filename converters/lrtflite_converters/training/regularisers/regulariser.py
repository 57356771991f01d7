"""The interface of a regulariser, and the one that changes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import tensorflow as tf

from lrtflite_converters.gradients.window import Tensor

if TYPE_CHECKING:
    from lrtflite_converters.training.parameter import Parameter


class Regulariser(tf.Module):
    """Protects the weights that earlier sessions rely on; this base class protects none.

    `scalars` are the names of the rates that each signature of a head takes for it.
    """

    scalars: Mapping[str, tuple[str, ...]] = {}
    # True for one that sees gradients in `gather`, through `observe`.
    observes = False

    def protect(self, parameters: Sequence[Parameter]) -> None:
        """Make the variables that are kept for each parameter; called once, first."""

    @property
    def state(self) -> dict[str, tf.Variable]:
        """Return the variables that are kept between sessions, by name."""
        return {}

    def begin(self, zero: Tensor) -> None:
        """Start a session; `zero` is a 0 to fill arrays with, but not a constant."""

    def gradient(
        self, parameter: Parameter, value: Tensor, gradient: Tensor, rates: Mapping[str, Tensor]
    ) -> Tensor:
        """Return the gradient to train with; a penalty adds its own gradient."""
        return gradient

    def update(self, parameter: Parameter, update: Tensor, rates: Mapping[str, Tensor]) -> Tensor:
        """Return the amount to subtract from the weight; protection may scale it."""
        return update

    def stepped(
        self, parameter: Parameter, gradient: Tensor, before: Tensor, after: Tensor
    ) -> None:
        """Record a step; `gradient` does not include any penalty."""

    def observe(self, parameter: Parameter, gradient: Tensor) -> None:
        """Record the gradient of a mini-batch after the last step, in which nothing moves."""

    def forget(self, parameter: Parameter, mask: Tensor) -> None:
        """Release the rows of a last layer (C, F) whose mask (C,) is 1."""

    def consolidate(self, rates: Mapping[str, Tensor]) -> None:
        """End a session."""
