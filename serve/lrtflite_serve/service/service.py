"""A learner that pages and programs share: answers, lessons, changes, pictures, events."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrtflite import Learner, SessionReport, __version__
from lrtflite.errors import CameraError, LrtfliteError, Missing, NotOffered
from lrtflite.labels import Label
from lrtflite_serve.service.album import Album
from lrtflite_serve.service.answers import answer_json, confused_with, familiarity_of
from lrtflite_serve.service.device import DeviceCamera
from lrtflite_serve.service.events import Events
from lrtflite_serve.service.lessons import Lessons
from lrtflite_serve.service.pixels import Frame, as_png, frame_of_picture
from lrtflite_serve.service.recording import LEARNED, Place, Recording
from lrtflite_serve.service.streams import Streams, settled_json
from lrtflite_serve.service.thumbnails import Thumbnails
from lrtflite_serve.service.transfers import (
    can_export_model,
    disk_errors,
    pack_bundle,
    pack_model,
    pack_state,
)
from lrtflite_serve.service.tray import Tray
from lrtflite_serve.service.turns import Turns
from lrtflite_serve.settings import Settings

# Name of the stream of the device's camera.
DEVICE = "the device's camera"
# Frames that a stream needs before its answers may fill the tray.
SETTLING = 3


class Service:
    """One learner with everything around it; its methods may be called from any thread."""

    def __init__(
        self, learner: Learner, settings: Settings, camera: DeviceCamera | None = None
    ) -> None:
        self.learner, self.settings = learner, settings
        self.size = learner.bundle.manifest.input_size
        self.events, self.turns, self.tray = Events(), Turns(), Tray()
        self.streams, self.thumbnails = Streams(), Thumbnails()
        self.pictures: Album | None = None
        self.open_pictures()
        self.lessons = Lessons(self.turns, self._complete, self._lesson_changed)
        self.last_change: str | None = None
        self.camera = camera
        if camera is not None:
            camera.start(self.size, answer=self._answer_camera, publish=self.events.publish)

    def about(self, *, token_required: bool, secure: bool) -> dict[str, Any]:
        """Return the facts that a client needs first."""
        manifest, settings = self.learner.bundle.manifest, self.settings
        own = self.learner.unknown
        unknown = manifest.unknown if own is None else own
        return {
            "name": "lrtflite",
            "version": __version__,
            "bundle": {
                "id": self.learner.bundle.identity,
                "strategy": manifest.strategy,
                "network": manifest.network,
                "input_size": manifest.input_size,
                "slots": manifest.slots,
            },
            "state": str(settings.state),
            "device": settings.options.device,
            "reports_familiarity": self.learner.reports_familiarity,
            "unknown": unknown,
            "teach": {"seconds": settings.seconds, "fps": settings.fps},
            "camera": settings.camera,
            "keep_pictures": self.pictures is not None,
            "can_export_model": can_export_model(),
            "token_required": token_required,
            "secure": secure,
            "notes": list(settings.notes),
        }

    def classes(self) -> dict[str, Any]:
        """Return the classes of the learner and what can be done with them."""
        learner = self.learner
        labels, learned, patterns = learner.labels, set(learner.learned), learner.patterns
        return {
            "sessions": learner.sessions,
            "slots": len(labels),
            "free": labels.count(None),
            "can_undo": learner.can_undo,
            "last_change": self.last_change,
            "classes": [
                {
                    "slot": slot,
                    "label": label,
                    "pictures": patterns.get(label, 0),
                    "learned": label in learned,
                    "thumbnail": self.thumbnails.version(label),
                    "kept": self.pictures.count(slot) if self.pictures else 0,
                }
                for slot, label in enumerate(labels)
                if label is not None
            ],
        }

    def predict(self, frame: Frame, *, stream: str | None, top: int) -> dict[str, Any]:
        """Return the answers for a frame; with a stream, also its settled answer."""
        started = time.perf_counter()
        learner = self.learner
        if not learner.learned:
            return answer_json([], None, started, nothing_learned=True)
        [guesses] = learner.predict(frame, top=max(top, 3))
        settled = None
        if stream is not None:
            found = self.streams.settle(stream, learner, guesses)
            settled = settled_json(found)
            if found.kind != "answer" and found.frames >= SETTLING:
                self._offer(frame, found.kind, guesses)
        return answer_json(guesses[:top], settled, started)

    def begin(self, label: Label | None, slot: int | None, *, device: bool = False) -> Recording:
        """Begin a lesson; raise Busy during another one, InputError for a name that cannot be."""
        # Before the turn, for a better error; and again with it, because a slot may be gone.
        name = Place.of(self.learner, label, slot).label
        keep = self.pictures is not None

        def make() -> Recording:
            place = Place.of(self.learner, label, slot)
            return Recording(self.learner, place, keep=keep, device=device)

        return self.lessons.begin(name, make)

    def teach(
        self, label: Label | None, slot: int | None, *, seconds: float | None, fps: float | None
    ) -> Recording:
        """Begin a lesson from the device's camera, which ends by itself."""
        camera = self.device_camera()
        if camera.problem is not None:
            raise CameraError(camera.problem, "check the camera and its cable")
        recording = self.begin(label, slot, device=True)
        settings = self.settings
        camera.teach(recording, seconds or settings.seconds, fps or settings.fps, self._taught)
        return recording

    def device_camera(self) -> DeviceCamera:
        if self.camera is None:
            raise CameraError(
                "Expected a camera of the device, got none", "start with `lrtflite serve --camera`"
            )
        return self.camera

    def rename(self, slot: int, label: str) -> dict[str, Any]:
        with self.turns.change(f"rename class {slot}"), disk_errors("rename"):
            old = self._label(slot)
            self.learner.rename(new=label, slot=slot)
            new = str(self.learner.labels[slot])
            self.thumbnails.rename(old, new)
            if self.pictures is not None:
                self.pictures.settle()
            return self._changed(f"renamed {old} to {new}")

    def forget(self, slot: int) -> dict[str, Any]:
        with self.turns.change(f"forget class {slot}"), disk_errors("forget"):
            old = self._label(slot)
            self.learner.forget(slot=slot)
            self.thumbnails.rename(old, None)
            if self.pictures is not None:
                self.pictures.forget(slot)
            return self._changed(f"forgot {old}")

    def undo(self) -> dict[str, Any]:
        with self.turns.change("undo"), disk_errors("undo"):
            self.learner.undo()
            self.thumbnails.undo()
            if self.pictures is not None:
                self.pictures.undo()
            return self._changed(f"took back: {self.last_change or 'the last change'}")

    def teach_tray(
        self, ids: Sequence[str], label: Label | None, slot: int | None
    ) -> dict[str, Any]:
        """Teach a class the frames of the tray with these ids."""
        waiting = self.tray.find(ids)
        with self.turns.change("teach from the tray"):
            result = self.learn([each.frame for each in waiting], label, slot)
        with suppress(LrtfliteError):
            self.tray.remove(ids)
        self.events.publish("tray", {"count": len(self.tray)})
        return result

    def learn(
        self, frames: Sequence[Frame], label: Label | None, slot: int | None, *, keep: bool = True
    ) -> dict[str, Any]:
        """Learn from frames within a turn of the caller; `keep` their pictures where asked for."""
        place = Place.of(self.learner, label, slot)
        latents: list[NDArray[Any]] = []
        started = time.perf_counter()
        with disk_errors(f"learn {place.label}"):
            report = self.learner.learn(frames, **place.target)
        latents.extend(self.learner.extract(np.stack(frames[:16])))
        kept = [as_png(frame) for frame in frames] if keep and self.pictures is not None else []
        return self._learned(place, report, frames[len(frames) // 2], latents, kept, started)

    def relearn(self, slot: int) -> dict[str, Any]:
        """Forget a class, then learn it again from its kept pictures."""
        pictures = self.kept()
        with self.turns.change(f"learn class {slot} again"):
            label = self._label(slot)
            ids = pictures.ids(slot)
            if not ids:
                raise NotOffered(
                    f"Expected kept pictures of {label}, got none", "teach it with new frames"
                )
            frames = [frame_of_picture(pictures.content(each), self.size) for each in ids]
            with disk_errors(f"learn {label} again"):
                self.learner.forget(slot=slot)
                try:
                    return self.learn(frames, label, None, keep=False)
                except BaseException:
                    self.learner.undo()
                    raise

    def kept(self) -> Album:
        """Return the kept pictures, or raise NotOffered."""
        if self.pictures is None:
            raise NotOffered(
                "This service keeps no pictures", "start with `lrtflite serve --keep-pictures`"
            )
        return self.pictures

    def open_pictures(self) -> None:
        """Open the kept pictures, and take the newest of each class as its thumbnail."""
        self.thumbnails.clear()
        if not self.settings.keep_pictures:
            return
        self.pictures = Album(self.settings.beside("pictures"))
        for slot, label in enumerate(self.learner.labels):
            ids = self.pictures.ids(slot)
            if label is not None and ids:
                with suppress(LrtfliteError, OSError, ValueError):
                    middle = self.pictures.content(ids[len(ids) // 2])
                    self.thumbnails.fill(label, frame_of_picture(middle, self.size))

    def remove_picture(self, picture: str) -> dict[str, Any]:
        with disk_errors("delete a picture"):
            self.kept().delete(picture)
        return self._tell_classes()

    def move_picture(self, picture: str, slot: int) -> dict[str, Any]:
        with disk_errors("move a picture"):
            self.label_of(slot)
            self.kept().move(picture, slot)
        return self._tell_classes()

    def export_state(self, out: Path) -> None:
        """Write the zip of the state."""
        with self.turns.change("download the state"):
            pack_state(Path(self.settings.state), out)

    def export_bundle(self, out: Path) -> None:
        """Write the zip of a bundle that ships the state."""
        with self.turns.change("download a bundle"):
            pack_bundle(self.learner, out)

    def export_model(self, out: Path, *, int8: bool) -> None:
        """Write the zip of a plain model."""
        if int8:
            self.kept()
            raise NotOffered("int8 models are not made here yet", "run `lrtflite export`")
        pack_model(self.learner, Path(self.settings.state), out, pictures=None)

    def diagnose(self) -> dict[str, Any]:
        raise NotOffered("This version has no diagnosis", "run `lrtflite evaluate`")

    def label_of(self, slot: int) -> str:
        """Return the label of a slot, or raise Missing."""
        return self._label(slot)

    def tick(self) -> None:
        """Do what is due now; called every second."""
        self.lessons.tick()

    def close(self) -> None:
        """Cancel a lesson, and release the camera and the state."""
        self.events.close()
        self.lessons.close()
        if self.camera is not None:
            self.camera.close()
        self.learner.close()

    def changed(self, what: str) -> dict[str, Any]:
        """Note a change by name, tell every page, and return the classes."""
        return self._changed(what)

    def _complete(self, recording: Recording) -> dict[str, Any]:
        """Learn from a recording; return the result."""
        started = time.perf_counter()
        with disk_errors(f"learn {recording.label}"):
            report = recording.run()
        assert recording.sample is not None
        place = Place(recording.label, recording.slot, recording.new, by_slot=False)
        return self._learned(
            place, report, recording.sample, recording.latents, recording.kept, started
        )

    def _learned(
        self,
        place: Place,
        report: SessionReport,
        sample: Frame,
        latents: Sequence[NDArray[Any]],
        kept: Sequence[bytes],
        started: float,
    ) -> dict[str, Any]:
        """Keep the pictures of a committed session, tell every page, and return the result."""
        notes = list(report.notes)
        self.thumbnails.set(place.label, sample)
        if self.pictures is not None:
            try:
                self.pictures.add(place.slot, kept, new=place.new)
            except LrtfliteError as error:
                notes.append(f"Learned, but not all pictures were kept. {error.problem}.")
        confused = confused_with(self.learner, np.array(latents), place.slot) if latents else []
        spent = 1e3 * (time.perf_counter() - started)
        return {
            "label": place.label,
            "slot": place.slot,
            "new": place.new,
            "frames": report.frames,
            "ms": round(report.ready_to_committed_ms, 2),
            "extra_ms": round(max(0.0, spent - report.ready_to_committed_ms), 2),
            "notes": notes,
            "confused": confused,
            "classes": self._changed(f"learned {place.label}"),
        }

    def _changed(self, what: str) -> dict[str, Any]:
        self.last_change = what
        self.streams.clear()
        return self._tell_classes()

    def _tell_classes(self) -> dict[str, Any]:
        found = self.classes()
        self.events.publish("classes", found)
        return found

    def _label(self, slot: int) -> str:
        labels = self.learner.labels
        label = labels[slot] if 0 <= slot < len(labels) else None
        if label is None:
            raise Missing(f"Expected the slot of a class, got {slot}", "load the classes again")
        return label

    def _lesson_changed(self, recording: Recording) -> None:
        found = recording.to_json()
        if recording.error is not None:
            found["error"] = str(recording.error)
        if recording.state == LEARNED and recording.result is not None:
            found["report"] = recording.result
        self.events.publish("lesson", found)

    def _taught(self, recording: Recording) -> None:
        """End a lesson of the device's camera, in a thread of its own."""

        def end() -> None:
            with suppress(LrtfliteError):  # every page has heard of it
                if recording.failure is not None:
                    self.lessons.cancel(recording.id, problem=recording.failure)
                else:
                    self.lessons.commit(recording.id)

        threading.Thread(target=end, name="lesson", daemon=True).start()

    def _answer_camera(self, frame: Frame) -> None:
        if self.events.has_listeners:
            self.events.publish("answer", self.predict(frame, stream=DEVICE, top=3))

    def _offer(self, frame: Frame, kind: str, guesses: Sequence[Any]) -> None:
        if self.lessons.current is not None:
            return
        label = next((guess.label for guess in guesses if guess.slot >= 0), None)
        if self.tray.offer(frame, kind, label, familiarity_of(guesses)):
            self.events.publish("tray", {"count": len(self.tray)})
