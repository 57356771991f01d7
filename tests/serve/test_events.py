"""Events: every page hears of every change, and no page holds the server."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack

import httpx

from lrtflite_serve.service.events import MAX_LISTENERS, MAX_WAITING, Events
from running_service import PATIENCE, Running, events_of, frames_of


def test_two_pages_hear_the_same(served: Running) -> None:
    with ExitStack() as stack:
        pages = []
        for _ in range(2):
            answer = stack.enter_context(served.http.stream("GET", "/api/events"))
            assert answer.headers["content-type"].startswith("text/event-stream")
            pages.append(events_of(answer.iter_lines()))
        for page in pages:
            kind, data = next(page)
            assert (kind, data["classes"]) == ("hello", served.classes())
        served.teach("red", 3)
        heard = [[next(page) for _ in range(4)] for page in pages]
    assert heard[0] == heard[1]
    kinds = [(kind, data.get("state")) for kind, data in heard[0]]
    assert kinds == [
        ("lesson", "recording"),
        ("lesson", "learning"),
        ("classes", None),
        ("lesson", "learned"),
    ]
    learned = heard[0][3][1]
    assert (learned["label"], learned["report"]["frames"]) == ("red", 3)


def test_a_cancelled_lesson_is_told(served: Running) -> None:
    with served.http.stream("GET", "/api/events") as answer:
        page = events_of(answer.iter_lines())
        next(page)
        lesson = served.begin(label="mug")
        served.http.delete(f"/api/lessons/{lesson}")
        states = [next(page)[1]["state"] for _ in range(2)]
    assert states == ["recording", "cancelled"]


def test_one_client_more_than_the_limit(served: Running) -> None:
    limits = httpx.Limits(max_connections=100)
    with ExitStack() as stack:
        client = stack.enter_context(
            httpx.Client(base_url=served.started.address, limits=limits, timeout=PATIENCE)
        )
        pages = []
        for _ in range(MAX_LISTENERS):
            answer = stack.enter_context(client.stream("GET", "/api/events"))
            pages.append(answer.iter_lines())  # kept: a page whose lines nobody reads is closed
            assert next(pages[-1]) == "event: hello"
        refused = client.get("/api/events")
        assert (refused.status_code, refused.json()["error"]["kind"]) == (429, "TooManyClients")
        served.teach("red", 1)  # all others go on
        assert client.get("/api/classes").status_code == 200


def test_a_page_that_leaves_makes_room(served: Running) -> None:
    for _ in range(2 * MAX_LISTENERS):
        with served.http.stream("GET", "/api/events") as answer:
            assert answer.status_code == 200


def test_the_end_of_the_server_ends_open_streams(serving: Callable[..., Running]) -> None:
    served = serving()
    ended = threading.Event()

    def listen() -> None:
        address = f"{served.started.address}api/events"
        with httpx.Client(timeout=PATIENCE) as client, client.stream("GET", address) as answer:
            for _ in answer.iter_lines():
                begun.set()
        ended.set()

    begun = threading.Event()
    thread = threading.Thread(target=listen)
    thread.start()
    assert begun.wait(PATIENCE)
    served.stop()
    thread.join(PATIENCE)
    assert ended.is_set()


def test_a_slow_client_loses_only_what_is_old() -> None:
    events, woken = Events(), []
    listener = events.listen(lambda: woken.append(1))
    for number in range(2 * MAX_WAITING):
        events.publish("answer", number)  # only the newest answer counts
    assert listener.take() == [("answer", 2 * MAX_WAITING - 1)]
    for number in range(MAX_WAITING + 3):
        events.publish("lesson", number)
    assert [data for _, data in listener.take()] == list(range(3, MAX_WAITING + 3))
    events.leave(listener)
    events.publish("lesson", 0)
    assert listener.take() == []
    assert woken


def test_tray_counts(served: Running) -> None:
    served.teach("red", 2)
    with served.http.stream("GET", "/api/events") as answer:
        page = events_of(answer.iter_lines())
        next(page)
        served.http.delete("/api/tray")
        assert next(page) == ("tray", {"count": 0})
    assert frames_of("red", 1)
