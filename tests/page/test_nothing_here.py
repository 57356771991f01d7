"""The tile "Nothing here" teaches the empty place, which is then unknown; it is not a thing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from page_films import NOTHING
from page_server import Served
from page_steps import (
    labels,
    open_options,
    tap,
    teach_new,
    wait_for_answer,
    wait_for_labels,
    wait_until_learned,
)

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

Film = Callable[[str, int], Path]
Serve = Callable[..., Served]
# The scene that the camera sees.
PLACE = 0


def nothing_here(page: Page) -> Locator:
    return page.locator("[data-part=background]")


def wait_for_count(page: Page, said: str) -> None:
    nothing_here(page).locator(".tile-count", has_text=said).wait_for()


def background_of(served: Served) -> list[dict[str, Any]]:
    classes = served.ask("GET", "/classes")["classes"]
    return [entry for entry in classes if entry["background"]]


def test_the_empty_place_is_taught_and_is_then_unknown(
    serve: Serve, film: Film, visit: Any
) -> None:
    # Without a threshold, so that only the background makes a frame unknown.
    served = serve("--unknown", "0")
    for thing, label in (("cup-1", "cup"), ("phone-2", "phone")):
        page = visit(served.url, film(thing, PLACE))
        teach_new(page, label)
        page.context.close()
    page = visit(served.url, film(NOTHING, PLACE))
    page.locator(".answer[data-kind=answer]").wait_for()

    wait_for_count(page, "not taught yet")
    tap(nothing_here(page).locator(".tile"))
    page.locator("[data-part=lesson]", has_text="Teaching the empty place").wait_for()
    page.locator(".stage, .picture", has_text="Leave the place empty").first.wait_for()
    wait_until_learned(page, "the empty place")
    result = page.locator("[data-part=result]")
    assert result.locator("[data-action=rename]").count() == 0
    wait_for_answer(page, "unknown", "Unknown")
    wait_for_count(page, " pictures")
    assert labels(page) == ["cup", "phone"]
    assert "2 · room for" in page.locator("#things .section-sub").inner_text()
    [entry] = background_of(served)
    assert entry["label"] == "nothing here"
    # What was recognised before still is.
    page.context.close()
    page = visit(served.url, film("phone-2", PLACE))
    wait_for_answer(page, "answer", "phone")
    assert "nothing here" not in page.locator(".guesses").inner_text().lower()
    wait_for_count(page, f"{entry['pictures']} pictures")


def test_the_empty_place_is_held_undone_and_forgotten_but_not_renamed(
    serve: Serve, film: Film, visit: Any
) -> None:
    served = serve()
    page = visit(served.url, film(NOTHING, PLACE))
    page.locator(".picture video").wait_for()
    page.wait_for_timeout(500)
    nothing_here(page).locator(".tile").hover()
    page.mouse.down()
    page.locator("[data-part=lesson]", has_text="Release to finish").wait_for()
    page.wait_for_timeout(1200)
    page.mouse.up()
    wait_until_learned(page, "the empty place")
    [held] = background_of(served)
    assert held["pictures"] > 0
    # Taught again, it is still one; undone, it is as before.
    page.locator("[data-part=result] [data-action=again]").click()
    page.locator("[data-part=result]", has_text="were added").wait_for()
    [more] = background_of(served)
    assert more["pictures"] > held["pictures"]
    page.locator("[data-part=result] [data-action=undo]").click()
    wait_for_count(page, f"{held['pictures']} pictures")

    open_options(page, "Nothing here")
    sheet = page.locator("dialog[data-name=sheet]")
    assert sheet.get_by_label("Name", exact=True).count() == 0
    assert "camera that stays where it is" in sheet.inner_text()
    sheet.get_by_role("button", name="Forget").click()
    page.get_by_text("Forgot the empty place.").wait_for()
    wait_for_count(page, "not taught yet")
    assert background_of(served) == []
    page.locator("[data-action=undo]").first.click()
    wait_for_count(page, f"{held['pictures']} pictures")

    # Cancelled, it leaves no trace.
    tap(nothing_here(page).locator(".tile"))
    page.locator("[data-part=lesson]").wait_for()
    page.keyboard.press("Escape")
    page.get_by_text("Cancelled. Nothing was learned about the empty place.").wait_for()
    assert background_of(served)[0]["pictures"] == held["pictures"]
    wait_for_labels(page, [])
