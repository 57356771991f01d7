"""The page's own fitFrame: the same bytes as lrtflite.fit_frame, in Chromium."""

from __future__ import annotations

import base64
from collections.abc import Callable
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from lrtflite import fit_frame
from page_server import Served

if TYPE_CHECKING:
    from playwright.sync_api import Page

# Height, width and the frame's side: shrinking, enlarging, the same size, one pixel, odd numbers.
SHAPES = (
    (480, 640, 128),
    (640, 480, 224),
    (1080, 1920, 192),
    (97, 61, 128),
    (128, 128, 128),
    (128, 301, 128),
    (1, 1, 16),
    (225, 223, 224),
    (33, 1000, 32),
    (360, 361, 359),
    (2, 3, 128),
)
FROM_PIXELS = """async ([text, width, height, size]) => {
    const { fitFrame } = await import('/frames/fit.js');
    const bytes = Uint8ClampedArray.from(atob(text), x => x.charCodeAt(0));
    const frame = fitFrame(new ImageData(bytes, width, height), size);
    return btoa(Array.from(frame, x => String.fromCharCode(x)).join(''));
}"""
FROM_FILE = """async ([text, size]) => {
    const { grabPicture } = await import('/frames/grab.js');
    const bytes = Uint8Array.from(atob(text), x => x.charCodeAt(0));
    const frame = await grabPicture(new Blob([bytes], { type: 'image/png' }), size);
    return btoa(Array.from(frame, x => String.fromCharCode(x)).join(''));
}"""


@pytest.fixture
def page(serve: Callable[..., Served], visit: Any) -> Any:
    return visit(serve().url, None)


def draw(height: int, width: int) -> NDArray[np.uint8]:
    """Return noise beside flat white and black, where rounding errors would show."""
    generator = np.random.default_rng(height * 10000 + width)
    picture = generator.integers(0, 256, (height, width, 3), dtype=np.uint8)
    picture[: height // 3] = 255
    picture[:, : width // 5] = generator.integers(254, 256, dtype=np.uint8)
    return picture


def asked(page: Page, script: str, words: list[object], size: int) -> NDArray[np.uint8]:
    answer = base64.b64decode(page.evaluate(script, words))
    return np.frombuffer(answer, np.uint8).reshape(size, size, 3)


def test_bytes_are_those_of_fit_frame(page: Page) -> None:
    for height, width, size in SHAPES:
        picture = draw(height, width)
        rgba = np.dstack([picture, np.full((height, width), 255, np.uint8)])
        words = [base64.b64encode(rgba.tobytes()).decode(), width, height, size]
        got = asked(page, FROM_PIXELS, words, size)
        np.testing.assert_array_equal(got, fit_frame(picture, size), str((height, width, size)))


def test_a_picture_file_goes_the_same_way(page: Page) -> None:
    for height, width, size in ((480, 640, 128), (301, 200, 224)):
        picture = draw(height, width)
        file = BytesIO()
        Image.fromarray(picture).save(file, "PNG")
        got = asked(page, FROM_FILE, [base64.b64encode(file.getvalue()).decode(), size], size)
        np.testing.assert_array_equal(got, fit_frame(picture, size))


def test_transparency_becomes_white(page: Page) -> None:
    file = BytesIO()
    Image.new("RGBA", (40, 40), (200, 10, 10, 0)).save(file, "PNG")
    got = asked(page, FROM_FILE, [base64.b64encode(file.getvalue()).decode(), 32], 32)
    assert (got == 255).all()
