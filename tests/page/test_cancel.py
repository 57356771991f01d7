"""Adding from files is cancelled at any point, by button and by Escape, without a trace."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from page_films import draw_things
from page_server import Served
from page_steps import wait_for_labels

Serve = Callable[..., Served]
Leave = Callable[[Any], None]
# Keeps zips from being read until `go()`.
SLOW = """() => {
    const real = Blob.prototype.arrayBuffer;
    const gate = new Promise(resolve => { window.go = resolve; });
    Blob.prototype.arrayBuffer = async function () { await gate; return real.call(this); };
}"""


def by_escape(page: Any) -> None:
    page.keyboard.press("Escape")


def by_button(page: Any) -> None:
    page.locator("dialog[open]").get_by_role("button", name="Cancel").click()


leaves = pytest.mark.parametrize("leave", [by_escape, by_button])


@pytest.fixture(scope="module")
def things(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a folder of pictures for each of two things."""
    folder = tmp_path_factory.mktemp("things")
    draw_things(folder)
    return folder


def opened(visit: Any, served: Served) -> Any:
    page = visit(served.url, None)
    page.locator("[data-part=add]").click()
    return page


def check_no_trace(page: Any, served: Served) -> None:
    """Check that the dialog is gone, nothing was learned, and another lesson can begin."""
    page.locator("dialog").wait_for(state="detached")
    assert served.ask("GET", "/classes")["sessions"] == 0
    lesson = served.ask("POST", "/lessons", {"label": "other"})["id"]
    served.ask("DELETE", f"/lessons/{lesson}")
    assert page.locator(".notice.error").count() == 0


@leaves
def test_while_files_are_read(
    serve: Serve, things: Path, tmp_path: Path, visit: Any, leave: Leave
) -> None:
    project = tmp_path / "project.tm"
    with zipfile.ZipFile(project, "w") as file:
        file.write(things / "cup" / "0.jpg", "cup-!-0.jpg")
    served = serve()
    page = opened(visit, served)
    page.evaluate(SLOW)
    page.locator("input[data-part=files]").set_input_files(project)
    page.get_by_text("Looking at the files").wait_for()
    leave(page)
    page.locator("dialog").wait_for(state="detached")
    page.evaluate("go()")
    page.wait_for_timeout(300)
    check_no_trace(page, served)


@leaves
def test_in_the_preview(serve: Serve, things: Path, visit: Any, leave: Leave) -> None:
    served = serve()
    page = opened(visit, served)
    page.locator("input[data-part=folder]").set_input_files(things)
    page.get_by_role("button", name="Learn 2 things").wait_for()
    leave(page)
    check_no_trace(page, served)


@leaves
@pytest.mark.parametrize("call", ["lessons", "frames", "commit"])
def test_while_it_is_learned(
    serve: Serve, things: Path, noisy_visit: Any, leave: Leave, call: str
) -> None:
    served = serve()
    page = opened(noisy_visit, served)
    held: list[Any] = []
    is_held = True
    pattern = {"lessons": "**/lessons", "frames": "**/frames*", "commit": "**/commit"}[call]

    def hold(route: Any) -> None:
        if is_held:
            held.append(route)
        else:
            route.continue_()

    page.route(pattern, hold)
    page.locator("input[data-part=folder]").set_input_files(things)
    with page.expect_request(pattern):
        page.get_by_role("button", name="Learn 2 things").click()
    leave(page)
    page.locator("dialog").wait_for(state="detached")
    is_held = False
    for route in held:
        route.continue_()
    page.get_by_text("Stopped. Nothing was learned.").wait_for()
    check_no_trace(page, served)


def test_what_was_learned_before_stays_and_is_named(
    serve: Serve, things: Path, noisy_visit: Any
) -> None:
    served = serve()
    page = opened(noisy_visit, served)
    page.locator("input[data-part=folder]").set_input_files(things)
    held: list[Any] = []

    def hold_second(route: Any) -> None:
        if served.labels:
            held.append(route)
        else:
            route.continue_()

    page.route("**/lessons", hold_second)
    page.get_by_role("button", name="Learn 2 things").click()
    page.get_by_text("learning …").wait_for()
    page.wait_for_function("() => document.querySelectorAll('[data-slot]').length === 1")
    page.wait_for_timeout(300)
    by_escape(page)
    for route in held:
        route.continue_()
    learned = served.labels
    assert len(learned) == 1
    page.get_by_text(f"Stopped. Learned so far: {learned[0]}.").wait_for()
    wait_for_labels(page, learned)
