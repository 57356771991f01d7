"""Teach things from films; see them recognised in other films, by this page and by others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from page_server import Served
from page_steps import (
    labels,
    open_options,
    tap,
    tap_empty,
    teach_new,
    tile,
    wait_for_answer,
    wait_for_labels,
    wait_for_pictures,
    wait_until_learned,
)

Film = Callable[[str, int], Path]
Serve = Callable[..., Served]
# Scenes that differ in background, light and motion.
TAUGHT, SEEN = 0, 5


def test_two_things_are_recognised_in_other_films(serve: Serve, film: Film, visit: Any) -> None:
    served = serve()
    page = visit(served.url, film("cup-1", TAUGHT))
    page.locator(".answer[data-kind=empty]").wait_for()
    teach_new(page, "cup")
    assert "It is new" in page.locator("[data-part=result]").inner_text()
    page.context.close()
    page = visit(served.url, film("phone-2", TAUGHT))
    teach_new(page, "phone")
    page.context.close()
    for thing, label in (("cup-1", "cup"), ("phone-2", "phone")):
        page = visit(served.url, film(thing, SEEN))
        wait_for_answer(page, "answer", label)
        assert labels(page) == ["cup", "phone"]
        page.context.close()
    stranger = visit(served.url, film("scissors-3", SEEN))
    wait_for_answer(stranger, "unknown", "Unknown")
    # What was unknown is in the tray, and one tap makes it a thing, which has a name at once.
    stranger.locator(".tray-item[data-kind=unknown]").last.click()
    stranger.locator(".tray-bar").get_by_role("button", name="New thing").click()
    wait_until_learned(stranger, "Thing 3")
    stranger.locator("[data-part=result] [data-action=rename]").click()
    stranger.get_by_label("Name", exact=True).fill("scissors")
    stranger.keyboard.press("Enter")
    wait_until_learned(stranger, "scissors")
    wait_for_labels(stranger, ["cup", "phone", "scissors"])


def test_rename_forget_undo_and_reload(serve: Serve, film: Film, visit: Any) -> None:
    served = serve()
    page = visit(served.url, film("cup-1", TAUGHT))
    second = visit(served.url, film("cup-1", TAUGHT))
    teach_new(page, "cup")
    wait_for_labels(second, ["cup"])

    open_options(page, "cup")
    page.get_by_label("Name", exact=True).fill("mug")
    page.get_by_role("button", name="Rename", exact=True).last.click()
    wait_for_labels(page, ["mug"])
    wait_for_labels(second, ["mug"])

    open_options(second, "mug")
    second.get_by_role("button", name="Forget").click()
    wait_for_labels(page, [])
    second.locator("[data-action=undo]").first.click()
    wait_for_labels(page, ["mug"])
    page.reload()
    wait_for_labels(page, ["mug"])
    assert served.labels == ["mug"]


def test_a_thing_is_taught_as_long_as_it_is_held(serve: Serve, film: Film, visit: Any) -> None:
    served = serve()
    page = visit(served.url, film("cup-1", TAUGHT))
    page.locator(".picture video").wait_for()
    page.wait_for_timeout(500)
    page.locator(".tile.empty").first.hover()
    page.mouse.down()
    page.locator("[data-part=lesson]", has_text="Release to finish").wait_for()
    page.wait_for_timeout(1500)
    page.mouse.up()
    wait_until_learned(page, "Thing 1")
    # A tap would have taken three seconds at eight frames.
    [entry] = served.ask("GET", "/classes")["classes"]
    assert 0 < entry["pictures"] < 24

    tap(tile(page, "Thing 1"))
    page.locator("[data-part=lesson]").wait_for()
    page.keyboard.press("Escape")
    page.get_by_text("Cancelled. Nothing was learned about Thing 1.").wait_for()
    assert served.ask("GET", "/classes")["classes"][0]["pictures"] == entry["pictures"]


def test_the_camera_of_the_device_teaches_and_answers(serve: Serve, visit: Any) -> None:
    served = serve("--camera", "synthetic")
    page = visit(served.url, None)
    page.locator(".cover").wait_for(state="hidden")
    assert page.evaluate("document.querySelector('.picture canvas').width > 0")
    teach_new(page, "thing")
    page.locator(".answer .guess-name", has_text="thing").wait_for()
    # Cancelled from the page, the device stops and nothing changes.
    [before] = served.ask("GET", "/classes")["classes"]
    tap(tile(page, "thing"))
    page.locator("[data-part=lesson]", has_text="pictures").wait_for()
    page.keyboard.press("Escape")
    page.get_by_text("Cancelled. Nothing was learned about thing.").wait_for()
    assert served.ask("GET", "/classes")["classes"][0]["pictures"] == before["pictures"]
    # Finished early, it learns from what it saw.
    tap(tile(page, "thing"))
    page.locator("[data-part=lesson]", has_text="pictures").wait_for()
    page.wait_for_timeout(1200)
    page.get_by_role("button", name="Finish now").click()
    wait_until_learned(page, "thing")
    assert served.ask("GET", "/classes")["classes"][0]["pictures"] > before["pictures"]


def test_a_lesson_may_end_early_and_learns_from_what_was_shown(
    serve: Serve, film: Film, visit: Any
) -> None:
    served = serve("--seconds", "60")
    page = visit(served.url, film("cup-1", TAUGHT))
    tap_empty(page)
    page.keyboard.press("Enter")
    wait_for_pictures(page, 8)
    page.get_by_role("button", name="Finish now").click()
    wait_until_learned(page, "Thing 1")
    assert served.labels == ["Thing 1"]
