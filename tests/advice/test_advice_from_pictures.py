"""Planted faults are found, each by one action, and clean pictures give none."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from learning import fingerprint
from lrtflite import Learner
from lrtflite.advice import Findings, Shown, diagnose, shown_by, shown_kept
from lrtflite.advice.looking import MAX_PICTURES
from lrtflite.data import open_source
from lrtflite.errors import InputError, UnreadableFile
from lrtflite.pictures import KeptPictures
from planted_pictures import THINGS, Pictures, clean_pictures, save, shown, with_faults

ADAPTER, BALL, CUP, GLASSES, PHONE, SCISSORS = THINGS
Taught = Callable[[Mapping[str, Sequence[np.ndarray]]], Learner]


@pytest.fixture(scope="module")
def clean() -> Pictures:
    return clean_pictures()


@pytest.fixture(scope="module")
def taught(demo: Path) -> Iterator[Taught]:
    """Return a function that teaches a new learner all pictures in one session."""
    opened: list[Learner] = []

    def teach(pictures: Mapping[str, Sequence[np.ndarray]]) -> Learner:
        learner = Learner.open(demo)
        opened.append(learner)
        labels = [label for label, frames in pictures.items() for _ in frames]
        learner.learn([frame for frames in pictures.values() for frame in frames], labels)
        return learner

    yield teach
    for learner in opened:
        learner.close()


@pytest.fixture(scope="module")
def two(clean: Pictures, taught: Taught) -> Learner:
    """Return a learner of two things; no test may change it."""
    return taught({name: clean[name] for name in (CUP, BALL)})


@pytest.fixture(scope="module")
def faulty(clean: Pictures, taught: Taught) -> tuple[Learner, Pictures]:
    """Return a learner that was taught pictures with faults, and the pictures."""
    pictures = with_faults(clean)
    return taught(pictures), pictures


def test_clean_pictures_give_no_action(clean: Pictures, taught: Taught) -> None:
    learner = taught(clean)
    found = diagnose(learner, shown(clean))
    assert found.lines == ()
    assert found.notes == ()
    assert found.looked_at == "66 pictures of 6 classes"
    assert [each.pictures for each in found.classes] == [11] * 6
    assert diagnose(learner).lines == ()


def test_every_planted_fault_has_its_action(faulty: tuple[Learner, Pictures]) -> None:
    learner, pictures = faulty
    found = diagnose(learner, shown(pictures))
    assert found.lines == (
        f"remove 3 pictures of {ADAPTER} that look like {BALL}: "
        f"{ADAPTER}/1.png, {ADAPTER}/2.png, {ADAPTER}/3.png",
        f"remove 3 pictures of {BALL} that look like {ADAPTER}: "
        f"{BALL}/1.png, {BALL}/2.png, {BALL}/3.png",
        f"add pictures of {PHONE}: it has 2, and 12 from several sides are a good start",
        f"add pictures of {SCISSORS} from other sides: its 30 pictures are all alike",
        f"remove 2 pictures of {CUP} that repeat another one: "
        f"{CUP}/11.png (as {CUP}/0.png), {CUP}/12.png (as {CUP}/4.png)",
        f"replace 2 blurred pictures of {GLASSES}: {GLASSES}/2.png, {GLASSES}/5.png",
        f"replace 1 dark picture of {GLASSES} with one in more light: {GLASSES}/7.png",
    )


def test_the_state_alone_shows_classes(faulty: tuple[Learner, Pictures]) -> None:
    found = diagnose(faulty[0])
    text = "\n".join(found.lines)
    assert f"teach {ADAPTER} again without pictures of {BALL}: 3 of 11 stored frames" in text
    assert f"teach {BALL} again without pictures of {ADAPTER}: 3 of 11 stored frames" in text
    assert f"add pictures of {PHONE}: it has 2" in text
    assert f"add pictures of {SCISSORS} from other sides: its 30 pictures are all alike" in text
    assert ".png" not in text
    assert "without pictures, only classes are judged" in found.notes[-1]


def test_without_a_replay_memory_only_numbers_are_known(clean: Pictures, demo: Path) -> None:
    with Learner.open(demo, replay_size=0) as learner:
        learner.learn(np.stack(clean[CUP]), CUP)
        learner.learn(np.stack(clean[BALL][:2]), BALL)
        found = diagnose(learner)
    assert found.lines == (
        f"add pictures of {BALL}: it has 2, and 12 from several sides are a good start",
    )
    assert found.notes[0].startswith(f"no frames of {CUP}, {BALL} are stored")


def test_the_same_picture_in_two_classes(clean: Pictures, two: Learner) -> None:
    ball = clean[BALL][6]
    found = diagnose(two, shown({CUP: [*clean[CUP], ball], BALL: clean[BALL]}))
    assert found.lines == (f"remove 1 picture of {CUP} that looks like {BALL}: {CUP}/11.png",)
    # Five pictures are too few to tell that one of them shows a ball.
    found = diagnose(two, shown({CUP: [*clean[CUP][:4], ball], BALL: clean[BALL]}))
    assert found.lines == (
        f"keep 1 picture in {BALL} or in {CUP}, not in both: {BALL}/6.png (as {CUP}/4.png)",
    )


def test_confused_classes_name_their_pictures(clean: Pictures, taught: Taught) -> None:
    """The learner was taught balls under the name of cups, and the pictures are right."""
    learner = taught({CUP: clean[BALL], BALL: clean[CUP], PHONE: clean[PHONE]})
    found = diagnose(learner, shown({name: clean[name] for name in (CUP, BALL, PHONE)}))
    [ball, cup] = found.confused
    assert {(each.label, each.answer) for each in (ball, cup)} == {(CUP, BALL), (BALL, CUP)}
    assert all(each.frames >= 9 and each.of == 11 for each in (ball, cup))
    line = next(line for line in found.lines if line.startswith(f"add pictures of {CUP} that"))
    wrong = next(each for each in found.confused if each.label == CUP)
    assert f"how it differs from {BALL}: {wrong.frames} of 11 pictures are taken for" in line
    assert f"({wrong.pictures[0]}, " in line


def test_a_diagnosis_changes_nothing(clean: Pictures, two: Learner) -> None:
    before = fingerprint(two)
    diagnose(two, shown(clean))
    diagnose(two)
    assert fingerprint(two) == before


def test_an_unreadable_picture_is_named(clean: Pictures, two: Learner) -> None:
    def damaged(_: int) -> Iterator[np.ndarray]:
        raise UnreadableFile("Expected a readable picture, got x", reason="cut")

    pictures = [*shown({CUP: clean[CUP], BALL: clean[BALL]}), Shown(CUP, ("cup-3/x.jpg",), damaged)]
    found = diagnose(two, pictures)
    assert found.lines == (f"remove or replace 1 unreadable picture of {CUP}: cup-3/x.jpg",)


def test_only_unreadable_pictures(two: Learner) -> None:
    def damaged(_: int) -> Iterator[np.ndarray]:
        raise UnreadableFile("Expected a readable picture, got x", reason="cut")
        yield

    found = diagnose(two, [Shown(CUP, ("x.jpg",), damaged)])
    assert found.lines == (f"remove or replace 1 unreadable picture of {CUP}: x.jpg",)


def test_other_classes_and_missing_ones_are_noted(clean: Pictures, two: Learner) -> None:
    found = diagnose(two, shown({CUP: clean[CUP], PHONE: clean[PHONE]}))
    assert found.lines == ()
    assert found.notes == (
        f"no pictures of {BALL} were given, so nothing is said about them",
        f"pictures of {PHONE} were left out: the state has no such class",
    )


def test_pictures_of_other_classes_only_are_refused(clean: Pictures, two: Learner) -> None:
    for pictures, got in ((shown({PHONE: clean[PHONE]}), f"only {PHONE}"), ([], "none")):
        with pytest.raises(
            InputError, match=rf"^Expected pictures of a class .*{CUP}.*, got {got}"
        ):
            diagnose(two, pictures)


def test_a_learner_that_has_learned_nothing_is_refused(demo: Path) -> None:
    with Learner.open(demo) as learner, pytest.raises(InputError, match="learned nothing"):
        diagnose(learner)


def test_findings_are_json(faulty: tuple[Learner, Pictures]) -> None:
    learner, pictures = faulty
    found: Findings = diagnose(learner, shown(pictures))
    record = json.loads(found.to_json())
    assert [action["text"] for action in record["actions"]] == list(found.lines)
    assert record["mislabelled"][0]["pictures"] == [
        f"{ADAPTER}/{number}.png" for number in (1, 2, 3)
    ]
    assert record["thin"][0] == {"label": PHONE, "pictures": 2, "different": 2}


def test_all_pictures_of_a_data_set_are_shown(clean: Pictures, tmp_path: Path) -> None:
    save({CUP: clean[CUP], BALL: clean[BALL]}, tmp_path / "things")
    source = open_source(f"folder:{tmp_path / 'things'}", size=128)
    found = shown_by(source)
    assert [name for each in found for name in each.names] == [
        f"{thing}/{number:02d}.png" for thing in (BALL, CUP) for number in range(11)
    ]
    assert not any(each.is_video for each in found)


def test_frames_of_videos_have_numbers_and_are_limited() -> None:
    source = open_source("synthetic?classes=cup-1,cup-2&frames=50&test_frames=1", size=32)
    found = shown_by(source)
    for label in source.classes:
        assert sum(len(each.names) for each in found if each.label == label) <= MAX_PICTURES
    video = next(each for each in found if each.is_video)
    assert video.names[0] == "s1/o41 frame 1"
    assert len(list(video.read(32))) == len(video.names)


def test_kept_pictures_follow_a_renamed_class(
    clean: Pictures, taught: Taught, tmp_path: Path
) -> None:
    learner = taught({CUP: clean[CUP], BALL: clean[BALL]})
    kept = KeptPictures.beside(tmp_path / "state")
    for slot, thing in enumerate((CUP, BALL)):
        for frame in clean[thing][:6]:
            kept.add(slot, frame)
    kept.add(9, clean[PHONE][0])  # a slot without a class
    dark = kept.add(0, clean[CUP][0] // 6)
    learner.rename(CUP, "beaker")
    found = diagnose(learner, shown_kept(kept, learner.labels))
    assert found.looked_at == "13 pictures of 2 classes"
    assert found.lines == (f"replace 1 dark picture of beaker with one in more light: {dark.id}",)
