"""Cameras, servers, tokens and lessons that fail: a sentence on the page, and nothing lost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from page_server import Served
from page_steps import (
    labels,
    tap_empty,
    teach_new,
    wait_for_answer,
    wait_for_labels,
    wait_for_pictures,
    wait_until_learned,
)

Film = Callable[[str, int], Path]
Serve = Callable[..., Served]
REFUSED = """navigator.mediaDevices.getUserMedia = async () => {
    throw new DOMException('', 'NotAllowedError');
};"""
UNPLUG = """() => {
    const [track] = document.querySelector('video').srcObject.getTracks();
    track.dispatchEvent(new Event('ended'));
}"""
INSECURE = "Object.defineProperty(window, 'isSecureContext', { value: false });"


def test_without_a_camera_the_page_offers_files(serve: Serve, visit: Any) -> None:
    page = visit(serve().url, None)
    page.get_by_text("No camera was found.").wait_for()
    page.locator(".cover").get_by_role("button", name="Add pictures").click()
    assert page.locator("dialog h2").inner_text() == "Add pictures"


def test_a_refused_camera_says_what_to_do(serve: Serve, film: Film, visit: Any) -> None:
    page = visit(serve().url, film("cup-1", 0), wait=False)
    page.add_init_script(REFUSED)
    page.reload()
    page.get_by_text("The browser was not allowed to use the camera.").wait_for()
    assert page.get_by_role("button", name="Try again").is_visible()


def test_an_unplugged_camera_says_so_and_comes_back(serve: Serve, film: Film, visit: Any) -> None:
    page = visit(serve().url, film("cup-1", 0))
    page.locator(".picture video").wait_for()
    page.evaluate(UNPLUG)
    page.get_by_text("The camera was disconnected.").wait_for()
    page.get_by_role("button", name="Try again").click()
    teach_new(page, "cup")


def test_a_camera_that_is_unplugged_in_a_lesson_leaves_no_trace(
    serve: Serve, film: Film, visit: Any
) -> None:
    served = serve("--seconds", "60")
    page = visit(served.url, film("cup-1", 0))
    page.locator(".picture video").wait_for()
    tap_empty(page)
    page.get_by_label("Name", exact=True).fill("cup")
    page.keyboard.press("Enter")
    wait_for_pictures(page, 5)
    page.evaluate(UNPLUG)
    page.get_by_text("Nothing was learned about cup.").wait_for()
    assert not page.locator("[data-part=lesson]").is_visible()
    # Nobody waits for the lesson.
    page.get_by_role("button", name="Try again").click()
    teach_short(page, "phone")
    assert served.labels == ["phone"]


def test_a_lesson_without_pictures_ends(serve: Serve, film: Film, visit: Any) -> None:
    served = serve()
    page = visit(served.url, film("cup-1", 0))
    page.locator(".picture video").wait_for()
    # A camera that is there and gives nothing, such as one that sleeps.
    page.evaluate(
        """Object.defineProperty(document.querySelector('video'), 'readyState', { value: 0 })"""
    )
    tap_empty(page)
    page.keyboard.press("Enter")
    page.get_by_text("No pictures arrived, so nothing was learned.").wait_for()
    assert served.labels == []


def test_an_answer_does_not_outlive_the_device(serve: Serve, film: Film, noisy_visit: Any) -> None:
    served = serve()
    page = noisy_visit(served.url, film("cup-1", 0))
    teach_new(page, "cup")
    wait_for_answer(page, "answer", "cup")
    served.kill()
    page.locator(
        ".answer[data-kind=waiting] .settled", has_text="Waiting for the device"
    ).wait_for()
    page.locator(".speed", has_not_text="/ s").wait_for(state="attached")
    served.start()
    wait_for_answer(page, "answer", "cup")


def test_an_insecure_page_says_why_it_has_no_camera(serve: Serve, film: Film, visit: Any) -> None:
    page = visit(serve().url, film("cup-1", 0), wait=False)
    page.add_init_script(INSECURE)
    page.reload()
    page.get_by_text("A browser gives its camera only to pages over https").wait_for()


def test_a_server_killed_in_a_lesson_leaves_no_trace(
    serve: Serve, film: Film, noisy_visit: Any
) -> None:
    served = serve("--seconds", "30")
    page = noisy_visit(served.url, film("cup-1", 0))
    teach_short(page, "cup")
    tap_empty(page)
    page.get_by_label("Name", exact=True).fill("phone")
    page.keyboard.press("Enter")
    wait_for_pictures(page, 5)
    served.kill()
    page.get_by_text("The device does not answer. Trying again …").wait_for()
    page.get_by_text("Waiting for the device. Your pictures are kept.").wait_for()
    served.start()
    page.get_by_text("Nothing was learned; teach it again.").wait_for()
    wait_for_labels(page, ["cup"])
    assert served.labels == ["cup"]
    # The page goes on with the new process.
    teach_short(page, "phone")
    assert sorted(served.labels) == ["cup", "phone"]


def teach_short(page: Any, label: str) -> None:
    tap_empty(page)
    page.get_by_label("Name", exact=True).fill(label)
    page.keyboard.press("Enter")
    wait_for_pictures(page, 5)
    page.get_by_role("button", name="Finish now").click()
    wait_until_learned(page, label)


def test_a_lesson_goes_on_after_a_lost_connection(
    serve: Serve, film: Film, noisy_visit: Any
) -> None:
    served = serve("--seconds", "6")
    page = noisy_visit(served.url, film("cup-1", 0))
    page.locator(".picture video").wait_for()
    tap_empty(page)
    page.keyboard.press("Enter")
    wait_for_pictures(page, 5)
    page.context.set_offline(True)
    page.get_by_text("Waiting for the device.").wait_for()
    page.context.set_offline(False)
    wait_until_learned(page, "Thing 1")
    # No frame was lost or counted twice: six seconds at eight a second.
    [entry] = served.ask("GET", "/classes")["classes"]
    shown = page.locator("[data-part=result]").inner_text()
    assert f"from {entry['pictures']} pictures" in shown


def test_two_lessons_at_once_are_refused_with_a_sentence(
    serve: Serve, film: Film, noisy_visit: Any
) -> None:
    served = serve("--seconds", "30")
    page, other = (noisy_visit(served.url, film("cup-1", 0)) for _ in range(2))
    tap_empty(page)
    page.get_by_label("Name", exact=True).fill("cup")
    page.keyboard.press("Enter")
    other.get_by_text("Another page or camera is teaching cup.").wait_for()
    tap_empty(other)
    other.keyboard.press("Enter")
    assert "cup" in other.locator(".notice.error").inner_text()
    page.keyboard.press("Escape")
    page.get_by_text("Cancelled.").wait_for()
    other.get_by_text("Another page or camera is teaching").wait_for(state="detached")
    teach_short(other, "phone")
    assert labels(other) == ["phone"]


def test_a_token_is_asked_for_and_a_wrong_one_refused(
    serve: Serve, film: Film, noisy_visit: Any
) -> None:
    served = serve("--host", "0.0.0.0")
    page = noisy_visit(served.url, film("cup-1", 0), wait=False)
    page.get_by_role("textbox", name="Token").fill("wrong")
    page.keyboard.press("Enter")
    page.get_by_text("This token is not the right one.").wait_for()
    page.get_by_role("textbox", name="Token").fill(served.token())
    page.keyboard.press("Enter")
    page.locator(".tile").first.wait_for()

    # The address that is printed needs no typing, and does not keep the token.
    page = noisy_visit(f"{served.url}#token={served.token()}", film("cup-1", 0))
    assert "token" not in page.url
    teach_new(page, "cup")
    page.locator("[data-slot] img[src^=blob]").first.wait_for()


def test_a_note_about_the_bundle_is_on_the_page_until_something_is_learned(
    serve: Serve, film: Film, visit: Any
) -> None:
    served = serve()
    page = visit("about:blank", film("cup-1", 0), wait=False)

    def noted(route: Any) -> None:
        answer = route.fetch()
        route.fulfill(response=answer, json={**answer.json(), "notes": ["Drawn pictures only."]})

    page.route("**/api", noted)
    page.goto(served.url)
    page.locator(".notice", has_text="Drawn pictures only.").wait_for()
    teach_new(page, "cup")
    page.locator(".notice", has_text="Drawn pictures only.").wait_for(state="detached")
