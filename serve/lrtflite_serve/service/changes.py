"""Changes of the state other than lessons: each takes its turn, and every page hears of it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from lrtflite import SessionReport
from lrtflite.errors import Busy, LrtfliteError, NotOffered
from lrtflite.labels import Label
from lrtflite_serve.service.disk import disk_errors
from lrtflite_serve.service.pixels import Frame, as_png, frame_of_picture
from lrtflite_serve.service.recording import Place, quoted
from lrtflite_serve.service.service import Service

# Frames from which it is estimated what a class is confused with.
SEVERAL = 16
_log = logging.getLogger("lrtflite")


def rename(service: Service, slot: int, label: str) -> dict[str, Any]:
    """Give a class another label; return the classes."""
    with service.turns.change(f"rename class {slot}"), disk_errors("rename"):
        old = service.label_of(slot)
        service.learner.rename(new=label, slot=slot)
        new = str(service.learner.labels[slot])
        service.thumbnails.rename(old, new)
        if service.album is not None:
            _follow(service.album.settle)
        return service.changed(f"renamed {old} to {new}")


def forget(service: Service, slot: int) -> dict[str, Any]:
    """Unlearn a class; return the classes."""
    with service.turns.change(f"forget class {slot}"), disk_errors("forget"):
        old, album = service.label_of(slot), service.album
        service.learner.forget(slot=slot)
        service.thumbnails.rename(old, None)
        if album is not None:
            _follow(lambda: album.forget(slot))
        return service.changed(f"forgot {quoted(old)}")


def undo(service: Service) -> dict[str, Any]:
    """Take the last change back; return the classes."""
    with service.turns.change("undo"), disk_errors("undo"):
        if not service.can_undo:
            raise Busy("Cannot undo: there is no change to take back", "make a change first")
        service.learner.undo()
        service.thumbnails.undo()
        if service.album is not None:
            _follow(service.album.undo)
        return service.changed(f"took back: {service.last_change or 'the last change'}")


def teach_tray(
    service: Service, ids: Sequence[str], label: Label | None, slot: int | None
) -> dict[str, Any]:
    """Teach a class the frames of the tray with these ids, and remove them from it."""
    frames = [each.frame for each in service.tray.find(ids)]
    with service.turns.change("teach from the tray"):
        place = Place.of(service.learner, label, slot)
        album = service.album
        kept = None if album is None else [as_png(frame) for frame in frames]
        result = _learn(service, place, frames, kept)
    with suppress(LrtfliteError):  # somebody else has removed one
        service.tray.remove(ids)
    service.events.publish("tray", {"count": len(service.tray)})
    return result


def relearn(service: Service, slot: int) -> dict[str, Any]:
    """Forget a class and learn it again from its kept pictures, in one commit."""
    album = service.kept()
    with service.turns.change(f"learn class {slot} again"):
        learner, label, ids = service.learner, service.label_of(slot), album.ids(slot)
        if not ids:
            raise NotOffered(
                f"Expected kept pictures of {label}, got none", "teach it with new frames"
            )
        # Decoded one by one: a class may have more pictures than there is RAM.
        frames = (frame_of_picture(album.content(each), service.size) for each in ids)
        place = Place(label, slot, new=False, by_slot=True)

        def learn(frames: Iterator[Frame]) -> SessionReport:
            return learner.relearn(frames, slot=slot)

        result = _learned(service, place, frames, None, learn)
        album.settle()
        return result


def remove_picture(service: Service, picture: str) -> dict[str, Any]:
    """Delete a kept picture; what was learned from it stays learned."""
    with service.turns.change("delete a picture"), disk_errors("delete a picture"):
        service.kept().delete(picture)
    return service.tell_classes()


def move_picture(service: Service, picture: str, slot: int) -> dict[str, Any]:
    """Move a kept picture to another class; `relearn` learns from it there."""
    with service.turns.change("move a picture"), disk_errors("move a picture"):
        service.label_of(slot)  # raises Missing for a free slot
        service.kept().move(picture, slot)
    return service.tell_classes()


def _learn(
    service: Service, place: Place, frames: Iterable[Frame], kept: Sequence[bytes] | None
) -> dict[str, Any]:
    label, slot = place.target

    def learn(frames: Iterator[Frame]) -> SessionReport:
        return service.learner.learn(frames, label, slot=slot, background=place.background)

    return _learned(service, place, frames, kept, learn)


def _learned(
    service: Service,
    place: Place,
    frames: Iterable[Frame],
    kept: Sequence[bytes] | None,
    learn: Callable[[Iterator[Frame]], SessionReport],
) -> dict[str, Any]:
    """Let `learn` take the frames, and return the result."""
    started = time.perf_counter()
    few: list[Frame] = []

    def noting() -> Iterator[Frame]:
        for frame in frames:
            if len(few) < SEVERAL:
                few.append(frame)
            yield frame

    with disk_errors(f"learn {place.label}"):
        report = learn(noting())
    latents = service.learner.extract(np.stack(few))
    return service.learned(place, report, few[len(few) // 2], list(latents), kept, started)


def _follow(change: Callable[[], None]) -> None:
    """Let the pictures follow a change that was made already; a full disk does not revert it."""
    try:
        change()
    except (OSError, LrtfliteError) as error:
        _log.warning("Kept pictures do not follow the last change: %s", error)
