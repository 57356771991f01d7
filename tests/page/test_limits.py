"""A page that keeps within the limits of its server, and text that stays text."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from PIL import Image

from page_films import draw_clip
from page_server import Served
from page_steps import (
    labels,
    tap_empty,
    wait_until_learned,
)

Film = Callable[[str, int], Path]
Serve = Callable[..., Served]
EVIL = "<img src=x onerror=document.title=1> & </span>"


def few_frames(route: Any) -> None:
    """Answer as a server whose lessons have at most four frames."""
    answer = route.fetch()
    about = answer.json()
    about["teach"]["max_frames"] = 4
    route.fulfill(response=answer, json=about)


def test_more_pictures_than_a_lesson_takes(serve: Serve, tmp_path: Path, visit: Any) -> None:
    served = serve()
    page = visit(served.url, None)
    page.route("**/api", few_frames)
    page.reload()
    pictures = [tmp_path / f"{number}.png" for number in range(10)]
    for path, frame in zip(pictures, draw_clip("cup-1", 0)):
        Image.fromarray(frame).save(path)
    page.locator("[data-part=add]").click()
    page.locator("input[data-part=files]").set_input_files(pictures)
    page.get_by_label("Name", exact=True).fill(EVIL)
    page.get_by_role("button", name="Learn 1 thing").click()
    wait_until_learned(page, EVIL)
    [entry] = served.ask("GET", "/classes")["classes"]
    assert (entry["pictures"], served.ask("GET", "/classes")["sessions"]) == (10, 3)
    # A name is text, wherever it is shown.
    assert labels(page) == [EVIL]
    assert page.locator("img[src=x]").count() == 0
    assert page.title() != "1"


def test_a_lesson_that_is_full_is_learned(serve: Serve, film: Film, visit: Any) -> None:
    served = serve("--seconds", "60")
    page = visit(served.url, film("cup-1", 0))
    page.route("**/api", few_frames)
    page.reload()
    page.locator(".picture video").wait_for()
    tap_empty(page)
    page.get_by_label("Name", exact=True).fill("cup")
    page.keyboard.press("Enter")
    wait_until_learned(page, "cup")
    [entry] = served.ask("GET", "/classes")["classes"]
    assert entry["pictures"] == 4


def test_a_page_with_an_old_token_does_not_lock_its_address_out(
    serve: Serve, film: Film, noisy_visit: Any, tmp_path: Path
) -> None:
    served = serve("--host", "0.0.0.0")
    page = noisy_visit(f"{served.url}#token={served.token()}", film("cup-1", 0))
    asked: list[Any] = []

    def note(request: Any) -> None:
        if "/api" in request.url:
            asked.append(request)

    page.on("request", note)
    served.kill()
    (served.log.parent / "state.token").unlink()
    served.log.write_text("")
    served.start()
    page.get_by_text("This token is not the right one.").wait_for()
    time.sleep(2)
    before = len(asked)
    page.wait_for_timeout(3000)
    assert len(asked) - before <= 1
    page.get_by_role("textbox", name="Token").fill(served.token())
    page.keyboard.press("Enter")
    page.locator("dialog").wait_for(state="detached")
    page.wait_for_function("() => document.querySelectorAll('.tile').length > 0")


def test_a_camera_that_cannot_be_shown_is_released(serve: Serve, film: Film, visit: Any) -> None:
    page = visit(serve().url, film("cup-1", 0), wait=False)
    page.add_init_script(
        """const real = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
        window.opened = [];
        navigator.mediaDevices.getUserMedia = async (wanted) => {
            const stream = await real(wanted);
            window.opened.push(...stream.getTracks());
            return stream;
        };
        HTMLMediaElement.prototype.play = async () => {
            throw new DOMException('', 'AbortError');
        };"""
    )
    page.reload()
    page.get_by_role("button", name="Try again").wait_for()
    assert set(page.evaluate("() => opened.map((track) => track.readyState)")) == {"ended"}
