"""Steps that a person takes on the page."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page


def tap(locator: Locator) -> None:
    """Tap a tile; a real press would count as held if the machine is too busy to end it in time."""
    locator.dispatch_event("click")


def tap_empty(page: Page) -> None:
    """Tap the tile of a new thing."""
    tap(page.locator(".tile.empty").first)


def teach_new(page: Page, label: str) -> None:
    """Tap an empty tile, name the thing, and wait until it is learned."""
    tap_empty(page)
    page.get_by_label("Name", exact=True).fill(label)
    page.get_by_role("button", name="Start teaching").click()
    wait_until_learned(page, label)


def wait_for_pictures(page: Page, least: int) -> None:
    """Wait until a lesson has at least `least` pictures, up to 99."""
    numbers = "|".join(map(str, range(least, 100)))
    shown = re.compile(rf"(?<!\d)(?:{numbers}) pictures")
    page.locator("[data-part=lesson]", has_text=shown).wait_for()


def wait_until_learned(page: Page, label: str) -> None:
    page.get_by_role("heading", name=f"Learned {label}").wait_for()


def tile(page: Page, label: str) -> Locator:
    return page.get_by_role("button", name=f"{label}, ", exact=False)


def labels(page: Page) -> list[str]:
    """Return the names on the tiles of things that were taught."""
    return page.locator(".tile-place[data-slot] .tile-name").all_text_contents()


def wait_for_labels(page: Page, expected: list[str]) -> None:
    page.wait_for_function(
        """expected => {
            const names = document.querySelectorAll('.tile-place[data-slot] .tile-name');
            return JSON.stringify([...names].map(x => x.textContent)) === JSON.stringify(expected);
        }""",
        arg=expected,
    )


def wait_for_answer(page: Page, kind: str, text: str) -> None:
    """Wait for the settled answer, and see that it stays for a second."""
    settled = page.locator(f".answer[data-kind={kind}] .settled", has_text=text)
    settled.wait_for()
    page.wait_for_timeout(1000)
    assert settled.is_visible()


def open_options(page: Page, label: str) -> None:
    page.get_by_role("button", name=f"Options for {label}").click()
