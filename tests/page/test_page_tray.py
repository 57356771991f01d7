"""The tray: one tap makes what was chosen a thing, adds it to one, or discards it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from page_server import Served
from page_steps import teach_new, wait_until_learned

Film = Callable[[str, int], Path]
Serve = Callable[..., Served]


def test_one_tap_adds_to_a_thing_and_discards_what_was_seen(
    serve: Serve, film: Film, visit: Any
) -> None:
    served = serve()
    page = visit(served.url, film("cup-1", 0))
    teach_new(page, "cup")
    page.context.close()
    page = visit(served.url, film("scissors-3", 1))
    waiting = page.locator(".tray-item")
    waiting.first.click()
    before = served.ask("GET", "/classes")["classes"][0]["pictures"]
    page.locator(".tray-bar").get_by_role("button", name="cup").click()
    wait_until_learned(page, "cup")
    assert served.ask("GET", "/classes")["classes"][0]["pictures"] == before + 1

    page.get_by_role("button", name="Undo", exact=True).first.click()
    page.wait_for_function(
        "n => fetch('/api/classes').then(x => x.json()).then(x => x.classes[0].pictures === n)",
        arg=before,
    )
    waiting.first.wait_for()
    seen = [each["id"] for each in served.ask("GET", "/tray")]
    waiting.first.click()
    if page.get_by_role("button", name="Select all").is_visible():
        page.get_by_role("button", name="Select all").click()
    chosen = page.locator(".tray-item[aria-pressed=true]").count()
    with page.expect_request(lambda request: request.method == "DELETE") as asked:
        page.locator(".tray-bar").get_by_role("button", name="Discard").click()
    ids = asked.value.url.partition("?ids=")[2].split(",")
    assert len(ids) == chosen
    assert set(seen) <= set(ids)
