"""The objects of the synthetic worlds: one shape family, five looks.

An object is drawn once, into a sheet of surface properties, and sampled from it for every frame. It
has its family's shape in its own proportions, and its own texture and colours.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lrtflite.data.synthetic.shapes import F32, Family
from lrtflite.data.synthetic.textures import draw_texture, hsv, to_planes

SHEET = 112  # pixels across the sheet
REACH = 1.15  # the sheet covers [-REACH, REACH]², so that a stretched shape keeps an empty border

_AXIS = np.linspace(-REACH, REACH, SHEET, dtype=np.float32)
_STEP = 2 * REACH / SHEET
# Share of the texture on the visible half of a turned piece.
_WRAP = 0.5


class Object(NamedTuple):
    """An object, as the painter needs it.

    `sheet` is (8, SHEET * SHEET) uint8: red, green, blue, alpha, share of the texture, normal x and
    y (128 = 0), texture column. `texture` is (3, TEXTURE_H * TEXTURE_W) uint8, periodic in its
    columns. The object lies within |u| < half_width and |v| < half_height. A solid's texture
    travels around it when it turns; any other object is a plate.
    """

    sheet: NDArray[np.uint8]
    texture: NDArray[np.uint8]
    half_width: float
    half_height: float
    solid: bool
    gloss: float


def draw_object(rng: np.random.Generator, family: Family, *, hue: float, kind: str) -> Object:
    """Draw an object of a family; `hue` is in turns, `kind` one of TEXTURES."""
    value = rng.uniform(0.45, 0.95)
    ground = hsv(hue, rng.uniform(0.35, 0.95), value)
    figure = hsv(hue + rng.uniform(0.2, 0.8), rng.uniform(0.2, 0.9), (value + 0.5) % 0.8 + 0.2)
    accent = hsv(rng.random(), rng.uniform(0.2, 0.9), rng.uniform(0.25, 0.95))
    detail = hsv(rng.random(), 0.3, rng.choice([0.15, 0.95]))
    colours = {
        "body": ground,
        "accent": accent,
        "metal": hsv(rng.random(), 0.08, rng.uniform(0.55, 0.85)),
        "dark": hsv(rng.random(), 0.3, rng.uniform(0.1, 0.25)),
        "pale": hsv(rng.random(), 0.12, 0.9),
        "glass": hsv(rng.random(), 0.4, rng.uniform(0.15, 0.6)),
    }
    sheet = _draw_sheet(rng, family, colours)
    alpha = sheet[..., 3]
    across, down = (np.abs(_AXIS[alpha.max(k) > 0]).max() + _STEP for k in (0, 1))
    return Object(
        sheet=to_planes(sheet),
        texture=draw_texture(rng, kind, np.stack([ground, figure, detail])),
        half_width=float(min(across, REACH - _STEP)),
        half_height=float(min(down, REACH - _STEP)),
        solid=any(piece.wraps for piece in family),
        gloss=float(rng.uniform(0.05, 0.5)),
    )


def _draw_sheet(rng: np.random.Generator, family: Family, colours: dict[str, F32]) -> F32:
    """Paint the pieces over each other; return (SHEET, SHEET, 8), planes as in `Object.sheet`."""
    stretch_u, stretch_v = rng.uniform(0.86, 1.12, 2)
    u, v = np.meshgrid(_AXIS / stretch_u, _AXIS / stretch_v)
    colour = np.broadcast_to(colours["body"], (SHEET, SHEET, 3)).astype(np.float32)
    alpha, mix, nx, ny = np.zeros((4, SHEET, SHEET), np.float32)
    column = (u / (2 * REACH) + 0.5) * _WRAP
    for piece in family:
        distance = piece.distance(u, v) - rng.uniform(-0.02, 0.03)
        dv, du = np.gradient(distance, _STEP)
        slope = np.maximum(np.hypot(du, dv), 1e-3)
        cover = np.clip(0.5 - distance / (slope * _STEP), 0, 1)
        edge = np.clip(1 + distance / piece.bevel, 0, 0.97)
        piece_nx, piece_ny = (edge * du / slope, edge * dv / slope)
        opaque = cover * (0.6 if piece.material == "glass" else 1.0)
        alpha = alpha + opaque * (1 - alpha)
        weight = cover[..., None]
        colour += weight * (colours[piece.material] - colour)
        mix += cover * (float(piece.material == "body") - mix)
        nx += cover * (piece_nx - nx)
        ny += cover * (piece_ny - ny)
        if piece.wraps:
            around = (np.arcsin(piece_nx) / np.pi + 0.5) * _WRAP
            column = np.where(cover > 0, around, column)
    sheet = np.empty((SHEET, SHEET, 8), np.float32)
    sheet[..., :3] = colour
    sheet[..., 3] = alpha * 255
    sheet[..., 4] = mix * 255
    sheet[..., 5] = nx * 127 + 128
    sheet[..., 6] = ny * 127 + 128
    sheet[..., 7] = column * 255
    return sheet
