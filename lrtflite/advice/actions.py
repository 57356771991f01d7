"""Turn findings into actions: one line each, the most urgent first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from lrtflite.advice.findings import (
    ADD,
    CONTRAST,
    KINDS,
    REMOVE,
    REPLACE,
    SEPARATE,
    TEACH,
    THIN_OUT,
    UNREADABLE,
    VARY,
    Action,
    ClassFacts,
    Confused,
    Flawed,
    Mislabelled,
    Repeat,
    Thin,
)
from lrtflite.counted import counted
from lrtflite.data.listing import first_few
from lrtflite.frames.hints import DARK

# Number of pictures that a class should start with (docs/studies/one-by-one.md).
GOOD_START = 12
# Maximum number of pictures that a line names.
NAMED = 6


def ordered(actions: Iterable[Action]) -> tuple[Action, ...]:
    """Return the actions by kind, in the order of KINDS."""
    return tuple(sorted(actions, key=lambda action: KINDS.index(action.kind)))


def for_mislabelled(found: Iterable[Mislabelled]) -> Iterator[Action]:
    for each in found:
        look = "looks" if each.frames == 1 else "look"
        if each.pictures:
            summary = (
                f"remove {counted(each.frames, 'picture')} of {each.label} that {look} like "
                f"{each.looks_like}"
            )
            names = f": {first_few(each.pictures, NAMED)}"
        else:
            summary = (
                f"teach {each.label} again without pictures of {each.looks_like}: "
                f"{each.frames} of {counted(each.of, 'stored frame')} of {each.label} "
                f"{look} like {each.looks_like}"
            )
            names = ""
        yield _action(REMOVE, each.label, summary, names, each.pictures)


def for_confused(found: Iterable[Confused], *, what: str = "picture") -> Iterator[Action]:
    """Yield a line for each confusion; `what` names the frames that were answered."""
    for each in found:
        names = f" ({first_few(each.pictures, NAMED)})" if each.pictures else ""
        summary = (
            f"add pictures of {each.label} that show how it differs from {each.answer}: "
            f"{each.frames} of {counted(each.of, what)} "
            f"{'is' if each.frames == 1 else 'are'} taken for {each.answer}"
        )
        yield _action(CONTRAST, each.label, summary, names, each.pictures)


def for_thin(found: Iterable[Thin], *, least: int) -> Iterator[Action]:
    for each in found:
        if each.pictures < least:
            text = (
                f"add pictures of {each.label}: it has {each.pictures}, and {GOOD_START} from "
                "several sides are a good start"
            )
            yield _action(ADD, each.label, text)
        else:
            alike = (
                f"its {each.pictures} pictures are all alike"
                if each.different == 1
                else f"only {each.different} of its {each.pictures} pictures differ"
            )
            text = f"add pictures of {each.label} from other sides: {alike}"
            yield _action(VARY, each.label, text)


def for_unlearned(classes: Iterable[ClassFacts]) -> Iterator[Action]:
    for each in classes:
        if not each.learned:
            yield _action(TEACH, each.label, f"teach {each.label}: it has a name but no pictures")


def for_repeats(found: Sequence[Repeat]) -> Iterator[Action]:
    """Yield a line for each class with repeats, and for each pair of classes that share some."""
    pairs = sorted(found, key=lambda each: (each.label, each.first_label))
    for (label, first_label), group in groupby(pairs, lambda e: (e.label, e.first_label)):
        repeats = list(group)
        named = first_few([f"{each.picture} (as {each.first})" for each in repeats], NAMED)
        pictures = tuple(each.picture for each in repeats)
        count = counted(len(repeats), "picture")
        if label == first_label:
            text = f"remove {count} of {label} that {_repeats(repeats)} another one"
            yield _action(THIN_OUT, label, text, f": {named}", pictures)
        else:
            text = f"keep {count} in {label} or in {first_label}, not in both"
            yield _action(SEPARATE, label, text, f": {named}", pictures)


def for_flawed(found: Iterable[Flawed]) -> Iterator[Action]:
    for each in found:
        count = len(each.pictures)
        verb = "remove or replace" if each.flaw == UNREADABLE else "replace"
        advice = (
            f" with {'one' if count == 1 else 'ones'} in more light" if each.flaw == DARK else ""
        )
        text = f"{verb} {counted(count, f'{each.flaw} picture')} of {each.label}{advice}"
        names = f": {first_few(each.pictures, NAMED)}"
        yield _action(REPLACE, each.label, text, names, each.pictures)


def _action(
    kind: str, label: str, summary: str, names: str = "", pictures: tuple[str, ...] = ()
) -> Action:
    return Action(kind, label, f"{summary}{names}", pictures, summary)


def _repeats(repeats: Sequence[Repeat]) -> str:
    return "repeats" if len(repeats) == 1 else "repeat"
