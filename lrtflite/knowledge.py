"""What a learner knows, as one thing: a change of it is committed whole, or it never was."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrtflite.bundle import Bundle
from lrtflite.checkpoint import Checkpoint, State
from lrtflite.errors import BundleError, InputError, LrtfliteError, StateError
from lrtflite.memory import ReplayMemory
from lrtflite.model_state import restore_models, save_models
from lrtflite.runtime import Model
from lrtflite.slots import Slots
from lrtflite.verify import check_signatures

# Read from a state into the memory itself: at some replay layers it is hundreds of megabytes.
MEMORY_LATENTS = "memory/latents"


class Knowledge:
    """Weights, moments, memory, labels and random generator, in RAM and, given a path, on disk.

    The head is held twice: `serving` has the consolidated weights and answers at any time,
    `training` is where a session works. So are features whose moments move: `features` extracts,
    `adapting` moves; where moments are frozen, both are one. INVARIANT: outside a change each pair
    holds the state that is committed.
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
        self.slots = Slots(bundle.manifest.labels)
        self.sessions = 0
        if seed < 0:
            raise InputError(f"Expected a seed of at least 0, got {seed}")
        self.rng = np.random.Generator(np.random.PCG64(seed))
        self.features = Model(bundle.features, runtime=runtime, threads=threads)
        self.serving = Model(bundle.head, runtime=runtime, threads=threads)
        for check in check_signatures(bundle.manifest, self.features, self.serving):
            if not check.passed:
                raise BundleError(
                    f"The manifest of {bundle.path} does not fit its models: {check.seen}; "
                    "convert the bundle again"
                )
        self.training = Model(bundle.head, runtime=runtime, threads=threads)
        self.adapting = self.features
        if bundle.manifest.adapt_moments:
            self.adapting = Model(bundle.features, runtime=runtime, threads=threads)
        # Held by whoever needs the weights and the labels of one state.
        self.answering = threading.Lock()
        self._checkpoint = checkpoint
        self._busy = threading.Lock()
        self._closed = False
        self._commits = 0
        # While RAM and disk may hold different states; what is on disk counts then.
        self._out_of_step = False

    @classmethod
    def open(
        cls,
        bundle: Bundle,
        path: str | Path | None,
        *,
        runtime: str,
        threads: int,
        replay_size: int | None,
        policy: str | None,
        seed: int,
    ) -> Knowledge:
        """What the state folder `path` holds, or what a new learner knows, committed there."""
        checkpoint = None if path is None else Checkpoint(path)
        try:
            found = None if checkpoint is None else checkpoint.load(later=(MEMORY_LATENTS,))
            usual = vars(bundle.manifest) if found is None else found.meta
            opened = cls(
                bundle,
                checkpoint,
                runtime=runtime,
                threads=threads,
                replay_size=usual["replay_size"] if replay_size is None else replay_size,
                policy=policy or usual["policy"],
                seed=seed,
            )
            if found is not None:
                opened._restore(found)
            elif checkpoint is not None:
                checkpoint.commit(opened.state())
            return opened
        except BaseException:
            if checkpoint is not None:
                checkpoint.close()
            raise

    @contextmanager
    def change(self) -> Iterator[None]:
        """Let one change at a time in; unless it is committed, all is as before."""
        if not self._busy.acquire(blocking=False):
            raise LrtfliteError("A session is running already; wait for it, or cancel it")
        try:
            # Not before: once it is idle, another thread may close it and let the path go.
            if self._closed:
                raise StateError("This learner is closed; open the bundle and its state again")
            self._fall_in_step()
            rng = self.rng.bit_generator.state
            commits = self._commits
            try:
                yield
            except BaseException:
                if self._commits == commits:
                    self.rng.bit_generator.state = rng
                    self._roll_back()
                raise
        finally:
            self._busy.release()
            self._close_if_idle()

    def commit(self, *, slots: Slots, sessions: int | None = None) -> None:
        """Make what `training`, `adapting` and the memory hold the state, on disk first."""
        sessions = self.sessions if sessions is None else sessions
        models = save_models(self.training, self.adapting)
        if self._closed:
            raise StateError("This learner was closed meanwhile; the change is not committed")
        if self._checkpoint is not None:
            self._out_of_step = True
            self._checkpoint.commit(self.state(models, slots=slots, sessions=sessions))
        with self.answering:
            restore_models(models, self.serving, self.features)
            self.slots, self.sessions = slots, sessions
        self.memory.settle()
        self._commits += 1
        self._out_of_step = False

    def undo(self) -> None:
        """Return to the state before the last commit."""
        if self._checkpoint is None:
            raise StateError("Nothing to undo: this learner was opened without a state path")
        with self.change():
            previous = self._checkpoint.previous(later=(MEMORY_LATENTS,))
            self._out_of_step = True
            self._restore(previous)
            self._checkpoint.drop_newest()
            self._out_of_step = False

    def close(self) -> None:
        """Let go of the state path; while something changes, when that ends, uncommitted."""
        self._closed = True
        self._close_if_idle()

    def state(
        self,
        models: dict[str, NDArray[Any]] | None = None,
        *,
        slots: Slots | None = None,
        sessions: int | None = None,
    ) -> State:
        """What is committed, but for what is given."""
        return State(
            arrays={
                **(models or save_models(self.serving, self.features)),
                MEMORY_LATENTS: self.memory.latents,
                "memory/labels": self.memory.labels,
            },
            meta={
                "bundle": self.bundle.identity,
                "replay_layer": self.bundle.manifest.replay_layer,
                "replay_size": self.memory.capacity,
                "policy": self.memory.policy,
                "labels": list((slots or self.slots).labels),
                "sessions": self.sessions if sessions is None else sessions,
                "rng": self.rng.bit_generator.state,
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
        with self.answering:
            restore_models(state.arrays, self.serving, self.features)
            self.slots = Slots(tuple(state.meta["labels"]))
        restore_models(state.arrays, self.training, self.adapting)
        self.sessions = int(state.meta["sessions"])
        self.rng.bit_generator.state = state.meta["rng"]

    def _roll_back(self) -> None:
        restore_models(save_models(self.serving, self.features), self.training, self.adapting)
        self.memory.revert()
        self._fall_in_step()

    def _fall_in_step(self) -> None:
        """Become what is on disk, should that be another state."""
        if self._out_of_step and self._checkpoint is not None:
            committed = self._checkpoint.load(later=(MEMORY_LATENTS,))
            if committed is not None:
                self._restore(committed)
            self._out_of_step = False

    def _close_if_idle(self) -> None:
        """Whichever comes last, `close` or the end of a change, lets the state path go."""
        if self._closed and self._checkpoint is not None and self._busy.acquire(blocking=False):
            self._checkpoint.close()
            self._busy.release()
