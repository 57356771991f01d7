"""The device learner: a bundle, a state, and sessions that change one into the next."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrtflite.answers.prediction import Answers, Prediction, top_predictions
from lrtflite.arguments import whole_number
from lrtflite.bundle.bundle import Bundle
from lrtflite.bundle.destination import Destination
from lrtflite.bundle.training import Training
from lrtflite.errors import InputError
from lrtflite.frames.checks import check_frames
from lrtflite.frames.dull import DullFrames
from lrtflite.labels import Label
from lrtflite.opening import open_committed, opened_bundle
from lrtflite.options import LearnerOptions
from lrtflite.progress import OnProgress
from lrtflite.session.class_changes import forget_class, rename_class
from lrtflite.session.latents import check_latents
from lrtflite.session.recording import record
from lrtflite.session.run import diagnosed_session, run_again, with_notes
from lrtflite.session.session import Session, SessionReport
from lrtflite.state.committed import CommittedState
from lrtflite.state.history import History
from lrtflite.state.reading import State
from lrtflite.state.shipping import ship
from lrtflite.state.slots import Labels, SlotNumbers, Slots

# Maximum size of the latents passed to one `infer` call, in bytes.
AT_ONCE_BYTES = 1 << 20
_log = logging.getLogger("lrtflite")


class Learner:
    """A learner that predicts, learns and remembers; see `Learner.open`.

    `committed` is internal to this package; clients must not use it.
    """

    def __init__(self, committed: CommittedState) -> None:
        self.bundle = committed.bundle
        self.memory = committed.memory
        self.runtime = committed.features.runtime
        self.committed = committed
        # Familiarity below which a frame is answered as unknown; None answers everything.
        self.unknown: float | None = None

    @classmethod
    def open(
        cls,
        bundle: str | Path | Bundle,
        state: str | Path | None = None,
        *,
        runtime: str = "auto",
        threads: int | None = None,
        replay_size: int | None = None,
        policy: str | None = None,
        seed: int = 0,
        read_only: bool = False,
        unknown: float | None = None,
        require_signature: str | Path | None = None,
        device: str | None = None,
    ) -> Learner:
        """Open a bundle, and the state folder to commit its sessions to.

        Without `state` the learner lives in RAM only. An existing state is restored together with
        its random generator, so `seed` only affects a new one. `replay_size` and `policy` default
        to those of the state, or of the bundle in a new state. A `read_only` learner only predicts;
        its folder may be write-protected, or in use by another learner. A frame that is less
        familiar than `unknown` is answered as unknown; the manifest's `unknown` is the default
        threshold of the bundle. `require_signature` is the file of a public key that must have
        signed the bundle. `threads` defaults to 1 at `pool6`; for a bundle that trains a trunk, to
        the number of cores, up to 4. `device` is a name for this device, which the state keeps with
        each session; it defaults to that of the state.
        """
        options = LearnerOptions(
            runtime=runtime,
            threads=threads,
            replay_size=replay_size,
            policy=policy,
            seed=seed,
            read_only=read_only,
            unknown=unknown,
            require_signature=None if require_signature is None else str(require_signature),
            device=device,
        )
        return cls.open_with(bundle, state, options)

    @classmethod
    def open_with(
        cls, bundle: str | Path | Bundle, state: str | Path | None, options: LearnerOptions
    ) -> Learner:
        """Like `open`, but with all options in one value."""
        opened = opened_bundle(bundle, options.require_signature)
        learner = cls(open_committed(opened, state, options))
        learner.unknown = options.unknown
        if options.unknown is not None and not learner.reports_familiarity:
            learner.close()
            raise InputError(
                "Expected a bundle whose head reports familiarity, for unknown="
                f"{options.unknown:g}, got the strategy {opened.manifest.strategy!r}",
                "convert with --strategy lda",
            )
        return learner

    @property
    def reports_familiarity(self) -> bool:
        """Return whether the head reports how familiar a frame is."""
        return "familiarity" in self.committed.serving.signatures["infer"].outputs

    @property
    def training(self) -> Training:
        """Return the default training of a session; pass a changed copy to `learn`."""
        return self.bundle.manifest.training

    @property
    def sessions(self) -> int:
        """Return the number of committed sessions."""
        return self.committed.history.sessions

    @property
    def labels(self) -> tuple[str | None, ...]:
        """Return the label of each slot; None for a free one."""
        return self.committed.slots.labels

    @property
    def learned(self) -> tuple[str, ...]:
        """Return the labels that `predict` can answer with."""
        return self.committed.learned_labels

    @property
    def background(self) -> int | None:
        """Return the slot of the background, whose frames are unknown; None if there is none."""
        return self.committed.slots.background

    @property
    def patterns(self) -> dict[str, int]:
        """Return the number of patterns that each label was taught with."""
        return self.committed.history.patterns

    @property
    def can_undo(self) -> bool:
        """Return whether `undo` has a change to take back."""
        return self.committed.can_undo

    def extract(self, frames: NDArray[np.uint8]) -> NDArray[Any]:
        """Return latents (n, ...) of one frame (H, W, 3) or several (n, H, W, 3), uint8 RGB."""
        manifest = self.bundle.manifest
        frames = check_frames(frames, manifest.input_size)
        latents = np.empty((len(frames), *manifest.latent_shape), manifest.latent_dtype)
        with self.committed.answering:
            for row, frame in enumerate(frames):
                latents[row] = self._extract_one(frame)
        return latents

    def answers(self, latents: NDArray[Any]) -> Answers:
        """Return probabilities from the committed state, and familiarity if the head reports it."""
        checked = self._check_latents(latents)
        # Pass a few at a time, because the trunk's arrays are many times larger than the latents.
        few = max(1, AT_ONCE_BYTES // self.bundle.manifest.latent_bytes)
        parts = [checked[start : start + few] for start in range(0, len(checked), few)]
        with self.committed.answering:
            run, dtype = self.committed.serving.run, self.bundle.manifest.train_dtype
            found = [run("infer", latents=part.astype(dtype, copy=False)) for part in parts]
        tells = "familiarity" in found[0]
        return Answers(
            np.concatenate([part["probabilities"] for part in found]),
            np.concatenate([part["familiarity"] for part in found]) if tells else None,
        )

    def probabilities(self, latents: NDArray[Any]) -> NDArray[np.float32]:
        """Return probabilities (n, slots) float32; 0 for slots that have not learned."""
        return self.answers(latents).probabilities

    def predict(self, frames: NDArray[np.uint8], *, top: int = 3) -> list[list[Prediction]]:
        """Return the `top` labels for each frame, most likely first; fewer if few are learned.

        Raise InputError if nothing is learned yet.
        """
        with self.committed.answering:
            return self.predict_latents(self.extract(frames), top=top)

    def predict_latents(self, latents: NDArray[Any], *, top: int = 3) -> list[list[Prediction]]:
        """Like `predict`, but from latents."""
        top = whole_number("top", top, least=1)
        with self.committed.answering:
            if not self.learned:
                raise InputError(
                    "This learner has learned nothing yet", "teach it a label with learn() first"
                )
            return top_predictions(
                self.answers(latents),
                self.labels,
                top=top,
                unknown=self.unknown,
                background=self.background,
            )

    def learn(
        self,
        frames: Iterable[NDArray[np.uint8]],
        labels: Labels | None = None,
        *,
        slot: SlotNumbers | None = None,
        background: bool = False,
        training: Training | None = None,
        diagnose: bool = False,
        on_progress: OnProgress | None = None,
        on_latent: Callable[[NDArray[Any]], None] | None = None,
        cancel: threading.Event | None = None,
    ) -> SessionReport:
        """Run one learning session on frames of one label, or with one label per frame.

        A label is a name, and 3 is the name "3"; to teach class slot 3, give `slot=3` instead. With
        `background`, the frames show nothing that should have a name: frames like them are answered
        as unknown.
        `frames` may be an iterator that is still recording; a second thread extracts meanwhile. The
        learner stays unchanged until the session is committed, and for good if the session is
        cancelled or fails. With `diagnose`, the report explains why answers may be wrong, which
        takes two passes over the replay memory and, if it lacks a class, about as long as the
        session again. `on_latent` gets each latent, read-only, in the thread that extracts; an
        error that it raises ends the session.
        """
        with self._session(on_progress, cancel) as session:
            # Check labels first, so that a bad one fails before the camera records.
            places = self._places(labels, slot, background)
            latents, kept, dull = self._record(frames, session, on_latent=on_latent)
            answer = self.probabilities if diagnose else None
            report = diagnosed_session(
                self.committed, session, latents, places, training, answer=answer, frames=kept
            )
            return with_notes(report, dull, *places)

    def learn_latents(
        self,
        latents: NDArray[Any],
        labels: Labels | None = None,
        *,
        slot: SlotNumbers | None = None,
        background: bool = False,
        training: Training | None = None,
        diagnose: bool = False,
        on_progress: OnProgress | None = None,
        cancel: threading.Event | None = None,
    ) -> SessionReport:
        """Like `learn`, but from latents; without frames, no moments adapt."""
        with self._session(on_progress, cancel) as session:
            places = self._places(labels, slot, background)
            checked = self._check_latents(latents)
            answer = self.probabilities if diagnose else None
            return diagnosed_session(
                self.committed, session, checked, places, training, answer=answer
            )

    def relearn(
        self,
        frames: Iterable[NDArray[np.uint8]],
        label: Label | None = None,
        *,
        slot: int | None = None,
        training: Training | None = None,
        on_progress: OnProgress | None = None,
        cancel: threading.Event | None = None,
    ) -> SessionReport:
        """Forget a class and learn it again from frames, in one commit; it keeps its slot.

        The learner never lacks the class: it stays unchanged until the session is committed, and
        for good if the session is cancelled or fails. `undo` takes back both.
        """
        with self._session(on_progress, cancel) as session:
            slots = self.committed.slots
            number = slots.find(label, slot=slot)
            slots.free(number)  # raises InputError for a slot without a class
            places = np.array(number, np.int32), slots
            latents, kept, dull = self._record(frames, session)
            report = run_again(self.committed, session, latents, places, training, frames=kept)
            return with_notes(report, dull, *places)

    def undo(self) -> None:
        """Return to the state before the last session (or rename, or forget)."""
        self.committed.undo()

    def reload(self) -> bool:
        """Adopt the newest state that another learner has committed; return whether there was one.

        This learner must have been opened with `read_only=True` and a state path. Answers come
        from the old state until the new one is complete, and after any failure.
        """
        return self.committed.reload()

    def rename(
        self, label: Label | None = None, new: Label | None = None, *, slot: int | None = None
    ) -> None:
        """Give a class, found by its label or slot number, the label `new`."""
        rename_class(self.committed, label, new, slot=slot)

    def forget(self, label: Label | None = None, *, slot: int | None = None) -> None:
        """Unlearn a class: remove its weights, patterns and label, and free its slot."""
        forget_class(self.committed, label, slot=slot)

    def ship(self, out: str | Path | Destination, *, replace: bool = False) -> Bundle:
        """Write the bundle `out`, whose new learners start from the state of this one."""
        with self.committed.alone():
            state = self.committed.state()
        return ship(self.bundle, state, out, replace_bundle=replace)

    def snapshot(self, *, history: History | None = None) -> State:
        """Return the state of this learner; `history` replaces its own."""
        with self.committed.alone():
            return self.committed.state(history=history)

    def close(self) -> None:
        """Release the state path. A closed learner still predicts, but no longer learns.

        A running session is not committed; the path is released when it ends.
        """
        self.committed.close()

    def __enter__(self) -> Learner:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _extract_one(self, frame: NDArray[np.uint8]) -> NDArray[Any]:
        extracted = self.committed.features.run("extract", frames=frame[np.newaxis])
        latent: NDArray[Any] = extracted["latents"][0]
        return latent

    def _record(
        self,
        frames: Iterable[NDArray[np.uint8]],
        session: Session,
        *,
        on_latent: Callable[[NDArray[Any]], None] | None = None,
    ) -> tuple[list[NDArray[Any]], list[NDArray[np.uint8]], DullFrames]:
        """Return the latents of all frames, the frames that moments adapt to, and the dull ones."""
        dull = DullFrames()
        latents, kept = record(
            frames,
            session,
            extract=dull.watching(self._extract_one),
            manifest=self.bundle.manifest,
            on_latent=on_latent,
        )
        return latents, kept, dull

    def _places(
        self, labels: Labels | None, slot: SlotNumbers | None, background: bool
    ) -> tuple[NDArray[np.int32], Slots]:
        """Return the slots to teach; see `Slots.place_all`."""
        if not background:
            return self.committed.slots.place_all(labels, slot=slot)
        if labels is not None or slot is not None:
            got = "a label" if slot is None else "a slot"
            raise InputError(f"Expected the background alone, got {got} too", "leave one out")
        return self.committed.slots.place_background()

    def _check_latents(self, latents: NDArray[Any]) -> NDArray[Any]:
        return check_latents(latents, self.bundle.manifest)

    @contextmanager
    def _session(
        self, on_progress: OnProgress | None, cancel: threading.Event | None
    ) -> Iterator[Session]:
        with self.committed.change():
            yield Session(on_progress, cancel)
