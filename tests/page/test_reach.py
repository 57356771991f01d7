"""The page at a phone's width, in the dark, by keyboard and with labels; its names are text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from page_server import Served
from page_steps import labels, teach_new, wait_for_labels, wait_until_learned

if TYPE_CHECKING:
    from playwright.sync_api import Page

Film = Callable[[str, int], Path]
Serve = Callable[..., Served]
PHONES = ({"width": 360, "height": 740}, {"width": 414, "height": 896})
# What can be tapped, as {name, width, height}; a label's target is the label.
TARGETS = """() => [...document.querySelectorAll('button, a[href], select, input')]
    .filter(x => x.checkVisibility() && !x.matches('.visually-hidden, .skip, [type=file]'))
    .map(x => x.matches('[type=checkbox]') ? x.closest('label') : x)
    .map(x => [x.textContent || x.getAttribute('aria-label'), x.getBoundingClientRect()])
    .map(([name, box]) => ({ name, width: box.width, height: box.height }))"""
# Controls that a screen reader would read without a name.
UNNAMED = """() => [...document.querySelectorAll('button, input, select, dialog, section')]
    .filter(x => x.checkVisibility() && x.ariaHidden !== 'true')
    .filter(x => !(x.ariaLabel || x.textContent.trim() || x.labels?.length
        || x.getAttribute('aria-labelledby') || x.title))
    .map(x => x.outerHTML)"""
# Contrast of the text of an element with the first opaque background behind it.
CONTRAST = """selector => {
    const light = color => {
        const [r, g, b] = color.match(/[\\d.]+/g).map(x => x / 255)
            .map(x => x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const element = document.querySelector(selector);
    let behind = element;
    const clear = color => color === 'rgba(0, 0, 0, 0)';
    while (clear(getComputedStyle(behind).backgroundColor)) behind = behind.parentElement;
    const [a, b] = [light(getComputedStyle(element).color),
        light(getComputedStyle(behind).backgroundColor)].sort((x, y) => y - x);
    return (a + 0.05) / (b + 0.05);
}"""
DIALOGS = ("check", "files", "settings")


def check_width(page: Page) -> None:
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def check_targets(page: Page) -> None:
    small = [box for box in page.evaluate(TARGETS) if min(box["width"], box["height"]) < 44]
    assert small == []


def test_a_phone_has_no_sideways_scroll_and_targets_for_fingers(
    serve: Serve, film: Film, visit: Any
) -> None:
    served = serve("--keep-pictures")
    for phone in PHONES:
        page = visit(served.url, film("cup-1", 0), viewport=phone, has_touch=True)
        if phone is PHONES[0]:
            teach_new(page, "a thing with quite a long name that has to be wrapped somewhere")
        page.locator("[data-slot]").wait_for()
        check_width(page)
        check_targets(page)
        for name in DIALOGS:
            page.locator(f"[data-action={name}]").tap()
            page.locator("dialog[open]").wait_for()
            check_width(page)
            check_targets(page)
            page.keyboard.press("Escape")
        page.locator(".more").tap()
        check_targets(page)
        page.get_by_role("button", name="Look at its").tap()
        page.locator("dialog[data-name=kept] .tray-item").first.wait_for()
        check_width(page)
        check_targets(page)


def test_everything_has_a_name_for_screen_readers(serve: Serve, film: Film, visit: Any) -> None:
    page = visit(serve().url, film("cup-1", 0))
    teach_new(page, "cup")
    assert page.evaluate(UNNAMED) == []
    for name in DIALOGS:
        page.locator(f"[data-action={name}]").click()
        page.locator("dialog[open]").wait_for()
        assert page.evaluate(UNNAMED) == []
        page.keyboard.press("Escape")
    said = page.locator("#said-answer")
    assert said.get_attribute("aria-live") == "polite"
    page.locator("#said-answer", has_text="This is cup").wait_for(state="attached")
    # Said once, however many frames agree.
    page.evaluate(
        """() => {
            window.changes = 0;
            new MutationObserver(x => { window.changes += x.length; })
                .observe(document.getElementById('said-answer'), { childList: true });
        }"""
    )
    page.wait_for_timeout(1500)
    assert page.evaluate("window.changes") <= 1


def test_light_and_dark_can_be_read(serve: Serve, film: Film, visit: Any) -> None:
    served = serve()
    grounds = set()
    for scheme in ("light", "dark"):
        page = visit(served.url, film("cup-1", 0), color_scheme=scheme)
        grounds.add(page.evaluate("getComputedStyle(document.documentElement).backgroundColor"))
        for part in ("h1", ".settled", ".hint", ".tile.empty .tile-name", ".section-sub"):
            assert page.evaluate(CONTRAST, part) >= 4.5, (scheme, part)
    assert len(grounds) == 2


def focus_by_tab(page: Page, selector: str) -> None:
    """Press Tab until an element has the focus, which must be visible."""
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("s => document.activeElement.matches(s)", selector):
            style = "getComputedStyle(document.activeElement).outlineStyle"
            assert page.evaluate(style) == "solid"
            return
    raise AssertionError(f"the keyboard does not reach {selector}")


def test_the_keyboard_alone_teaches_renames_and_forgets(
    serve: Serve, film: Film, visit: Any
) -> None:
    served = serve()
    page = visit(served.url, film("cup-1", 0))
    focus_by_tab(page, ".tile.empty")
    page.keyboard.press("Enter")
    page.keyboard.type("cup")
    page.keyboard.press("Enter")
    wait_until_learned(page, "cup")

    focus_by_tab(page, "[data-slot] .tile")
    page.keyboard.down(" ")
    page.locator("[data-part=lesson]", has_text="Release to finish").wait_for()
    page.wait_for_timeout(700)
    page.keyboard.up(" ")
    wait_until_learned(page, "cup")

    focus_by_tab(page, ".more")
    page.keyboard.press("Enter")
    page.locator("dialog[open]").wait_for()
    page.keyboard.press("Escape")
    page.locator("dialog").wait_for(state="detached")
    # The focus is back where it was.
    assert page.evaluate("document.activeElement.matches('.more')")
    page.keyboard.press("Enter")
    focus_by_tab(page, "[data-action=forget]")
    page.keyboard.press("Enter")
    wait_for_labels(page, [])


def test_a_hostile_name_is_text(serve: Serve, film: Film, visit: Any) -> None:
    name = "<img src=x onerror='window.owned=1'>\"'&amp;</li>"
    served = serve()
    page = visit(served.url, film("cup-1", 0))
    teach_new(page, name)
    wait_for_labels(page, [name])
    page.locator(".answer[data-kind=answer] .settled").wait_for()
    page.get_by_role("button", name="Options for").click()
    assert page.locator("dialog h2").inner_text() == name
    page.keyboard.press("Escape")
    page.reload()
    page.locator("[data-slot]").wait_for()
    assert labels(page) == [name]
    assert page.evaluate("window.owned === undefined")


def test_a_moved_page_keeps_to_its_policy(serve: Serve, visit: Any) -> None:
    """A script or style that gets into the page is refused by the Content-Security-Policy."""
    page = visit(serve().url, None)
    page.evaluate(
        """() => {
            const script = document.createElement('script');
            script.textContent = 'window.owned = 1';
            document.body.append(script);
        }"""
    )
    assert page.evaluate("window.owned === undefined")
    assert [error for error in visit.errors if "Content Security Policy" in error]
    visit.errors.clear()
