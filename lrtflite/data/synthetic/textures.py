"""Colours, noise and the textures on the objects of the synthetic worlds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lrtflite.data.synthetic.shapes import F32

# Pixels of a texture: TEXTURE_H along v, TEXTURE_W once around the object.
TEXTURE_H, TEXTURE_W = 96, 192
TEXTURES = ("plain", "bands", "stripes", "slant", "dots", "checks", "blots", "label", "zigzag")


def hsv(h: float, s: float, v: float) -> F32:
    """Return a colour as (3,) float32 RGB in 0..255; h is in turns, s and v in 0..1."""
    ramps = np.abs((h * 6 + np.array([0.0, 4.0, 2.0])) % 6 - 3) - 1
    return np.asarray(255 * v * (1 - s + s * np.clip(ramps, 0, 1)), np.float32)


def smooth_noise(
    rng: np.random.Generator, height: int, width: int, cells: int, *, octaves: int = 1
) -> F32:
    """Return (height, width) float32 noise in 0..1, periodic, with about `cells` bumps across."""
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


def draw_texture(rng: np.random.Generator, kind: str, colours: F32) -> NDArray[np.uint8]:
    """Return a texture, (3, TEXTURE_H * TEXTURE_W) uint8; `colours` are ground, figure, detail."""
    v, u = np.meshgrid(
        np.arange(TEXTURE_H, dtype=np.float32) / TEXTURE_H,
        np.arange(TEXTURE_W, dtype=np.float32) / TEXTURE_W,
        indexing="ij",
    )
    n = int(rng.integers(2, 5))
    duty = rng.uniform(0.3, 0.6)
    phase = rng.random()
    noise = smooth_noise(rng, TEXTURE_H, TEXTURE_W, 6, octaves=3)
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
    return to_planes(image * grain[..., None])


def to_planes(image: F32) -> NDArray[np.uint8]:
    """Round (H, W, C) to (C, H * W) uint8; numpy is fastest where the last axis is long."""
    flat = np.clip(image + 0.5, 0, 255).astype(np.uint8).reshape(-1, image.shape[-1])
    return np.ascontiguousarray(flat.T)
