"""The device learner: a bundle, a state, and sessions that change one into the next."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Union

import numpy as np
from numpy.typing import NDArray

from lrtflite.bundle import Bundle
from lrtflite.checkpoint import Checkpoint, State
from lrtflite.errors import BundleError, InputError, LrtfliteError, StateError
from lrtflite.extraction import extract_while_arriving
from lrtflite.frames import check_frame, check_frames
from lrtflite.head_training import train_head
from lrtflite.latents import check_latents
from lrtflite.manifest import Training
from lrtflite.memory import ReplayMemory
from lrtflite.minibatch import Latents
from lrtflite.model_state import restore_models, save_models
from lrtflite.moments import adapt_moments
from lrtflite.prediction import Prediction, top_predictions
from lrtflite.runtime import Model
from lrtflite.session import OnProgress, Session, SessionReport
from lrtflite.slots import Label, Slots
from lrtflite.verify import check_signatures

Labels = Union[Label, Sequence[Label]]
# The head's tensors that have a row per class slot: consolidated weights and pattern counts.
CLASS_TENSORS = ("cw", "past")
# Read from a state into the memory itself: at some replay layers it is hundreds of megabytes.
MEMORY_LATENTS = "memory/latents"
# Of latents in one call of `infer`.
AT_ONCE_BYTES = 1 << 20


class Learner:
    """Predicts, learns and remembers; see `Learner.open`.

    The head is held twice: `_serving` has the consolidated weights and answers `predict` at any
    time, `_training` is where a session works. So are features whose moments move: `_features`
    extracts, `_adapting` moves; where moments are frozen, both are one. INVARIANT: outside a
    session each pair holds the state that is committed.
    """

    def __init__(
        self,
        bundle: Bundle,
        checkpoint: Checkpoint | None,
        *,
        runtime: str,
        threads: int,
        replay_size: int,
        policy: str,
        seed: int,
    ) -> None:
        self.bundle = bundle
        self.memory = ReplayMemory(
            replay_size,
            bundle.manifest.latent_shape,
            dtype=bundle.manifest.latent_dtype,
            policy=policy,
        )
        self.sessions = 0
        self._checkpoint = checkpoint
        self._features = Model(bundle.features, runtime=runtime, threads=threads)
        self._serving = Model(bundle.head, runtime=runtime, threads=threads)
        for check in check_signatures(bundle.manifest, self._features, self._serving):
            if not check.passed:
                raise BundleError(
                    f"The manifest of {bundle.path} does not fit its models: {check.seen}; "
                    "convert the bundle again"
                )
        self._training = Model(bundle.head, runtime=runtime, threads=threads)
        self._adapting = self._features
        if bundle.manifest.adapt_moments:
            self._adapting = Model(bundle.features, runtime=runtime, threads=threads)
        self._slots = Slots(bundle.manifest.labels)
        if seed < 0:
            raise InputError(f"Expected a seed of at least 0, got {seed}")
        self._rng = np.random.Generator(np.random.PCG64(seed))
        self._busy = threading.Lock()
        self._closed = False
        self._commits = 0
        # While RAM and disk may hold different states; what is on disk counts then.
        self._out_of_step = False
        self.runtime = self._features.runtime
        self.threads = threads

    @classmethod
    def open(
        cls,
        bundle: str | Path | Bundle,
        state: str | Path | None = None,
        *,
        runtime: str = "auto",
        threads: int = 1,
        replay_size: int | None = None,
        policy: str | None = None,
        seed: int = 0,
    ) -> Learner:
        """Open a bundle, and the state folder that its sessions are committed to.

        Without `state` the learner lives in memory only. A state that is there already is
        restored, with its random generator, so `seed` counts for a new one. `replay_size` and
        `policy` default to the state's own, and in a new one to the bundle's.
        """
        bundle = bundle if isinstance(bundle, Bundle) else Bundle.open(bundle)
        checkpoint = None if state is None else Checkpoint(state)
        try:
            found = None if checkpoint is None else checkpoint.load(later=(MEMORY_LATENTS,))
            usual = vars(bundle.manifest) if found is None else found.meta
            learner = cls(
                bundle,
                checkpoint,
                runtime=runtime,
                threads=threads,
                replay_size=usual["replay_size"] if replay_size is None else replay_size,
                policy=policy or usual["policy"],
                seed=seed,
            )
            if found is not None:
                learner._restore(found)
            elif checkpoint is not None:
                checkpoint.commit(learner._state())
            return learner
        except BaseException:
            if checkpoint is not None:
                checkpoint.close()
            raise

    @property
    def labels(self) -> tuple[str | None, ...]:
        """The label of each slot; None where it is free."""
        return self._slots.labels

    @property
    def learned(self) -> tuple[str, ...]:
        """The labels that have learned something: those that `predict` can answer."""
        past = self._serving.run("save")["past"]
        return tuple(label for label, count in zip(self.labels, past) if label and count > 0)

    def extract(self, frames: NDArray[np.uint8]) -> NDArray[Any]:
        """Latents (n, ...) of one frame (H, W, 3) or several (n, H, W, 3), uint8 RGB."""
        manifest = self.bundle.manifest
        frames = check_frames(frames, manifest.input_size)
        latents = np.empty((len(frames), *manifest.latent_shape), manifest.latent_dtype)
        for row, frame in enumerate(frames):
            latents[row] = self._extract_one(frame)
        return latents

    def probabilities(self, latents: NDArray[Any]) -> NDArray[np.float32]:
        """(n, slots) float32, from the consolidated weights; 0 for slots never learned."""
        checked = self._check_latents(latents)
        # A few at a time: the trunk's arrays are many times as large as the latents.
        few = max(1, AT_ONCE_BYTES // self.bundle.manifest.latent_bytes)
        return np.concatenate(
            [
                self._serving.run("infer", latents=checked[start : start + few])["probabilities"]
                for start in range(0, len(checked), few)
            ]
        )

    def predict(self, frames: NDArray[np.uint8], *, top: int = 3) -> list[list[Prediction]]:
        """The `top` labels for each frame, the likeliest first; fewer while few are learned."""
        return self.predict_latents(self.extract(frames), top=top)

    def predict_latents(self, latents: NDArray[Any], *, top: int = 3) -> list[list[Prediction]]:
        """`predict` for a client that has latents already."""
        labels = self.labels  # before a session that ends meanwhile gives a slot another one
        return top_predictions(self.probabilities(latents), labels, top=top)

    def learn(
        self,
        frames: Iterable[NDArray[np.uint8]],
        labels: Labels,
        *,
        training: Training | None = None,
        on_progress: OnProgress | None = None,
        cancel: threading.Event | None = None,
    ) -> SessionReport:
        """Run one learning session on frames of one label, or with one label per frame.

        `frames` may be an iterator that still records: extraction goes on meanwhile in a second
        thread. Until the session is committed, and for good if it is cancelled or fails, the
        learner is what it was before.
        """
        with self._session(on_progress, cancel) as session:
            if isinstance(frames, np.ndarray) and frames.ndim == 3:
                frames = frames[np.newaxis]
            if not isinstance(frames, Iterable):
                raise InputError(f"Expected frames or an iterator of them, got {frames!r}")
            total = len(frames) if isinstance(frames, (Sequence, np.ndarray)) else None
            manifest = self.bundle.manifest
            kept: list[NDArray[np.uint8]] = []

            def extract(frame: NDArray[np.uint8]) -> NDArray[Any]:
                if manifest.adapt_moments:
                    kept.append(frame)
                with session.clock("extract"):
                    return self._extract_one(frame)

            latents = extract_while_arriving(
                (check_frame(frame, manifest.input_size) for frame in frames),
                extract,
                on_frame=lambda count: session.report("extract", count, total),
            )
            return self._learn(session, latents, labels, training, frames=kept)

    def learn_latents(
        self,
        latents: NDArray[Any],
        labels: Labels,
        *,
        training: Training | None = None,
        on_progress: OnProgress | None = None,
        cancel: threading.Event | None = None,
    ) -> SessionReport:
        """`learn` for a client that has latents already; without frames, no moments move."""
        with self._session(on_progress, cancel) as session:
            return self._learn(session, self._check_latents(latents), labels, training)

    def undo(self) -> None:
        """Return to the state before the last session (or rename, or forget)."""
        if self._checkpoint is None:
            raise StateError("Nothing to undo: this learner was opened without a state path")
        with self._exclusive():
            previous = self._checkpoint.previous(later=(MEMORY_LATENTS,))
            self._out_of_step = True
            self._restore(previous)
            self._checkpoint.drop_newest()
            self._out_of_step = False

    def rename(self, label: Label, new: str) -> None:
        """Give a class another name."""
        with self._exclusive():
            self._commit(slots=self._slots.rename(label, new))

    def forget(self, label: Label) -> None:
        """Unlearn a class: its weights, its patterns and its name; the slot is free again."""
        with self._exclusive():
            slot = self._slots.find(label)
            head = self._serving.run("save")
            for name in CLASS_TENSORS:
                head[name][slot] = 0
            self._training.run("restore", **head)
            self.memory.forget(slot)
            self._commit(slots=self._slots.free(slot))

    def close(self) -> None:
        """Let go of the state path. A closed learner still predicts, and learns no more.

        A session that is running is not committed; the path is let go when it ends.
        """
        self._closed = True
        self._close_if_idle()

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
        latent: NDArray[Any] = self._features.run("extract", frames=frame[np.newaxis])["latents"][0]
        return latent

    def _check_latents(self, latents: NDArray[Any]) -> NDArray[Any]:
        manifest = self.bundle.manifest
        return check_latents(latents, manifest.latent_shape, manifest.latent_dtype)

    def _learn(
        self,
        session: Session,
        latents: Latents,
        labels: Labels,
        training: Training | None,
        *,
        frames: Sequence[NDArray[np.uint8]] = (),
    ) -> SessionReport:
        """Train, adapt, remember and commit; `frames` are those to adapt the moments to."""
        started = session.now()
        if not len(latents):
            raise InputError("Expected at least one frame to learn from, got an empty session")
        placed, slots = self._slots.place_all(labels, len(latents))
        manifest = self.bundle.manifest
        outcome = train_head(
            self._training,
            latents,
            placed,
            self.memory,
            manifest=manifest,
            training=training or manifest.training,
            rng=self._rng,
            session=session,
        )
        adapt_moments(
            self._adapting,
            frames,
            group=manifest.new_per_batch,
            training=outcome.training,
            session=session,
        )
        number = self.sessions + 1
        with session.clock("memory"):
            self.memory.update(latents, placed, session=number, rng=self._rng)
        with session.clock("checkpoint"):
            self._commit(slots=slots, sessions=number)
        session.report("checkpoint", 1, 1)
        return SessionReport(
            session=number,
            frames=len(latents),
            labels=tuple(str(slots.labels[slot]) for slot in np.unique(placed)),
            steps=outcome.steps,
            loss=outcome.loss,
            accuracy=outcome.accuracy,
            replay_patterns=len(self.memory),
            ready_to_committed_ms=session.since(started),
            timings=session.timings,
        )

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        """Let one change at a time in; whatever ends it early, the state is the one before."""
        if self._closed:
            raise StateError("This learner is closed; open the bundle and its state again")
        if not self._busy.acquire(blocking=False):
            raise LrtfliteError("A session is running already; wait for it, or cancel it")
        try:
            self._fall_in_step()
            rng = self._rng.bit_generator.state
            commits = self._commits
            try:
                yield
            except BaseException:
                if self._commits == commits:
                    self._rng.bit_generator.state = rng
                    self._roll_back()
                raise
        finally:
            self._busy.release()
            self._close_if_idle()

    def _close_if_idle(self) -> None:
        """Whichever comes last, `close` or the end of a session, lets the state path go."""
        if self._closed and self._checkpoint is not None and self._busy.acquire(blocking=False):
            self._checkpoint.close()
            self._busy.release()

    @contextmanager
    def _session(
        self, on_progress: OnProgress | None, cancel: threading.Event | None
    ) -> Iterator[Session]:
        with self._exclusive():
            yield Session(on_progress, cancel)

    def _commit(self, *, slots: Slots, sessions: int | None = None) -> None:
        """Make what `_training`, `_adapting` and the memory hold the state, on disk first."""
        sessions = self.sessions if sessions is None else sessions
        models = save_models(self._training, self._adapting)
        if self._closed:
            raise StateError("This learner was closed meanwhile; the change is not committed")
        if self._checkpoint is not None:
            self._out_of_step = True
            self._checkpoint.commit(self._state(models, slots=slots, sessions=sessions))
        restore_models(models, self._serving, self._features)
        self._slots, self.sessions = slots, sessions
        self.memory.settle()
        self._commits += 1
        self._out_of_step = False

    def _roll_back(self) -> None:
        restore_models(save_models(self._serving, self._features), self._training, self._adapting)
        self.memory.revert()
        self._fall_in_step()

    def _fall_in_step(self) -> None:
        """Become what is on disk, should that be another state."""
        if self._out_of_step and self._checkpoint is not None:
            committed = self._checkpoint.load(later=(MEMORY_LATENTS,))
            if committed is not None:
                self._restore(committed)
            self._out_of_step = False

    def _state(
        self,
        models: dict[str, NDArray[Any]] | None = None,
        *,
        slots: Slots | None = None,
        sessions: int | None = None,
    ) -> State:
        return State(
            arrays={
                **(models or save_models(self._serving, self._features)),
                MEMORY_LATENTS: self.memory.latents,
                "memory/labels": self.memory.labels,
            },
            meta={
                "bundle": self.bundle.identity,
                "replay_layer": self.bundle.manifest.replay_layer,
                "replay_size": self.memory.capacity,
                "policy": self.memory.policy,
                "labels": list((slots or self._slots).labels),
                "sessions": self.sessions if sessions is None else sessions,
                "rng": self._rng.bit_generator.state,
            },
        )

    def _restore(self, state: State) -> None:
        """Become what a state is; its `MEMORY_LATENTS` are still in its file."""
        if state.meta["bundle"] != self.bundle.identity:
            layer, other = self.bundle.manifest.replay_layer, state.meta["replay_layer"]
            what = "from other weights or another conversion" if layer == other else other
            raise StateError(
                f"Expected a state of the bundle {self.bundle.path} ({layer}), got one of another "
                f"bundle ({what}); open its own bundle, or a new state path"
            )
        self.memory.load(
            state.arrays["memory/labels"], lambda out: state.read_into(MEMORY_LATENTS, out)
        )
        restore_models(state.arrays, self._serving, self._features)
        restore_models(state.arrays, self._training, self._adapting)
        self._slots = Slots(tuple(state.meta["labels"]))
        self.sessions = int(state.meta["sessions"])
        self._rng.bit_generator.state = state.meta["rng"]
