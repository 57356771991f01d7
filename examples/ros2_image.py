"""Pictures of ROS 2: a `sensor_msgs/Image` as an array of RGB, with numpy only.

`rgb_picture` takes any object with the fields of the message, so it needs no ROS.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from lrtflite import InputError

Picture = NDArray[np.uint8]
# Channels of each pixel, in the order in which they are taken for RGB. Images of OpenCV without a
# name for their colours are BGR, as cv_bridge has it.
CHANNELS = {
    "rgb8": (3, (0, 1, 2)),
    "bgr8": (3, (2, 1, 0)),
    "8UC3": (3, (2, 1, 0)),
    "rgba8": (4, (0, 1, 2)),
    "bgra8": (4, (2, 1, 0)),
    "mono8": (1, (0, 0, 0)),
    "8UC1": (1, (0, 0, 0)),
}
# Place of Y, U, Y, V among the four bytes of two pixels. `yuv422` and `yuv422_yuy2` are the old
# names of the same two.
YUV = {
    "uyvy": (1, 0, 3, 2),
    "yuv422": (1, 0, 3, 2),
    "yuyv": (0, 1, 2, 3),
    "yuv422_yuy2": (0, 1, 2, 3),
}
GREY16 = ("mono16", "16UC1")
ENCODINGS = (*CHANNELS, *YUV, *GREY16)


class ImageMessage(Protocol):
    """The fields of `sensor_msgs/Image` that matter here."""

    height: int
    width: int
    encoding: str
    is_bigendian: int
    step: int
    data: Any


def rgb_picture(message: ImageMessage) -> Picture:
    """Return the picture of a message as (height, width, 3) uint8 RGB.

    Rows may be padded: `step` is their length in bytes. Raise InputError for an encoding that is
    not in ENCODINGS, or for sizes that do not fit the data.
    """
    encoding = message.encoding
    if encoding in CHANNELS:
        count, order = CHANNELS[encoding]
        pixels = _rows(message, count).reshape(message.height, message.width, count)
        return np.ascontiguousarray(pixels[..., order])
    if encoding in YUV:
        return _of_yuv(message, YUV[encoding])
    if encoding in GREY16:
        pairs = _rows(message, 2).reshape(message.height, message.width, 2)
        high = pairs[..., 0 if message.is_bigendian else 1]
        return np.repeat(high[..., np.newaxis], 3, axis=2)
    raise InputError(
        f"Expected an image encoding of {', '.join(ENCODINGS)}, got {encoding!a}",
        "convert it first, for example with image_proc",
    )


def _rows(message: ImageMessage, bytes_per_pixel: int) -> Picture:
    """Return the rows without their padding, (height, width * bytes_per_pixel)."""
    height, width, step = message.height, message.width, message.step
    length = width * bytes_per_pixel
    data = np.frombuffer(message.data, np.uint8)
    needed = step * (height - 1) + length
    if height < 1 or width < 1 or step < length or len(data) < needed:
        raise InputError(
            f"Expected {height} rows of {length} bytes or more in an image of {width} x {height}, "
            f"got {len(data)} bytes with a step of {step}",
            "check the driver of the camera",
        )
    # The padding of the last row may be missing.
    whole = np.zeros(step * height, np.uint8)
    found = data[: step * height]
    whole[: len(found)] = found
    return whole.reshape(height, step)[:, :length]


def _of_yuv(message: ImageMessage, places: tuple[int, int, int, int]) -> Picture:
    """Convert two pixels of four bytes, with the limited range of BT.601."""
    if message.width % 2:
        raise InputError(
            f"Expected an even width for {message.encoding}, got {message.width}",
            "check the driver of the camera",
        )
    pairs = _rows(message, 2).reshape(message.height, message.width // 2, 4).astype(np.float32)
    y0, u, y1, v = (pairs[..., place] for place in places)
    y = np.stack([y0, y1], axis=-1).reshape(message.height, message.width)
    u, v = (np.repeat(each - 128, 2, axis=1) for each in (u, v))
    light = 1.164 * (y - 16)
    rgb = np.stack([light + 1.596 * v, light - 0.392 * u - 0.813 * v, light + 2.017 * u], axis=-1)
    picture: Picture = np.clip(np.rint(rgb), 0, 255).astype(np.uint8)
    return picture
