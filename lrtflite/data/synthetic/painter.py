"""Paint one frame: background, palm, object, fingers, light, lens and sensor.

Arrays are planar, (channels, pixels): numpy is fastest where the last axis is long.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lrtflite.data.synthetic.motion import Pose
from lrtflite.data.synthetic.objects import REACH, SHEET, Object
from lrtflite.data.synthetic.scenes import PLACE, Scene
from lrtflite.data.synthetic.shapes import F32
from lrtflite.data.synthetic.textures import TEXTURE_H, TEXTURE_W

HAND = 96  # pixels across a hand's sheet


def draw_hand() -> NDArray[np.uint8]:
    """Return (4, HAND * HAND) uint8: shade and alpha of the palm, shade and alpha of the fingers.

    The arm comes from below. The grip is at u = v = 0; the fingers lie in front of the object.
    """
    axis = np.linspace(-1.5, 1.5, HAND, dtype=np.float32)
    u, v = np.meshgrid(axis, axis + 1)
    palm = [((0.0, 0.55), (0.0, 0.85), 0.38), ((0.05, 0.9), (0.15, 2.6), 0.31)]
    fingers = [
        ((-0.42, 0.75), (-0.34, 0.12), 0.13),
        ((0.5, 0.75), (0.36, 0.02), 0.1),
        ((0.52, 0.78), (0.3, 0.24), 0.1),
        ((0.48, 0.85), (0.24, 0.46), 0.1),
    ]
    planes = []
    for rods in (palm, fingers):
        shade, alpha = np.zeros((2, HAND, HAND), np.float32)
        for (x0, y0), (x1, y1), r in rods:
            dx, dy = x1 - x0, y1 - y0
            t = np.clip(((u - x0) * dx + (v - y0) * dy) / (dx * dx + dy * dy), 0, 1)
            distance = np.hypot(u - x0 - t * dx, v - y0 - t * dy) - r
            cover = np.clip(0.5 - distance / (3 / HAND), 0, 1)
            tone = 0.65 + 0.35 * np.sqrt(np.clip(-distance / r, 0, 1))
            shade += cover * (tone - shade)
            alpha = np.maximum(alpha, cover)
        planes += [np.where(alpha > 0, shade, 0.65), alpha]
    return np.asarray(np.stack(planes) * 255, np.float32).astype(np.uint8).reshape(4, -1)


def _sample(sheet: NDArray[np.uint8], width: int, x: F32, y: F32) -> F32:
    """Interpolate a sheet (C, rows * width) at x, y (n,) inside it; return (C, n) float32."""
    column, row = x.astype(np.int32), y.astype(np.int32)
    fx, fy = x - column, y - row
    at = row * width + column
    top = sheet.take(at, 1).astype(np.float32)
    top += fx * (sheet.take(at + 1, 1) - top)
    at += width
    bottom = sheet.take(at, 1).astype(np.float32)
    bottom += fx * (sheet.take(at + 1, 1) - bottom)
    bottom -= top
    bottom *= fy
    bottom += top
    return bottom


def _window(x: float, y: float, reach: float, size: int) -> tuple[F32, F32, int, int]:
    """Return the columns and rows within reach of (x, y), relative to it, and the first of each."""
    x0, x1 = (int(np.clip(edge, 0, size)) for edge in (x - reach, x + reach + 1))
    y0, y1 = (int(np.clip(edge, 0, size)) for edge in (y - reach, y + reach + 1))
    dx = np.arange(x0, x1, dtype=np.float32) - np.float32(x - 0.5)
    dy = np.arange(y0, y1, dtype=np.float32) - np.float32(y - 0.5)
    return dx[None], dy[:, None], x0, y0


def _pixels(
    inside: NDArray[np.intp], columns: int, x0: int, y0: int, size: int
) -> NDArray[np.intp]:
    """Return the positions in the flat frame of positions in a flat window."""
    row, column = np.divmod(inside, columns)
    return (row + y0) * size + (column + x0)


def _paint_object(frame: F32, size: int, thing: Object, scene: Scene, pose: Pose) -> None:
    """Sample the object's sheet and texture, light them, and blend them into the flat frame."""
    half = pose.size * size
    reach = half * 1.25 * np.hypot(thing.half_width, thing.half_height)
    dx, dy, x0, y0 = _window((0.5 + pose.x) * size, (0.5 + pose.y) * size, reach, size)
    cos, sin = np.float32(np.cos(pose.roll) / half), np.float32(np.sin(pose.roll) / half)
    # A plate that turns away becomes narrow, and its near side larger; a solid hardly changes.
    turn = pose.turn if thing.solid else 1.1 * np.sin(pose.turn)
    narrow = 1.0 if thing.solid else np.cos(turn)
    u = (cos * dx + sin * dy) / np.float32(narrow)
    v = (cos * dy - sin * dx) / np.float32(np.cos(0.8 * pose.tilt))
    depth = np.float32(0.0 if thing.solid else 0.16 * np.sin(turn)) * u
    depth += np.float32(0.2 * np.sin(pose.tilt)) * v + np.float32(1)
    u /= depth
    v /= depth
    inside = np.flatnonzero((np.abs(u) < thing.half_width) & (np.abs(v) < thing.half_height))
    u, v = u.ravel()[inside], v.ravel()[inside]
    scale = np.float32((SHEET - 1) / (2 * REACH))
    x, y = (u + np.float32(REACH)) * scale, (v + np.float32(REACH)) * scale
    nearest = (y + np.float32(0.5)).astype(np.int32) * SHEET + (x + np.float32(0.5)).astype(
        np.int32
    )
    covered = np.flatnonzero(thing.sheet[3].take(nearest))
    inside, x, y, v = inside[covered], x[covered], y[covered], v[covered]
    surface = _sample(thing.sheet, SHEET, x, y)

    column = surface[7] * np.float32(TEXTURE_W / 255)
    if thing.solid:
        column += np.float32(turn / (2 * np.pi) * TEXTURE_W)
    row = (v * np.float32(0.5 / REACH) + np.float32(0.5)) * np.float32(TEXTURE_H)
    at = row.astype(np.int32) * TEXTURE_W + np.floor(column).astype(np.int32) % TEXTURE_W
    colour = surface[:3]
    colour += (surface[4] * np.float32(1 / 255)) * (thing.texture.take(at, 1) - colour)

    normal = (surface[5:7] - np.float32(128)) * np.float32(1 / 127)
    # The light stays in place while the object rolls.
    c, s = np.cos(pose.roll), np.sin(pose.roll)
    light = np.array([[c, s], [-s, c]], np.float32) @ scene.slant
    facing = np.sqrt(np.clip(1 - (normal * normal).sum(0), 0, 1))
    lit = np.clip(light @ normal + np.float32(0.8) * facing, 0, 1)
    colour *= np.float32(scene.ambient) + np.float32(1.15 - scene.ambient) * lit
    glint = lit * lit
    for _ in range(3):
        glint *= glint
    colour += np.float32(150 * thing.gloss) * glint

    pixels = _pixels(inside, dx.size, x0, y0, size)
    below = frame[:, pixels]
    below += (surface[3] * np.float32(1 / 255)) * (colour - below)
    frame[:, pixels] = below


