"""Batch Renorm in training mode, and its gradient, for a mini-batch in parts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import tensorflow as tf

from lrtflite_converters.gradients.differentiable import column_sums
from lrtflite_converters.gradients.ordering import after
from lrtflite_converters.gradients.window import Tensor


@dataclass(frozen=True)
class Renorm:
    """Batch Renorm of one mini-batch in training mode: y = scale * x + shift per channel.

    The parts of a mini-batch share only sums over their pixels, so intermediate arrays are never
    larger than one part.
    """

    scale: Tensor  # (C,), like all tensors below
    shift: Tensor
    r: Tensor
    d: Tensor
    mean: Tensor
    sigma: Tensor
    unbiased: Tensor
    count: float

    @classmethod
    def of(
        cls,
        parts: Sequence[Tensor],
        gamma: Tensor,
        beta: Tensor,
        mean: Tensor,
        variance: Tensor,
        *,
        r_max: Tensor,
        d_max: Tensor,
        epsilon: float = 1e-5,
    ) -> Renorm:
        """Normalise `parts` (..., C); `mean` and `variance` are the old moving moments."""
        count = float(sum(math.prod(x.shape[:-1]) for x in parts))
        batch_mean = _total(column_sums(x) for x in parts) / count
        # The mean of squares minus the square of the mean would lose all digits in float32.
        squares = _total(column_sums(tf.math.squared_difference(x, batch_mean)) for x in parts)
        batch_variance = squares / count
        batch_sigma, sigma = tf.sqrt(batch_variance + epsilon), tf.sqrt(variance + epsilon)
        r = tf.clip_by_value(batch_sigma / sigma, 1.0 / r_max, r_max)
        d = tf.clip_by_value((batch_mean - mean) / sigma, -d_max, d_max)
        scale = gamma * r / batch_sigma
        return cls(
            scale=scale,
            shift=gamma * d + beta - scale * batch_mean,
            r=r,
            d=d,
            mean=batch_mean,
            sigma=batch_sigma,
            unbiased=batch_variance * (count / (count - 1.0)),
            count=count,
        )

    @classmethod
    def fixed(
        cls, gamma: Tensor, beta: Tensor, mean: Tensor, variance: Tensor, *, epsilon: float = 1e-5
    ) -> Renorm:
        """Normalise by the moving moments, as in inference; no gradient goes through them."""
        sigma = tf.sqrt(variance + epsilon)
        scale = gamma / sigma
        return cls(
            scale=scale,
            shift=beta - scale * mean,
            r=tf.ones_like(mean),
            d=tf.zeros_like(mean),
            mean=mean,
            sigma=sigma,
            unbiased=variance,
            # Moments of so many pixels hardly depend on any one of them.
            count=math.inf,
        )

    def __call__(self, x: Tensor) -> Tensor:
        return self.scale * x + self.shift

    def moved(self, mean: Tensor, variance: Tensor, *, rate: Tensor) -> tuple[Tensor, Tensor]:
        """Return the moving moments after this batch; `rate` is the share of the batch."""
        return mean + rate * (self.mean - mean), variance + rate * (self.unbiased - variance)

    def after(self, *triggers: Tensor) -> Renorm:
        """Return the same, for a value that must wait for the triggers."""
        return replace(self, scale=after(self.scale, *triggers))

    def pull(self, parts: Sequence[Tensor], dys: Sequence[Tensor]) -> RenormPull:
        """Return the pullback of all parts, through the batch's moments but not through r and d."""
        # With x^ = (x - mean) / sigma: dx = scale (dy - mean(dy) - x^ mean(dy x^)), which is
        # a dy + b x + c with one a, b, c per channel.
        sum_dy = _total(column_sums(dy) for dy in dys)
        products = _total(column_sums(dy * x) for x, dy in zip(parts, dys))
        sum_dy_x = (products - self.mean * sum_dy) / self.sigma
        b = -self.scale * sum_dy_x / (self.count * self.sigma)
        return RenormPull(
            a=self.scale,
            b=b,
            c=-self.scale * sum_dy / self.count - b * self.mean,
            dgamma=self.r * sum_dy_x + self.d * sum_dy,
            dbeta=sum_dy,
        )


@dataclass(frozen=True)
class RenormPull:
    """The pullback of one mini-batch: dx = a * dy + b * x + c per channel."""

    a: Tensor  # (C,), like all tensors below
    b: Tensor
    c: Tensor
    dgamma: Tensor
    dbeta: Tensor

    def __call__(self, x: Tensor, dy: Tensor) -> Tensor:
        return self.a * dy + (self.b * x + self.c)

    def after(self, *triggers: Tensor, apart: bool = False) -> RenormPull:
        """Return the same, for a gradient that must wait for the triggers."""
        late = {name: after(getattr(self, name), *triggers, apart=apart) for name in ("a", "b")}
        return replace(self, **late)


def _total(terms: Iterable[Tensor]) -> Tensor:
    first, *others = terms
    for term in others:
        first = first + term
    return first
