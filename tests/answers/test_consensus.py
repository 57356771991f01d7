"""Settled answers: hand-worked sequences of frames, and properties of any sequence."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lrtflite import Consensus, InputError, Prediction, Settled

LABELS = {"m": ("mug", 0), "b": ("ball", 1), "h": ("hat", 2)}


def frame(kind: str, chance: float = 0.9, familiarity: float | None = None) -> list[Prediction]:
    """Return guesses for a frame of a class; "?" is a frame that `predict` refused."""
    if kind == "?":
        known = 0.01 if familiarity is None else familiarity
        return [
            Prediction("unknown", 1 - known, -1, known),
            Prediction("mug", 0.6 * known, 0, known),
            Prediction("ball", 0.4 * known, 1, known),
        ]
    label, slot = LABELS[kind]
    other, beside = LABELS["b" if kind == "m" else "m"]
    return [
        Prediction(label, chance, slot, familiarity),
        Prediction(other, 1 - chance, beside, familiarity),
    ]


def shown(consensus: Consensus, kinds: str) -> str:
    """Return a letter for each settled answer: m, b, h, "?" for unknown, "." for unsure."""
    letters = {"mug": "m", "ball": "b", "hat": "h"}
    found = []
    for kind in kinds:
        settled = consensus.add(frame(kind))
        found.append(
            letters[settled.label]
            if settled.label is not None
            else {"unsure": ".", "unknown": "?"}[settled.kind]
        )
    return "".join(found)


@pytest.mark.parametrize(
    ("frames", "expected"),
    [
        # Three of five settle, as soon as there are three.
        ("mmm", "..m"),
        ("mbmbm", "....m"),
        # A single odd frame changes nothing.
        ("mmmbmmbmm", "..mmmmmmm"),
        # Another answer takes over once three of the last five agree.
        ("mmmmmbbbbb", "..mmmmmbbb"),
        # Nothing else settles, so the answer stays while one frame of the last five agrees.
        ("mmmbh?bh?", "..mmmmm.."),
        # What was never taught, with a frame of a class between.
        ("???m?", "..???"),
        ("mmm???", "..mmm?"),
        ("mmm??mmm", "..mmmmmm"),
    ],
)
def test_sequences_of_five_frames(frames: str, expected: str) -> None:
    assert shown(Consensus(frames=5, share=0.6), frames) == expected


def test_one_frame_answers_at_once() -> None:
    assert shown(Consensus(frames=1, share=1.0), "mb?m") == "mb?m"


def test_all_frames_must_agree() -> None:
    assert shown(Consensus(frames=3, share=1.0), "mmbmmmbbb") == ".....mmmb"


@pytest.mark.parametrize(("frames", "share", "needed"), [(10, 0.7, 7), (10, 0.61, 7), (3, 0.0, 1)])
def test_the_share_is_of_the_whole_window(frames: int, share: float, needed: int) -> None:
    found = shown(Consensus(frames=frames, share=share), "m" * needed)
    assert found == "." * (needed - 1) + "m"


def test_the_share_tells_how_many_frames_agree() -> None:
    consensus = Consensus(frames=4, share=0.75)
    found = [consensus.add(frame(kind)) for kind in "mbmmbm"]
    assert [(each.kind, each.share, each.frames) for each in found] == [
        ("unsure", 1.0, 1),
        ("unsure", 0.5, 2),
        ("unsure", pytest.approx(2 / 3), 3),
        ("answer", 0.75, 4),
        ("answer", 0.5, 4),
        ("answer", 0.75, 4),
    ]
    assert found[3] == Settled("answer", "mug", 0, 0.75, 4)
    assert found[0] == Settled("unsure", None, -1, 1.0, 1)


def test_probabilities_decide_between_answers_of_as_many_frames() -> None:
    consensus = Consensus(frames=4, share=0.5)
    shown(consensus, "hhhh")
    for kind, chance in (("b", 0.55), ("m", 0.9), ("b", 0.55)):
        consensus.add(frame(kind, chance))
    # The mug has 0.9 + 0.9 + 0.45 + 0.45, the ball 0.55 + 0.55 + 0.1 + 0.1.
    assert consensus.add(frame("m", 0.9)).label == "mug"


def test_frames_that_agree_in_doubt_settle_nothing() -> None:
    # The mug has 0.55 of the two likeliest, less than 0.57, until it is clearer.
    consensus = Consensus(frames=5, share=0.6)
    found = [consensus.add(frame("m", chance)) for chance in (0.55, 0.55, 0.55, 0.55, 0.7)]
    assert [each.kind for each in found] == [*["unsure"] * 4, "answer"]
    assert [each.share for each in found] == [1.0] * 5
    # In doubt, what has settled stays.
    consensus.clear()
    shown(consensus, "mmmm")
    assert [consensus.add(frame("b", 0.55)).label for _ in range(4)] == ["mug"] * 4


def test_a_class_that_few_guess_may_be_the_likeliest_and_does_not_settle() -> None:
    # The hat is second in every frame and adds up to the most; no frame answers it.
    consensus = Consensus(frames=4, share=0.5)
    for label, slot in (("mug", 0), ("ball", 1), ("cup", 3), ("mug", 0)):
        settled = consensus.add([Prediction(label, 0.5, slot), Prediction("hat", 0.45, 2)])
    # 1.0 for the mug, 1.8 for the hat: the lead of the mug is 0.36.
    assert (settled.kind, settled.share) == ("unsure", 0.5)


def test_the_threshold_decides_whatever_the_learner_said() -> None:
    strict = Consensus(frames=1, threshold=0.3)
    assert strict.add(frame("m", familiarity=0.2)).kind == "unknown"
    assert strict.add(frame("m", familiarity=0.3)).label == "mug"
    lenient = Consensus(frames=1, threshold=0.05)
    assert lenient.add(frame("?", familiarity=0.1)).label == "mug"
    assert lenient.add(frame("?", familiarity=0.04)).kind == "unknown"


def test_without_a_threshold_the_learner_decides() -> None:
    assert Consensus(frames=1).add(frame("?")).kind == "unknown"
    assert Consensus(frames=1).add(frame("m", familiarity=0.0)).label == "mug"


def test_a_head_without_familiarity_knows_nothing_unknown() -> None:
    assert Consensus(frames=1, threshold=1.0).add(frame("m")).label == "mug"


def test_a_refused_frame_with_one_guess_agrees_with_nothing() -> None:
    # With top=1, `predict` gives UNKNOWN alone; a lower threshold leaves no class to count.
    consensus = Consensus(frames=2, share=0.5, threshold=0.0)
    settled = consensus.add([Prediction("unknown", 0.9, -1, 0.1)])
    assert settled == Settled("unsure", None, -1, 0.0, 1)


def test_clearing_forgets_the_frames() -> None:
    consensus = Consensus(frames=3, share=0.6)
    assert shown(consensus, "mmm") == ".mm"
    consensus.clear()
    assert shown(consensus, "bm") == ".."


def test_a_renamed_class_has_its_new_label() -> None:
    consensus = Consensus(frames=3, share=0.6)
    shown(consensus, "mm")
    renamed = consensus.add([Prediction("cup", 0.9, 0)])
    assert (renamed.label, renamed.slot, renamed.share) == ("cup", 0, 1.0)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"frames": 0}, "Expected frames as a whole number of at least 1, got 0"),
        ({"frames": 2.5}, "Expected frames as a whole number of at least 1, got 2.5"),
        ({"frames": True}, "Expected frames as a whole number of at least 1, got True"),
        ({"share": 1.1}, "Expected share as a number from 0 to 1, got 1.1"),
        ({"share": -0.1}, "Expected share as a number from 0 to 1, got -0.1"),
        ({"share": float("nan")}, "Expected share as a number from 0 to 1, got nan"),
        ({"threshold": 2}, "Expected threshold as a number from 0 to 1, got 2"),
        ({"threshold": "0.1"}, "Expected threshold as a number from 0 to 1, got '0.1'"),
    ],
)
def test_options_out_of_range_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as raised:
        Consensus(**options)
    assert str(raised.value) == said


@pytest.mark.parametrize("guesses", [[], [frame("m")], frame("m")[0], None, "mug"])
def test_anything_but_the_guesses_for_one_frame_is_refused(guesses: Any) -> None:
    consensus = Consensus(frames=1)
    with pytest.raises(InputError, match=r"^Expected the guesses for one frame, got .*; give one"):
        consensus.add(guesses)
    assert consensus.add(frame("m")).frames == 1


WINDOWS = st.integers(1, 8)
SHARES = st.floats(0, 1)
KINDS = st.lists(st.tuples(st.sampled_from("mbh?"), st.floats(0.5, 1)), min_size=1, max_size=40)


@given(WINDOWS, SHARES, KINDS)
def test_an_answer_is_that_of_some_frame_in_the_window(
    frames: int, share: float, kinds: list[tuple[str, float]]
) -> None:
    consensus = Consensus(frames=frames, share=share)
    for end, (kind, chance) in enumerate(kinds, start=1):
        settled = consensus.add(frame(kind, chance))
        recent = [each for each, _ in kinds[max(0, end - frames) : end]]
        assert settled.frames == len(recent)
        votes = {"unknown": recent.count("?")} | {
            LABELS[each][0]: recent.count(each) for each in "mbh"
        }
        if settled.kind == "answer":
            assert settled.label is not None
            assert (settled.label, settled.slot) in LABELS.values()
            assert 0 < settled.share == votes[settled.label] / len(recent)
        else:
            assert (settled.label, settled.slot) == (None, -1)
        if settled.kind == "unknown":
            assert 0 < settled.share == votes["unknown"] / len(recent)


@given(WINDOWS, st.floats(0.51, 1), KINDS)
def test_a_settled_answer_changes_only_for_a_majority(
    frames: int, share: float, kinds: list[tuple[str, float]]
) -> None:
    consensus, before = Consensus(frames=frames, share=share), None
    for end, (kind, chance) in enumerate(kinds, start=1):
        settled = consensus.add(frame(kind, chance))
        now = None if settled.kind == "unsure" else settled.label or "unknown"
        if now not in (None, before):
            recent = [each for each, _ in kinds[max(0, end - frames) : end]]
            wanted = {"mug": "m", "ball": "b", "hat": "h", "unknown": "?"}[str(now)]
            assert recent.count(wanted) >= share * frames - 1e-6
        before = now


@given(WINDOWS, SHARES, KINDS)
def test_only_the_window_counts_once_nothing_has_settled(
    frames: int, share: float, kinds: list[tuple[str, float]]
) -> None:
    # Frames of another class fill the window and settle, so that both know the same.
    first, second = (Consensus(frames=frames, share=share) for _ in range(2))
    for kind, chance in kinds:
        first.add(frame(kind, chance))
    for each in (first, second):
        for _ in range(frames):
            last = each.add(frame("h", 1.0))
        assert (last.label, last.share) == ("hat", 1.0)
    for kind, chance in kinds:
        assert first.add(frame(kind, chance)) == second.add(frame(kind, chance))
