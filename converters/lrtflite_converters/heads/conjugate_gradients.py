"""Solve symmetric positive definite systems with built-in TFLite ops."""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf

from lrtflite_converters.gradients.window import Tensor

# Minimum divisor: the residual of a solved row is 0.
_TINY = 1e-30


def solve(
    apply: Callable[[Tensor], Tensor],
    targets: Tensor,
    start: Tensor,
    *,
    diagonal: Tensor,
    tolerance: float,
    most_steps: int,
) -> Tensor:
    """Return rows x (C, F) with A x_c = targets_c, where `apply` multiplies rows by A.

    Run conjugate gradients from `start`, preconditioned by the `diagonal` (F,) of A, until every
    residual is below `tolerance` times the norm of its target, or for `most_steps` steps. A row of
    zeros in `targets` and `start` stays zero.
    """
    goal = tolerance * tolerance * _dot(targets, targets)
    inverse = 1.0 / diagonal

    def goes_on(step: Tensor, x: Tensor, r: Tensor, p: Tensor, power: Tensor) -> Tensor:
        left = tf.reduce_max(_dot(r, r) - goal) > 0.0
        return tf.logical_and(left, step < float(most_steps))

    def advance(step: Tensor, x: Tensor, r: Tensor, p: Tensor, power: Tensor) -> tuple[Tensor, ...]:
        q = apply(p)
        curvature = _dot(p, q)
        # Rounding can give A a negative eigenvalue; a row that encounters it stops moving.
        size = tf.where(curvature > 0.0, power / tf.maximum(curvature, _TINY), 0.0)
        x, r = x + size * p, r - size * q
        y = r * inverse
        next_power = _dot(r, y)
        p = y + next_power / tf.maximum(power, _TINY) * p
        return step + 1.0, x, r, p, next_power

    r = targets - apply(start)
    p = r * inverse
    first = (tf.zeros([]), start, r, p, _dot(r, p))
    return tf.while_loop(goes_on, advance, first)[1]


def _dot(a: Tensor, b: Tensor) -> Tensor:
    """Return the product of each pair of rows: (C, F), (C, F) -> (C, 1)."""
    return tf.reduce_sum(a * b, axis=-1, keepdims=True)
