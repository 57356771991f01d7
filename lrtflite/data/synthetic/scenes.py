"""The scenes of the synthetic worlds: a place, its light, its camera and a person's hand.

All videos of a scene share them. CORe50's authors call a scene a session.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lrtflite.data.synthetic.shapes import F32
from lrtflite.data.synthetic.textures import hsv, smooth_noise

PLACE = 192  # pixels across a background; a frame shows two thirds of it

BACKGROUNDS = (
    *("planks", "tiles", "shelf", "leaves", "carpet", "table"),
    *("meadow", "lights", "curtain", "gravel", "blinds"),
)


class Scene(NamedTuple):
    """Place, light, camera and hand; place (3, PLACE, PLACE) uint8, light (3,) float32."""

    place: NDArray[np.uint8]
    light: F32
    ambient: float
    slant: F32
    ramp: F32
    skin: F32
    noise: float
    blur: float
    shake: float


def draw_place(rng: np.random.Generator, kind: str) -> NDArray[np.uint8]:
    """Draw a background of one of the kinds in BACKGROUNDS, (3, PLACE, PLACE) uint8."""
    v, u = np.meshgrid(*2 * [np.arange(PLACE, dtype=np.float32) / PLACE], indexing="ij")
    hue = rng.random()
    one = hsv(hue, rng.uniform(0.03, 0.3), rng.uniform(0.3, 0.85))
    two = (
        one * rng.uniform(0.6, 0.85)
        if rng.random() < 0.5
        else 255 - (255 - one) * rng.uniform(0.6, 0.85)
    )
    fine = smooth_noise(rng, PLACE, PLACE, 24, octaves=3)
    coarse = smooth_noise(rng, PLACE, PLACE, 3, octaves=4)
    n = int(rng.integers(4, 9))
    angle = rng.uniform(-0.4, 0.4)
    p, q = u * np.cos(angle) - v * np.sin(angle), u * np.sin(angle) + v * np.cos(angle)
    mix = coarse
    if kind == "planks":
        mix = 0.6 * ((q * n).astype(int) * 0.37 % 1) + 0.4 * smooth_noise(rng, PLACE, PLACE, 9)
        mix = np.where((q * n) % 1 < 0.06, 1.5, mix)
    elif kind == "tiles":
        seam = ((p * n) % 1 < 0.07) | ((q * n) % 1 < 0.07)
        mix = np.where(seam, 1.2, 0.3 * coarse)
    elif kind == "leaves":
        mix = np.where(smooth_noise(rng, PLACE, PLACE, 12, octaves=2) > 0.5, 0.9, 0.1) + 0.3 * fine
    elif kind == "carpet":
        mix = 0.5 * fine + 0.5 * ((p * 3 * n) % 1 < 0.5)
    elif kind == "table":
        mix = np.where(q > rng.uniform(0.4, 0.7), 0.85 + 0.2 * fine, 0.2 * coarse)
    elif kind == "curtain":
        mix = 0.5 + 0.5 * np.sin(2 * np.pi * (p * n + 0.6 * coarse))
    elif kind == "gravel":
        mix = smooth_noise(rng, PLACE, PLACE, 40, octaves=2)
    elif kind == "blinds":
        mix = np.where((q * 2 * n) % 1 < 0.6, (q * 2 * n) % 1, 1.3)
    elif kind == "meadow":
        mix = np.where(q > 0.5, 0.7 + 0.5 * fine, 0.25 * coarse)
    image = np.asarray(one + np.clip(mix, 0, 1.5)[..., None] * (two - one), np.float32)
    if kind in ("shelf", "lights"):
        for _ in range(60):
            x, y, w, h = rng.random(4) * (1.1, 1.1, 0.1, 0.25) + (-0.05, -0.05, 0.03, 0.06)
            colour = hsv(rng.random(), rng.uniform(0.05, 0.35), rng.uniform(0.3, 0.85))
            if kind == "shelf":
                image[(np.abs(u - x) < w) & (np.abs(v - y) < h)] = colour
            else:
                spot = np.clip((w - np.hypot(u - x, v - y)) * 40, 0, 0.8)[..., None]
                image += spot * (colour - image)
    image *= (0.85 + 0.3 * coarse)[..., None]
    for _ in range(int(rng.integers(2, 7))):  # the background is out of focus
        image = (np.roll(image, 1, 0) + 2 * image + np.roll(image, -1, 0)) / 4
        image = (np.roll(image, 1, 1) + 2 * image + np.roll(image, -1, 1)) / 4
    return np.ascontiguousarray(np.clip(image, 0, 255).astype(np.uint8).transpose(2, 0, 1))


def draw_scene(rng: np.random.Generator, kind: str) -> Scene:
    """Draw a scene in front of a background of some kind."""
    warmth = rng.normal(0, 0.09)
    tint = rng.normal(0, 0.04)
    gain = np.exp(rng.uniform(-0.3, 0.2))
    direction = rng.uniform(0, 2 * np.pi)
    ramp_angle = rng.uniform(0, 2 * np.pi)
    return Scene(
        place=draw_place(rng, kind),
        light=np.asarray(gain * np.exp([warmth, tint, -warmth]), np.float32),
        ambient=float(rng.uniform(0.4, 0.75)),
        slant=np.array([np.cos(direction), np.sin(direction) - 0.4], np.float32) * 0.6,
        ramp=np.array([np.cos(ramp_angle), np.sin(ramp_angle)], np.float32)
        * np.float32(rng.uniform(0, 0.3)),
        skin=hsv(rng.uniform(0.04, 0.09), rng.uniform(0.25, 0.5), rng.uniform(0.35, 0.95)),
        noise=float(rng.uniform(1, 7)),
        blur=float(rng.uniform(0, 0.7)),
        shake=float(rng.uniform(0.4, 1.3)),
    )