def _place_hand(
    hand: NDArray[np.uint8], size: int, pose: Pose, lean: float
) -> tuple[F32, NDArray[np.intp]]:
    """Return the hand's (4, n) planes in 0..1 and their n positions in the flat frame."""
    half = 0.3 * size
    roll = lean + 0.4 * pose.roll
    away = pose.grip * pose.size * size
    x = (0.5 + pose.x) * size - away * np.sin(roll)
    y = (0.5 + pose.y) * size + away * np.cos(roll)
    dx, dy, x0, y0 = _window(x, y, half * 2.6, size)
    cos, sin = np.float32(np.cos(roll) / half), np.float32(np.sin(roll) / half)
    u, v = cos * dx + sin * dy, cos * dy - sin * dx
    inside = np.flatnonzero((np.abs(u) < 0.66) & (v < 2.46) & (v > -0.12))
    scale = np.float32((HAND - 1) / 3)
    x_, y_ = (u.ravel()[inside] + np.float32(1.5)) * scale, (v.ravel()[inside] + 0.5) * scale
    planes = _sample(hand, HAND, x_, y_) * np.float32(1 / 255)
    return planes, _pixels(inside, dx.size, x0, y0, size)


def _paint_skin(frame: F32, planes: F32, pixels: NDArray[np.intp], skin: F32) -> None:
    """Blend skin into the flat frame; `planes` is (2, n), shade and alpha."""
    covered = np.flatnonzero(planes[1] > 0)
    shade, alpha = planes[:, covered]
    at = pixels[covered]
    below = frame[:, at]
    below += alpha * (skin[:, None] * shade - below)
    frame[:, at] = below


