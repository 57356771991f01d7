"""The objects of the synthetic worlds: one shape family, five looks.

An object is drawn once, into a sheet of surface properties, and then sampled for every frame. Its
shape is the family's with its own proportions; its pattern and colours are its own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lrtflite.data.synthetic_shapes import F32, Family

SHEET = 112  # pixels across the sheet
REACH = 1.15  # the sheet covers [-REACH, REACH]², so that a stretched shape keeps an empty border
PATTERN_H, PATTERN_W = 96, 192  # the pattern's rows (v) and columns (once around the object)

_WRAP = 0.5  # how much of the pattern the visible half of a turned part shows


class Object(NamedTuple):
    """What a frame needs of an object.

    sheet: (8, SHEET * SHEET) uint8: red, green, blue, alpha, share of the pattern, normal x and y
    (128 = 0), pattern column. pattern: (3, PATTERN_H * PATTERN_W) uint8, periodic in its columns.
    The object lies within |u| < half_width and |v| < half_height. A solid's pattern travels around
    it when it turns; anything else is a plate.
    """

    sheet: NDArray[np.uint8]
    pattern: NDArray[np.uint8]
    half_width: float
    half_height: float
    solid: bool
    gloss: float


def hsv(h: float, s: float, v: float) -> F32:
    """(3,) float32 RGB in 0..255 of a colour; h in turns, s and v in 0..1."""
    ramps = np.abs((h * 6 + np.array([0.0, 4.0, 2.0])) % 6 - 3) - 1
    return np.asarray(255 * v * (1 - s + s * np.clip(ramps, 0, 1)), np.float32)


def smooth_noise(
    rng: np.random.Generator, height: int, width: int, cells: int, *, octaves: int = 1
) -> F32:
    """(height, width) float32 noise in 0..1, periodic, about `cells` bumps across."""
    total = np.zeros((height, width), np.float32)
    for octave in range(octaves):
        n = min(cells << octave, width)
        lattice = rng.random((n, n)).astype(np.float32)
        rows, columns = (
            np.arange(length, dtype=np.float32) * (n / length) for length in (height, width)
        )
        i, j = rows.astype(int), columns.astype(int)
        fi, fj = rows - i, columns - j
        fi, fj = (fi * fi * (3 - 2 * fi))[:, None], (fj * fj * (3 - 2 * fj))[None]
        i2, j2 = (i + 1) % n, (j + 1) % n
        top = lattice[i][:, j] * (1 - fj) + lattice[i][:, j2] * fj
        bottom = lattice[i2][:, j] * (1 - fj) + lattice[i2][:, j2] * fj
        total += (top * (1 - fi) + bottom * fi) / 2**octave
    low, high = total.min(), total.max()
    return np.asarray((total - low) / max(high - low, 1e-6), np.float32)


PATTERNS = ("plain", "bands", "stripes", "slant", "dots", "checks", "blots", "label", "zigzag")


def draw_pattern(rng: np.random.Generator, kind: str, colours: F32) -> NDArray[np.uint8]:
    """(3, PATTERN_H * PATTERN_W) uint8; colours (3, 3): ground, figure, detail."""
    v, u = np.meshgrid(
        np.arange(PATTERN_H, dtype=np.float32) / PATTERN_H,
        np.arange(PATTERN_W, dtype=np.float32) / PATTERN_W,
        indexing="ij",
    )
    n = int(rng.integers(2, 5))
    duty = rng.uniform(0.3, 0.6)
    phase = rng.random()
    noise = smooth_noise(rng, PATTERN_H, PATTERN_W, 6, octaves=3)
    figure = np.zeros(u.shape, bool)
    detail = np.zeros(u.shape, bool)
    if kind == "bands":
        figure = (v * 2 * n + phase) % 1 < duty
        detail = np.abs(v - rng.uniform(0.3, 0.7)) < 0.03
    elif kind == "stripes":
        figure = (u * 4 * n) % 1 < duty
    elif kind == "slant":
        figure = (u * 3 * n + v * 2 * n * rng.choice([-1, 1])) % 1 < duty
    elif kind in ("dots", "checks"):
        a, b = (u * 4 * n) % 1 - 0.5, (v * 2 * n + phase) % 1 - 0.5
        figure = (a * b > 0) if kind == "checks" else (np.hypot(a, b) < 0.2 + duty / 4)
    elif kind == "blots":
        figure = noise > rng.uniform(0.45, 0.6)
        detail = noise > 0.78
    elif kind == "label":
        top, height = rng.uniform(0.2, 0.4), rng.uniform(0.25, 0.4)
        figure = (v > top) & (v < top + height)
        words = rng.random((5, 24)) < 0.5
        row = np.clip(((v - top - 0.04) / (height - 0.08) * 5).astype(int), 0, 4)
        written = (v > top + 0.04) & (v < top + height - 0.04) & ((v - top) * 5 / height % 1 < 0.7)
        detail = figure & written & words[row, (u * 24).astype(int)]
    elif kind == "zigzag":
        wave = np.abs((u * 4 * n) % 1 - 0.5) * 0.5
        figure = (v * n + wave + phase) % 1 < duty
    image = np.where(figure[..., None], colours[1], colours[0])
    image = np.where(detail[..., None], colours[2], image)
    grain = 0.85 + 0.3 * noise
    return _planes(image * grain[..., None])


def _planes(image: F32) -> NDArray[np.uint8]:
    """(H, W, C) to (C, H * W) uint8: numpy is quick where the last axis is long."""
    flat = np.clip(image + 0.5, 0, 255).astype(np.uint8).reshape(-1, image.shape[-1])
    return np.ascontiguousarray(flat.T)


def draw_object(rng: np.random.Generator, family: Family, *, hue: float, kind: str) -> Object:
    """An object of the family: `hue` (in turns) and `kind` of pattern are its own."""
    value = rng.uniform(0.45, 0.95)
    ground = hsv(hue, rng.uniform(0.35, 0.95), value)
    figure = hsv(hue + rng.uniform(0.2, 0.8), rng.uniform(0.2, 0.9), (value + 0.5) % 0.8 + 0.2)
    accent = hsv(rng.random(), rng.uniform(0.2, 0.9), rng.uniform(0.25, 0.95))
    detail = hsv(rng.random(), 0.3, rng.choice([0.15, 0.95]))
    paint = {
        "body": ground,
        "accent": accent,
        "metal": hsv(rng.random(), 0.08, rng.uniform(0.55, 0.85)),
        "dark": hsv(rng.random(), 0.3, rng.uniform(0.1, 0.25)),
        "pale": hsv(rng.random(), 0.12, 0.9),
        "glass": hsv(rng.random(), 0.4, rng.uniform(0.15, 0.6)),
    }
    axis = np.linspace(-REACH, REACH, SHEET, dtype=np.float32)
    stretch_u, stretch_v = rng.uniform(0.86, 1.12, 2)
    u, v = np.meshgrid(axis / stretch_u, axis / stretch_v)
    step = 2 * REACH / SHEET
    colour = np.broadcast_to(ground, (SHEET, SHEET, 3)).astype(np.float32)
    alpha, mix, nx, ny = np.zeros((4, SHEET, SHEET), np.float32)
    column = (u / (2 * REACH) + 0.5) * _WRAP
    for part in family:
        distance = part.distance(u, v) - rng.uniform(-0.02, 0.03)
        dv, du = np.gradient(distance, step)
        slope = np.maximum(np.hypot(du, dv), 1e-3)
        cover = np.clip(0.5 - distance / (slope * step), 0, 1)
        edge = np.clip(1 + distance / part.bevel, 0, 0.97)
        part_nx, part_ny = (edge * du / slope, edge * dv / slope)
        opaque = cover * (0.6 if part.slot == "glass" else 1.0)
        alpha = alpha + opaque * (1 - alpha)
        weight = cover[..., None]
        colour += weight * (paint[part.slot] - colour)
        mix += cover * (float(part.slot == "body") - mix)
        nx += cover * (part_nx - nx)
        ny += cover * (part_ny - ny)
        if part.wraps:
            around = (np.arcsin(part_nx) / np.pi + 0.5) * _WRAP
            column = np.where(cover > 0, around, column)
    sheet = np.empty((SHEET, SHEET, 8), np.float32)
    sheet[..., :3] = colour
    sheet[..., 3] = alpha * 255
    sheet[..., 4] = mix * 255
    sheet[..., 5] = nx * 127 + 128
    sheet[..., 6] = ny * 127 + 128
    sheet[..., 7] = column * 255
    across, down = (np.abs(axis[alpha.max(k) > 0]).max() + step for k in (0, 1))
    return Object(
        sheet=_planes(sheet),
        pattern=draw_pattern(rng, kind, np.stack([ground, figure, detail])),
        half_width=float(min(across, REACH - step)),
        half_height=float(min(down, REACH - step)),
        solid=any(part.wraps for part in family),
        gloss=float(rng.uniform(0.05, 0.5)),
    )
