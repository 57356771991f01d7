"""The pieces that synthetic objects are made of.

A piece is a signed distance field on the object's plane: `u` points right, `v` points down, and the
object lies inside the square [-1, 1]². A `turned` piece or a `ball` is a solid of revolution around
the vertical axis, so its texture travels around it when the object turns. Every other piece is a
plate with a bevelled edge.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

F32 = NDArray[np.float32]
Distance = Callable[[F32, F32], F32]


class Piece(NamedTuple):
    """One piece of an object.

    - `material` is a key of the object's colours; "body" carries the object's texture.
    - `distance` maps (u, v) to a signed distance, negative inside.
    - `bevel` is the width of the curved border, measured from the edge.
    - `wraps` is True if the texture runs around the piece.
    """

    material: str
    distance: Distance
    bevel: float
    wraps: bool = False


Family = tuple[Piece, ...]
"""The pieces that all objects of a category share, in the order of painting."""


def disc(material: str, x: float, y: float, r: float, bevel: float = 0.06) -> Piece:
    """Return a flat disc of radius r around (x, y)."""
    return Piece(material, lambda u, v: np.hypot(u - x, v - y) - r, bevel)


def ball(material: str, x: float, y: float, r: float) -> Piece:
    """Return a sphere of radius r around (x, y)."""
    return Piece(material, lambda u, v: np.hypot(u - x, v - y) - r, r, wraps=True)


def oval(material: str, x: float, y: float, rx: float, ry: float, bevel: float = 0.06) -> Piece:
    """Return a flat ellipse with the half axes rx and ry."""
    least = min(rx, ry)
    return Piece(material, lambda u, v: (np.hypot((u - x) / rx, (v - y) / ry) - 1) * least, bevel)


def ring(material: str, x: float, y: float, r: float, w: float) -> Piece:
    """Return a ring whose middle line has radius r, 2 * w wide."""
    return Piece(material, lambda u, v: np.abs(np.hypot(u - x, v - y) - r) - w, w)


def box(
    material: str,
    x: float,
    y: float,
    hx: float,
    hy: float,
    round_: float = 0.04,
    bevel: float = 0.08,
) -> Piece:
    """Return a rectangle with the half sides hx and hy and rounded corners."""

    def distance(u: F32, v: F32) -> F32:
        du, dv = np.abs(u - x) - (hx - round_), np.abs(v - y) - (hy - round_)
        outside = np.hypot(np.maximum(du, 0), np.maximum(dv, 0))
        return np.asarray(outside + np.minimum(np.maximum(du, dv), 0) - round_)

    return Piece(material, distance, bevel)


def wire(material: str, r: float, *points: tuple[float, float]) -> Piece:
    """Return a rod of radius r bent through the points."""

    def distance(u: F32, v: F32) -> F32:
        best = np.full(np.shape(u), np.inf, np.float32)
        for (x0, y0), (x1, y1) in zip(points, points[1:]):
            dx, dy = x1 - x0, y1 - y0
            t = np.clip(((u - x0) * dx + (v - y0) * dy) / (dx * dx + dy * dy), 0, 1)
            best = np.minimum(best, np.hypot(u - x0 - t * dx, v - y0 - t * dy))
        return best - r

    return Piece(material, distance, r)


def poly(material: str, *points: tuple[float, float], bevel: float = 0.08) -> Piece:
    """Return a plate cut along straight lines between the points."""

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

    return Piece(material, distance, bevel)


def star(
    material: str, x: float, y: float, n: int, r: float, depth: float, bevel: float = 0.2
) -> Piece:
    """Return a disc whose edge waves n times: a star, a flower or a gear."""

    def distance(u: F32, v: F32) -> F32:
        edge = r * (1 + depth * np.cos(n * np.arctan2(u - x, y - v)))
        return np.asarray((np.hypot(u - x, v - y) - edge) * 0.7)

    return Piece(material, distance, bevel)


def turned(material: str, *profile: tuple[float, float]) -> Piece:
    """Return a solid of revolution; `profile` has (height v, radius) from top to bottom."""
    heights, radii = np.array(profile, np.float32).T

    def distance(u: F32, v: F32) -> F32:
        radius = np.interp(v, heights, radii).astype(np.float32)
        side = (np.abs(u) - radius) / np.maximum(radius, 0.02)  # -1 on the axis, 0 at the edge
        ends = np.maximum(heights[0] - v, v - heights[-1])
        # Far from the end caps the side alone decides, so the shading is that of a cylinder.
        return np.where(ends > -0.02, np.maximum(side, ends / 0.3), side)

    return Piece(material, distance, 1.0, wraps=True)


def dots(material: str, r: float, xs: tuple[float, ...], ys: tuple[float, ...]) -> Family:
    """Return equal discs, one at every x of `xs` and y of `ys`."""
    return tuple(disc(material, x, y, r, 0.03) for y in ys for x in xs)
