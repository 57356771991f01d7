"""Make docs/page.png and docs/page.webp: the page of `lrtflite serve`, with drawn things.

    python tools/make_page_pictures.py BUNDLE

BUNDLE is one that notices what is unknown, such as that of `lrtflite convert --strategy lda`. Needs
what `make test-page` installs.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from PIL import Image
from playwright.sync_api import Playwright, ViewportSize, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "support"))

from page_browser import CHROMIUM, flags  # noqa: E402
from page_films import draw_clip, write_film  # noqa: E402
from page_server import Served  # noqa: E402
from page_steps import wait_for_answer, wait_until_learned  # noqa: E402

if TYPE_CHECKING:
    from playwright.sync_api import Page

# Things to teach: the drawn object, its name on the page.
THINGS = (("cup-1", "my cup"), ("phone-2", "phone"), ("ball-2", "ball"))
STRANGER = "scissors-3"
TAUGHT, SEEN = 0, 3
SERVER = ("--seconds", "6", "--fps", "5")
WINDOW: ViewportSize = {"width": 1280, "height": 800}
# The animation: its width, the pause between two pictures, and WebP's quality.
WIDTH, PAUSE_MS, QUALITY = 840, 260, 75


class Shots:
    """Pictures of the animation, each with the time that it stays."""

    def __init__(self) -> None:
        self.pictures: list[Image.Image] = []
        self.stays: list[int] = []

    def take(self, page: Page, stays: int = PAUSE_MS) -> None:
        with Image.open(BytesIO(page.screenshot())) as image:
            height = round(image.height * WIDTH / image.width)
            self.pictures.append(
                image.convert("RGB").resize((WIDTH, height), Image.Resampling.LANCZOS)
            )
        self.stays.append(stays)

    def follow(self, page: Page, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.take(page)
            page.wait_for_timeout(PAUSE_MS - 120)

    def save(self, path: Path) -> None:
        first, *others = self.pictures
        first.save(
            path,
            save_all=True,
            append_images=others,
            duration=self.stays,
            loop=0,
            quality=QUALITY,
            method=6,
        )


@contextmanager
def opened(playwright: Playwright, served: Served, thing: str, scene: int) -> Iterator[Page]:
    """Open the page with a camera that films a thing."""
    with tempfile.TemporaryDirectory() as folder:
        film = write_film(Path(folder) / "film.mjpeg", draw_clip(thing, scene))
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=flags(film))
        try:
            page = browser.new_context(viewport=WINDOW, permissions=["camera"]).new_page()
            page.goto(served.url)
            page.locator(".picture video").wait_for()
            page.wait_for_timeout(1500)
            yield page
        finally:
            browser.close()


def teach(page: Page, label: str, shots: Shots) -> None:
    """Teach a new thing, with a picture of each step."""
    shots.take(page, 900)
    page.locator(".tile.empty").first.click()
    for letter in label:
        page.keyboard.type(letter)
        shots.take(page, 120)
    page.keyboard.press("Enter")
    shots.follow(page, 5.5)
    wait_until_learned(page, label)
    page.wait_for_timeout(800)
    shots.take(page, 1800)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("bundle", type=Path)
    parser.add_argument("--out", type=Path, default=ROOT / "docs")
    options = parser.parse_args()
    shots = Shots()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        served = Served(options.bundle, Path(folder), *SERVER)
        try:
            for thing, label in THINGS:
                with opened(playwright, served, thing, TAUGHT) as page:
                    teach(page, label, shots if label == THINGS[0][1] else Shots())
            with opened(playwright, served, STRANGER, SEEN) as page:
                wait_for_answer(page, "unknown", "Unknown")
                shots.follow(page, 1.5)
            thing, label = THINGS[1]
            with opened(playwright, served, thing, SEEN) as page:
                wait_for_answer(page, "answer", label)
                page.screenshot(path=options.out / "page.png")
                shots.follow(page, 2)
        finally:
            served.stop()
    shots.save(options.out / "page.webp")
    for name in ("page.png", "page.webp"):
        print(f"{name}: {(options.out / name).stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
