"""The parts that synthetic objects are made of.

A part is a signed distance field on the object's plane: `u` to the right, `v` down, the object
inside the square [-1, 1]². A `turned` part or a `ball` is a solid of revolution around the vertical
axis, so its texture travels around it when the object turns; every other part is a plate with a
bevelled edge.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

F32 = NDArray[np.float32]
Distance = Callable[[F32, F32], F32]


class Part(NamedTuple):
    """One piece of an object.

    `slot` names the material ("body" carries the object's pattern), `distance` maps (u, v) to a
    signed distance, negative inside; `bevel` is how far from its edge the surface still curves;
    `wraps` says that the pattern runs around it.
    """

    slot: str
    distance: Distance
    bevel: float
    wraps: bool = False


Family = tuple[Part, ...]
"""What the objects of a category share: parts, painted in order."""


def disc(slot: str, x: float, y: float, r: float, bevel: float = 0.06) -> Part:
    return Part(slot, lambda u, v: np.hypot(u - x, v - y) - r, bevel)


def ball(slot: str, x: float, y: float, r: float) -> Part:
    return Part(slot, lambda u, v: np.hypot(u - x, v - y) - r, r, wraps=True)


def oval(slot: str, x: float, y: float, rx: float, ry: float, bevel: float = 0.06) -> Part:
    least = min(rx, ry)
    return Part(slot, lambda u, v: (np.hypot((u - x) / rx, (v - y) / ry) - 1) * least, bevel)


def ring(slot: str, x: float, y: float, r: float, w: float) -> Part:
    return Part(slot, lambda u, v: np.abs(np.hypot(u - x, v - y) - r) - w, w)


def box(
    slot: str, x: float, y: float, hx: float, hy: float, round_: float = 0.04, bevel: float = 0.08
) -> Part:
    def distance(u: F32, v: F32) -> F32:
        du, dv = np.abs(u - x) - (hx - round_), np.abs(v - y) - (hy - round_)
        outside = np.hypot(np.maximum(du, 0), np.maximum(dv, 0))
        return np.asarray(outside + np.minimum(np.maximum(du, dv), 0) - round_)

    return Part(slot, distance, bevel)


def wire(slot: str, r: float, *points: tuple[float, float]) -> Part:
    """A rod of radius r bent through the points."""

    def distance(u: F32, v: F32) -> F32:
        best = np.full(np.shape(u), np.inf, np.float32)
        for (x0, y0), (x1, y1) in zip(points, points[1:]):
            dx, dy = x1 - x0, y1 - y0
            t = np.clip(((u - x0) * dx + (v - y0) * dy) / (dx * dx + dy * dy), 0, 1)
            best = np.minimum(best, np.hypot(u - x0 - t * dx, v - y0 - t * dy))
        return best - r

    return Part(slot, distance, r)


def poly(slot: str, *points: tuple[float, float], bevel: float = 0.08) -> Part:
    """A plate cut along straight lines between the points."""

    def distance(u: F32, v: F32) -> F32:
        best = np.full(np.shape(u), np.inf, np.float32)
        inside = np.zeros(np.shape(u), bool)
        for (x0, y0), (x1, y1) in zip(points, (*points[1:], points[0])):
            dx, dy = x1 - x0, y1 - y0
            t = np.clip(((u - x0) * dx + (v - y0) * dy) / (dx * dx + dy * dy), 0, 1)
            best = np.minimum(best, np.hypot(u - x0 - t * dx, v - y0 - t * dy))
            if dy:
                inside ^= ((y0 > v) != (y1 > v)) & (u < x0 + (v - y0) * dx / dy)
        return np.where(inside, -best, best)

    return Part(slot, distance, bevel)


def star(slot: str, x: float, y: float, n: int, r: float, depth: float, bevel: float = 0.2) -> Part:
    """A disc whose edge waves n times: a star, a flower or a gear."""

    def distance(u: F32, v: F32) -> F32:
        edge = r * (1 + depth * np.cos(n * np.arctan2(u - x, y - v)))
        return np.asarray((np.hypot(u - x, v - y) - edge) * 0.7)

    return Part(slot, distance, bevel)


def turned(slot: str, *profile: tuple[float, float]) -> Part:
    """A solid of revolution: (height v, radius) from top to bottom."""
    heights, radii = np.array(profile, np.float32).T

    def distance(u: F32, v: F32) -> F32:
        radius = np.interp(v, heights, radii).astype(np.float32)
        side = (np.abs(u) - radius) / np.maximum(radius, 0.02)  # -1 on the axis, 0 at the edge
        ends = np.maximum(heights[0] - v, v - heights[-1])
        # Where an end cap is far, the side alone decides, so that the shading is a cylinder's.
        return np.where(ends > -0.02, np.maximum(side, ends / 0.3), side)

    return Part(slot, distance, 1.0, wraps=True)


def dots(slot: str, r: float, xs: tuple[float, ...], ys: tuple[float, ...]) -> Family:
    """Equal discs at every crossing of the columns xs and the rows ys."""
    return tuple(disc(slot, x, y, r, 0.03) for y in ys for x in xs)