def paint_frame(
    *,
    thing: Object,
    scene: Scene,
    pose: Pose,
    hand: NDArray[np.uint8],
    lean: float,
    grain: F32,
    size: int,
) -> NDArray[np.uint8]:
    """Return (size, size, 3) uint8; `grain` is (3, size, size) float32 noise of unit variance."""
    frame = _background(scene.place, pose, size)
    flat = frame.reshape(3, -1)
    skin, pixels = _place_hand(hand, size, pose, lean)
    _paint_skin(flat, skin[:2], pixels, scene.skin)
    _paint_object(flat, size, thing, scene, pose)
    _paint_skin(flat, skin[2:], pixels, scene.skin)

    axis = np.linspace(-1, 1, size, dtype=np.float32)
    frame *= (axis * scene.ramp[1] + 1)[:, None] + axis * scene.ramp[0]
    frame *= (scene.light * np.float32(np.exp(pose.gain)))[:, None, None]
    soft = np.float32(np.clip(scene.blur + pose.focus, 0, 1) / 3)
    if soft > 0.02:
        frame[:, 1:-1] += soft * (frame[:, 2:] + frame[:, :-2] - 2 * frame[:, 1:-1])
        frame[..., 1:-1] += soft * (frame[..., 2:] + frame[..., :-2] - 2 * frame[..., 1:-1])
    frame += np.float32(scene.noise) * grain
    np.clip(frame, 0, 255, out=frame)
    return np.ascontiguousarray(frame.astype(np.uint8).transpose(1, 2, 0))


def _background(place: NDArray[np.uint8], pose: Pose, size: int) -> F32:
    """Cut out two thirds of the place, resized to (3, size, size) float32, bilinear."""
    span = PLACE * 2 // 3
    left = np.clip((PLACE - span) * (0.5 + pose.pan_x), 0, PLACE - span - 2)
    top = np.clip((PLACE - span) * (0.5 + pose.pan_y), 0, PLACE - span - 2)
    column, row = int(left), int(top)
    block = place[:, row : row + span + 2, column : column + span + 2].astype(np.float32)
    if size == span:  # slices are faster than gathers
        rows = block[:, :size] + np.float32(top - row) * (block[:, 1:-1] - block[:, :size])
        slope = rows[..., 1:-1] - rows[..., :size]
        return np.asarray(rows[..., :size] + np.float32(left - column) * slope)
    centres = (np.arange(size) + 0.5) * (span / size) - 0.5
    y, x = np.maximum(top - row + centres, 0), np.maximum(left - column + centres, 0)
    at_y, at_x = y.astype(int), x.astype(int)
    fy, fx = (y - at_y).astype(np.float32)[:, None], (x - at_x).astype(np.float32)
    rows = block[:, at_y] + fy * (block[:, at_y + 1] - block[:, at_y])
    across = rows[..., at_x] + fx * (rows[..., at_x + 1] - rows[..., at_x])
    return np.ascontiguousarray(across)  # the painting functions need a flat view
