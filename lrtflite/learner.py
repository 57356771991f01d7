"""The device learner: a bundle, a state, and sessions that change one into the next."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrtflite.arguments import whole_number
from lrtflite.bundle import Bundle
from lrtflite.checkpoint import State
from lrtflite.committed_state import CommittedState
from lrtflite.destination import Destination
from lrtflite.errors import InputError
from lrtflite.extraction import extract_while_arriving
from lrtflite.frames import check_frame, check_frames, check_no_path
from lrtflite.history import History
from lrtflite.latents import check_latents
from lrtflite.learner_options import LearnerOptions
from lrtflite.model_state import save_models
from lrtflite.prediction import Answers, Prediction, top_predictions
from lrtflite.replay.memory import MEMORY_CODES, MEMORY_SLOTS
from lrtflite.run_session import run_session
from lrtflite.session import OnProgress, Phase, Session, SessionReport
from lrtflite.shipping import ship
from lrtflite.slots import Label, Labels, SlotNumbers
from lrtflite.training import Training

# Most bytes of latents passed to one `infer` call.
AT_ONCE_BYTES = 1 << 20
_log = logging.getLogger("lrtflite")


class Learner:
    """Predicts, learns and remembers; see `Learner.open`.

    `committed` is what it works on; a client of its own has no business there.
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
    ) -> Learner:
        """Open a bundle, and the state folder that its sessions are committed to.

        Without `state` the learner lives in memory only. A state that is there already is
        restored, with its random generator, so `seed` counts for a new one. `replay_size` and
        `policy` default to the state's own, and in a new one to the bundle's. A learner that is
        `read_only` predicts, from a folder that it may not write or that another learner holds.
        With `unknown=0.05`, what is less familiar than 95 % of the patterns taught for its class is
        answered as unknown. `threads` default to 1 at `pool6`; where a trunk trains, to the cores
        there are, up to 4.
        """
        options = LearnerOptions(
            runtime=runtime,
            threads=threads,
            replay_size=replay_size,
            policy=policy,
            seed=seed,
            read_only=read_only,
            unknown=unknown,
        )
        return cls.open_with(bundle, state, options)

    @classmethod
    def open_with(
        cls, bundle: str | Path | Bundle, state: str | Path | None, options: LearnerOptions
    ) -> Learner:
        """`open` for a caller that has its options as one value."""
        opened = bundle if isinstance(bundle, Bundle) else Bundle.open(bundle)
        learner = cls(CommittedState.open(opened, state, options))
        learner.unknown = options.unknown
        if options.unknown is not None and not learner.tells_familiarity:
            learner.close()
            raise InputError(
                "Expected a bundle whose head tells what is familiar, for unknown="
                f"{options.unknown:g}, got the strategy {opened.manifest.strategy!r}; convert with "
                "--strategy lda"
            )
        return learner

    @property
    def tells_familiarity(self) -> bool:
        """Return whether the head says how familiar a frame is."""
        return "familiarity" in self.committed.serving.signatures["infer"].outputs

    @property
    def training(self) -> Training:
        """How a session trains by default; `learn` takes a copy with some of it changed."""
        return self.bundle.manifest.training

    @property
    def sessions(self) -> int:
        """How many were committed."""
        return self.committed.history.sessions

    @property
    def labels(self) -> tuple[str | None, ...]:
        """The label of each slot; None where it is free."""
        return self.committed.slots.labels

    @property
    def learned(self) -> tuple[str, ...]:
        """The labels that have learned something: those that `predict` can answer."""
        return self.committed.learned_labels

    def extract(self, frames: NDArray[np.uint8]) -> NDArray[Any]:
        """Latents (n, ...) of one frame (H, W, 3) or several (n, H, W, 3), uint8 RGB."""
        manifest = self.bundle.manifest
        frames = check_frames(frames, manifest.input_size)
        latents = np.empty((len(frames), *manifest.latent_shape), manifest.latent_dtype)
        with self.committed.answering:
            for row, frame in enumerate(frames):
                latents[row] = self._extract_one(frame)
        return latents

    def answers(self, latents: NDArray[Any]) -> Answers:
        """Return probabilities and, from heads that tell, familiarity, of the committed state."""
        checked = self._check_latents(latents)
        # A few at a time: the trunk's arrays are many times as large as the latents.
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
        """(n, slots) float32, from the committed weights; 0 for slots never learned."""
        return self.answers(latents).probabilities

    def predict(self, frames: NDArray[np.uint8], *, top: int = 3) -> list[list[Prediction]]:
        """Return the `top` labels for each frame, the likeliest first; fewer while few are learned.

        Raise InputError while nothing is learned.
        """
        with self.committed.answering:
            return self.predict_latents(self.extract(frames), top=top)

    def predict_latents(self, latents: NDArray[Any], *, top: int = 3) -> list[list[Prediction]]:
        """`predict` for a client that has latents already."""
        top = whole_number("top", top, least=1)
        with self.committed.answering:
            if not self.learned:
                raise InputError(
                    "This learner has learned nothing yet; teach it a label with learn() first"
                )
            return top_predictions(
                self.answers(latents), self.labels, top=top, unknown=self.unknown
            )

    def learn(
        self,
        frames: Iterable[NDArray[np.uint8]],
        labels: Labels | None = None,
        *,
        slot: SlotNumbers | None = None,
        training: Training | None = None,
        on_progress: OnProgress | None = None,
        cancel: threading.Event | None = None,
    ) -> SessionReport:
        """Run one learning session on frames of one label, or with one label per frame.

        A label is a name, and 3 is the name "3"; to teach class slot 3, give `slot=3` instead.
        `frames` may be an iterator that still records: extraction goes on meanwhile in a second
        thread. Until the session is committed, and for good if it is cancelled or fails, the
        learner is what it was before.
        """
        with self._session(on_progress, cancel) as session:
            if isinstance(frames, np.ndarray) and frames.ndim == 3:
                frames = frames[np.newaxis]
            # First, so that a bad label is refused before the camera records.
            places = self.committed.slots.place_all(labels, slot=slot)
            check_no_path(frames)
            single = isinstance(frames, np.ndarray) and frames.ndim == 0
            if single or not isinstance(frames, Iterable):
                raise InputError(f"Expected frames or an iterator of them, got {frames!r}")
            total = len(frames) if isinstance(frames, (Sequence, np.ndarray)) else None
            manifest = self.bundle.manifest
            kept: list[NDArray[np.uint8]] = []

            def extract(frame: NDArray[np.uint8]) -> NDArray[Any]:
                if manifest.adapt_moments:
                    kept.append(frame)
                with session.clock(Phase.EXTRACT):
                    return self._extract_one(frame)

            latents = extract_while_arriving(
                (check_frame(frame, manifest.input_size) for frame in frames),
                extract,
                on_frame=lambda count: session.report(Phase.EXTRACT, count, total),
            )
            return run_session(self.committed, session, latents, places, training, frames=kept)

    def learn_latents(
        self,
        latents: NDArray[Any],
        labels: Labels | None = None,
        *,
        slot: SlotNumbers | None = None,
        training: Training | None = None,
        on_progress: OnProgress | None = None,
        cancel: threading.Event | None = None,
    ) -> SessionReport:
        """`learn` for a client that has latents already; without frames, no moments move."""
        with self._session(on_progress, cancel) as session:
            places = self.committed.slots.place_all(labels, slot=slot)
            checked = self._check_latents(latents)
            return run_session(self.committed, session, checked, places, training)

    def undo(self) -> None:
        """Return to the state before the last session (or rename, or forget)."""
        self.committed.undo()

    def rename(
        self, label: Label | None = None, new: Label | None = None, *, slot: int | None = None
    ) -> None:
        """Give the class of a label, or of a slot by its number, the name `new`."""
        committed = self.committed
        with committed.change():
            number = committed.slots.find(label, slot=slot)
            slots = committed.slots.rename(new=new, slot=number)
            old, name = committed.slots.labels[number], slots.labels[number]
            history = committed.history.renamed(old, name)
            tensors = save_models(committed.serving, committed.features)
            committed.commit(tensors, committed.learned, slots=slots, history=history)

    def forget(self, label: Label | None = None, *, slot: int | None = None) -> None:
        """Unlearn a class: its weights, its patterns and its name; the slot is free again."""
        committed = self.committed
        with committed.change():
            number = committed.slots.find(label, slot=slot)
            slots = committed.slots.free(number)
            mask = np.zeros(len(slots.labels), np.float32)
            mask[number] = 1
            learned = committed.working.run("forget", mask=mask)["learned"] > 0
            tensors = save_models(committed.working, committed.adapting)
            self.memory.forget(number)
            history = committed.history.renamed(committed.slots.labels[number], None)
            committed.commit(tensors, learned, slots=slots, history=history)

    def ship(self, out: str | Path | Destination, *, replace: bool = False) -> Bundle:
        """Write the bundle `out`, whose new learners start from all that this one knows."""
        # Written while no session may change the memory, so that no second copy of it is made.
        with self.committed.alone():
            return ship(self.bundle, self.committed.state(), out, replace_bundle=replace)

    def snapshot(self, *, history: History | None = None) -> State:
        """Return all that this learner is; `history` in place of its own sessions."""
        with self.committed.alone():
            state = self.committed.state()
            # The memory changes in place.
            for name in (MEMORY_CODES, MEMORY_SLOTS):
                state.arrays[name] = state.arrays[name].copy()
        if history is not None:
            state.meta.update(sessions=history.sessions, history=history.to_json())
        return state

    def close(self) -> None:
        """Let go of the state path. A closed learner still predicts, and learns no more.

        A session that is running is not committed; the path is let go when it ends.
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

    def _check_latents(self, latents: NDArray[Any]) -> NDArray[Any]:
        return check_latents(latents, self.bundle.manifest)

    @contextmanager
    def _session(
        self, on_progress: OnProgress | None, cancel: threading.Event | None
    ) -> Iterator[Session]:
        with self.committed.change():
            yield Session(on_progress, cancel)
