"""A learner that pages and programs share: answers, lessons, changes, pictures, events."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrtflite import Learner, SessionReport, __version__
from lrtflite.answers.consensus import FRAMES
from lrtflite.errors import CameraError, InputError, LrtfliteError, Missing, NotOffered
from lrtflite.labels import Label
from lrtflite_serve.service.album import Album
from lrtflite_serve.service.answers import answer_json, confused_with, familiarity_of
from lrtflite_serve.service.device import DeviceCamera
from lrtflite_serve.service.disk import disk_errors
from lrtflite_serve.service.events import Events
from lrtflite_serve.service.lessons import Lessons
from lrtflite_serve.service.pixels import Frame, frame_of_picture
from lrtflite_serve.service.recording import LEARNED, Place, Recording, quoted
from lrtflite_serve.service.streams import Streams, settled_json
from lrtflite_serve.service.thumbnails import Thumbnails
from lrtflite_serve.service.tray import Tray
from lrtflite_serve.service.turns import Turns
from lrtflite_serve.settings import MAX_FRAMES, Settings

# Name of the stream of the device's camera.
DEVICE = "the device's camera"


class Service:
    """One learner with everything around it; its methods may be called from any thread."""

    def __init__(
        self,
        learner: Learner,
        settings: Settings,
        camera: DeviceCamera | None = None,
        *,
        say: Callable[[str], None] = lambda line: None,
    ) -> None:
        # `say` gets a line for whoever started the service.
        self.learner, self.settings, self.say = learner, settings, say
        self.size = learner.bundle.manifest.input_size
        self.events, self.turns, self.tray = Events(), Turns(), Tray()
        self.streams, self.thumbnails = Streams(), Thumbnails()
        self.album: Album | None = None
        self.open_pictures()
        self.lessons = Lessons(self.turns, self._complete, self._lesson_changed)
        # The last change in words, and whether undo would take back all of it.
        self.last_change: str | None = None
        self.can_take_back = True
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
            "teach": {
                "seconds": settings.seconds,
                "fps": settings.fps,
                "max_frames": MAX_FRAMES,
            },
            "camera": settings.camera,
            "keep_pictures": self.album is not None,
            "can_export_model": find_spec("tensorflow") is not None,
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
            "can_undo": self.can_undo,
            "last_change": self.last_change,
            "classes": [
                {
                    "slot": slot,
                    "label": label,
                    "pictures": patterns.get(label, 0),
                    "learned": label in learned or slot == learner.background,
                    "background": slot == learner.background,
                    "thumbnail": self.thumbnails.version(label),
                    "kept": self.album.count(slot) if self.album else 0,
                }
                for slot, label in enumerate(labels)
                if label is not None
            ],
        }

    def predict(self, frame: Frame, *, stream: str | None, top: int) -> dict[str, Any]:
        """Return the answers for a frame; with a stream, also its settled answer."""
        started = time.perf_counter()
        learner = self.learner
        try:
            if not learner.learned:
                return answer_json([], None, started, nothing_learned=True)
            [guesses] = learner.predict(frame, top=max(top, 3))
        except InputError:
            if learner.learned:
                raise
            # The last class was forgotten just now.
            return answer_json([], None, started, nothing_learned=True)
        settled = None
        if stream is not None:
            found = self.streams.settle(stream, learner, guesses)
            settled = settled_json(found)
            is_open = found.kind != "answer" and not guesses[0].is_background
            if is_open and found.frames >= FRAMES:
                self._offer(frame, found.kind, guesses)
        return answer_json(guesses[:top], settled, started)

    def begin(self, label: Label | None, slot: int | None, *, device: bool = False) -> Recording:
        """Begin a lesson; raise Busy during another one, InputError for a name that cannot be."""
        # Before the turn, for a better error; and again with it, because a slot may be gone.
        name = Place.of(self.learner, label, slot).label
        keep = self.album is not None

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
        try:
            camera.teach(recording, seconds or settings.seconds, fps or settings.fps, self._taught)
        except CameraError as error:  # it was lost just now
            self.lessons.cancel(recording.id, problem=error)
            raise
        return recording

    def device_camera(self) -> DeviceCamera:
        if self.camera is None:
            raise CameraError(
                "Expected a camera of the device, got none", "start with `lrtflite serve --camera`"
            )
        return self.camera

    def kept(self) -> Album:
        """Return the kept pictures, or raise NotOffered."""
        if self.album is None:
            raise NotOffered(
                "This service keeps no pictures", "start with `lrtflite serve --keep-pictures`"
            )
        return self.album

    def open_pictures(self) -> None:
        """Open the kept pictures, and take one of each class as its thumbnail."""
        self.thumbnails.clear()
        if not self.settings.keep_pictures:
            return
        self.album = Album(self.settings.beside("pictures"))
        for slot, label in enumerate(self.learner.labels):
            ids = self.album.ids(slot)
            if label is not None and ids:
                with suppress(LrtfliteError, OSError, ValueError):
                    middle = self.album.content(ids[len(ids) // 2])
                    self.thumbnails.fill(label, frame_of_picture(middle, self.size))

    def diagnose(self) -> str:
        """Return what to improve, as JSON; from kept pictures where there are any."""
        from lrtflite.advice import diagnose, shown_kept

        shown = None
        with self.turns.change("diagnose"):
            if self.album is not None:
                shown = shown_kept(self.album.kept, self.learner.labels) or None
            return diagnose(self.learner, shown).to_json()

    def label_of(self, slot: int) -> str:
        """Return the label of a slot, or raise Missing."""
        labels = self.learner.labels
        label = labels[slot] if 0 <= slot < len(labels) else None
        if label is None:
            raise Missing(f"Expected the slot of a class, got {slot}", "load the classes again")
        return label

    def changed(self, what: str, *, can_take_back: bool = True) -> dict[str, Any]:
        """Note a change by name, tell every page, and return the classes."""
        self.last_change, self.can_take_back = what, can_take_back
        self.streams.clear()
        return self.tell_classes()

    def tell_classes(self) -> dict[str, Any]:
        """Tell every page the classes, and return them."""
        found = self.classes()
        self.events.publish("classes", found)
        return found

    @property
    def can_undo(self) -> bool:
        return self.can_take_back and self.learner.can_undo

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

    def _complete(self, recording: Recording) -> dict[str, Any]:
        """Learn from a recording; return the result."""
        started = time.perf_counter()
        with disk_errors(f"learn {recording.label}"):
            report = recording.run()
        assert recording.sample is not None
        place = Place(recording.label, recording.slot, recording.new, by_slot=False)
        return self.learned(
            place, report, recording.sample, recording.latents, recording.kept, started
        )

    def learned(
        self,
        place: Place,
        report: SessionReport,
        sample: Frame,
        latents: Sequence[NDArray[Any]],
        kept: Sequence[bytes] | None,
        started: float,
    ) -> dict[str, Any]:
        """Keep the pictures of a committed session, tell every page, and return the result."""
        notes = list(report.notes)
        self.thumbnails.set(place.label, sample)
        if self.album is not None and kept is not None:
            try:
                self.album.add(place.slot, kept, new=place.new)
            except (LrtfliteError, OSError) as error:
                why = getattr(error, "problem", None) or str(error)
                notes.append(f"Learned, but not all pictures were kept. {why}.")
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
            "classes": self.changed(f"learned {quoted(place.label)}"),
        }

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
