"""Answers as messages: the state that Home Assistant shows, and how many messages there are."""

from __future__ import annotations

from typing import Any

from lrtflite_serve.mqtt.answers import PAUSE, Answers, described


def answer(kind: str, label: str | None, share: float = 1.0) -> dict[str, Any]:
    return {
        "answers": [{"label": "mug", "slot": 0, "probability": 0.75}],
        "familiarity": 0.5,
        "settled": {"kind": kind, "label": label, "slot": 0, "share": share, "frames": 9},
        "ms": 1.0,
    }


def test_what_is_shown() -> None:
    assert described(answer("answer", "mug", 0.8)) == {
        "state": "mug",
        "kind": "answer",
        "label": "mug",
        "slot": 0,
        "share": 0.8,
        "familiarity": 0.5,
        "likeliest": "mug",
        "probability": 0.75,
    }
    assert described(answer("unknown", None))["state"] == "unknown"
    assert described(answer("unsure", None))["state"] == "unsure"
    assert described({"answers": [], "settled": None, "nothing_learned": True})["state"] == (
        "nothing learned"
    )


def test_a_class_named_unsure_is_told_from_no_answer() -> None:
    assert described(answer("answer", "unsure"))["kind"] == "answer"
    assert described(answer("unsure", None))["kind"] == "unsure"


def test_a_change_is_told_at_once_and_numbers_now_and_then() -> None:
    now = [0.0]
    answers = Answers(clock=lambda: now[0])
    assert answers.message(answer("answer", "mug")) is not None
    assert answers.message(answer("answer", "mug", 0.9)) is None
    assert answers.message(answer("unsure", None)) is not None
    assert answers.message(answer("answer", "mug")) is not None
    now[0] += PAUSE - 0.1
    assert answers.message(answer("answer", "mug", 0.9)) is None
    answers.clear()
    assert answers.message(answer("answer", "mug", 0.9)) is not None
    now[0] += PAUSE
    told = answers.message(answer("answer", "mug", 0.7))
    assert told is not None
    assert told["share"] == 0.7
