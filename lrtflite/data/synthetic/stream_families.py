"""The ten categories of `synthetic`: the pieces that make a cup a cup.

None of them is in `backbone_families.py`, so a backbone trained there has never seen a category of
the stream, with any seed.
"""

from __future__ import annotations

from lrtflite.data.synthetic.shapes import (
    Family,
    ball,
    box,
    disc,
    dots,
    oval,
    poly,
    ring,
    turned,
    wire,
)

STREAM: dict[str, Family] = {
    "adapter": (
        wire("metal", 0.07, (-0.2, -0.3), (-0.2, -0.8)),
        wire("metal", 0.07, (0.2, -0.3), (0.2, -0.8)),
        box("body", 0, 0.15, 0.55, 0.52, 0.16, 0.2),
        *dots("dark", 0.08, (-0.18, 0.18), (0.15,)),
    ),
    "phone": (
        box("body", 0, 0, 0.46, 0.88, 0.1, 0.07),
        box("glass", 0, -0.06, 0.37, 0.64, 0.03, 0.02),
        disc("accent", 0, 0.73, 0.07),
    ),
    "scissors": (
        ring("body", -0.32, 0.55, 0.24, 0.09),
        ring("body", 0.32, 0.55, 0.24, 0.09),
        poly("metal", (-0.36, -0.9), (-0.2, -0.88), (0.24, 0.3), (0.08, 0.36), bevel=0.06),
        poly("metal", (0.36, -0.9), (0.2, -0.88), (-0.24, 0.3), (-0.08, 0.36), bevel=0.06),
        disc("dark", 0, -0.05, 0.06),
    ),
    "bulb": (
        turned(
            "body",
            *((-0.85, 0.05), (-0.8, 0.27), (-0.6, 0.48), (-0.35, 0.56)),
            *((-0.1, 0.5), (0.15, 0.3), (0.4, 0.23)),
        ),
        turned("metal", (0.38, 0.24), (0.72, 0.22), (0.78, 0.12)),
        disc("dark", 0, 0.8, 0.1),
    ),
    "can": (
        turned("body", (-0.78, 0.42), (-0.68, 0.5), (0.68, 0.5), (0.78, 0.42)),
        oval("metal", 0, -0.76, 0.42, 0.08),
        turned("metal", (0.7, 0.48), (0.78, 0.42)),
    ),
    "glasses": (
        disc("glass", -0.48, 0, 0.32),
        disc("glass", 0.48, 0, 0.32),
        ring("body", -0.48, 0, 0.34, 0.08),
        ring("body", 0.48, 0, 0.34, 0.08),
        wire("body", 0.06, (-0.15, -0.08), (0, -0.16), (0.15, -0.08)),
        wire("accent", 0.07, (-0.84, -0.1), (-0.9, -0.4)),
        wire("accent", 0.07, (0.84, -0.1), (0.9, -0.4)),
    ),
    "ball": (ball("body", 0, 0, 0.72),),
    "marker": (
        turned("body", (-0.4, 0.17), (0.85, 0.17), (0.9, 0.13)),
        turned("accent", (-0.95, 0.1), (-0.88, 0.15), (-0.35, 0.19), (-0.3, 0.19)),
        wire("accent", 0.04, (0.2, -0.85), (0.2, -0.4)),
    ),
    "cup": (
        ring("accent", 0.52, 0.05, 0.28, 0.08),
        turned("body", (-0.62, 0.56), (0.1, 0.53), (0.5, 0.44), (0.66, 0.36)),
        oval("accent", 0, -0.62, 0.56, 0.15),
        oval("dark", 0, -0.61, 0.48, 0.1),
    ),
    "remote": (
        box("body", 0, 0, 0.3, 0.9, 0.1, 0.14),
        disc("accent", 0, -0.68, 0.09),
        *dots("dark", 0.06, (-0.15, 0, 0.15), (-0.4, -0.2, 0.0, 0.2)),
        ring("dark", 0, 0.55, 0.15, 0.05),
    ),
}
