"""Chromium with a fake camera, in front of a server."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from page_browser import CHROMIUM, flags
from page_films import draw_clip, write_film
from page_server import Served

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Playwright

# Seconds and frames a second of a lesson: short, but with some frames.
TEACH = ["--seconds", "3", "--fps", "8"]
# Chromium stops all loading when an interface of the machine comes or goes, which says nothing
# about the page.
DISTURBED = "ERR_NETWORK_CHANGED"
LAPTOP = {"width": 1280, "height": 860}


def missing_tools() -> list[str]:
    missing = [name for name in ("playwright", "starlette", "uvicorn") if find_spec(name) is None]
    if shutil.which(CHROMIUM) is None:
        missing.append(CHROMIUM)
    if shutil.which("ffmpeg") is None:
        missing.append("ffmpeg")
    return missing


@pytest.fixture(scope="session", autouse=True)
def page_tools() -> None:
    """Skip these tests where a tool is missing; fail where they are required."""
    if missing := missing_tools():
        reason = f"needs {', '.join(missing)}: tools/install_page.sh"
        if os.environ.get("LRTFLITE_REQUIRE_PAGE") == "1":
            pytest.fail(reason)
        pytest.skip(reason)


@pytest.fixture(scope="session")
def film(tmp_path_factory: pytest.TempPathFactory, page_tools: None) -> Callable[[str, int], Path]:
    """Return `film(thing, scene)`: a drawn video of a thing, made on the first call."""
    folder = tmp_path_factory.mktemp("films")

    def find(thing: str, scene: int) -> Path:
        path = folder / f"{thing}-{scene}.mjpeg"
        return path if path.exists() else write_film(path, draw_clip(thing, scene))

    return find


@pytest.fixture(scope="session")
def playwright(page_tools: None) -> Iterator[Playwright]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        yield driver


@pytest.fixture(scope="session")
def launch(playwright: Playwright) -> Iterator[Callable[..., Browser]]:
    """Return `launch(film)`: Chromium whose camera plays a film; None has no camera at all."""
    running: dict[Path | None, Browser] = {}

    def start(played: Path | None) -> Browser:
        if played not in running:
            running[played] = playwright.chromium.launch(
                executable_path=CHROMIUM, args=flags(played)
            )
        return running[played]

    yield start
    for browser in running.values():
        browser.close()


class Visit:
    """Pages of one test; every error in a console and every refused resource is noted."""

    def __init__(self, launch: Callable[..., Browser]) -> None:
        self._launch = launch
        self._contexts: list[Any] = []
        self._disturbed = 0
        self.errors: list[str] = []

    def __call__(self, url: str, film: Path | None, *, wait: bool = True, **options: Any) -> Page:
        granted = {"permissions": ["camera"]} if film else {}
        context = self._launch(film).new_context(**{"viewport": LAPTOP, **granted, **options})
        self._contexts.append(context)
        context.set_default_timeout(30_000)
        page: Page = context.new_page()
        page.on("pageerror", lambda error: self.errors.append(f"error: {error}"))
        page.on("console", self._heard)
        while True:
            disturbed = self._disturbed
            page.goto(url)
            if disturbed == self._disturbed:
                break
        if wait:
            page.locator(".tile").first.wait_for()
        return page

    def _heard(self, message: Any) -> None:
        if DISTURBED in message.text:
            self._disturbed += 1
        elif message.type in ("error", "warning"):
            self.errors.append(f"{message.type}: {message.text}")

    def close(self) -> None:
        for context in self._contexts:
            if folder := os.environ.get("LRTFLITE_SCREENSHOTS"):
                for page in context.pages:
                    page.screenshot(path=Path(folder) / f"{time.time_ns()}.png", full_page=True)
            context.close()


@pytest.fixture
def visit(launch: Callable[..., Browser]) -> Iterator[Visit]:
    """Return `visit(url, film)`: a page; after the test its console must be clean."""
    visit = Visit(launch)
    yield visit
    visit.close()
    assert visit.errors == []


@pytest.fixture
def noisy_visit(launch: Callable[..., Browser]) -> Iterator[Visit]:
    """Like `visit`, for tests in which requests fail: Chromium logs each of those."""
    visit = Visit(launch)
    yield visit
    visit.close()
    failed = ("Failed to load resource", "net::ERR")
    assert [error for error in visit.errors if not any(word in error for word in failed)] == []


@pytest.fixture
def serve(lda: Path, tmp_path: Path) -> Iterator[Callable[..., Served]]:
    """Return `serve(*words)`: a server of this test with the drawn things' bundle."""
    running: list[Served] = []

    def start(*words: str) -> Served:
        folder = tmp_path / f"server-{len(running)}"
        folder.mkdir()
        running.append(Served(lda, folder, *TEACH, *words))
        return running[-1]

    yield start
    for served in running:
        served.stop()
