"""The committed state of a learner, in RAM and on disk; changes are all or nothing."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrtflite.bundle import Bundle
from lrtflite.checkpoint import Checkpoint
from lrtflite.contract import FEATURES, HEAD
from lrtflite.contract_checking import breaches
from lrtflite.errors import BundleError, LrtfliteError, StateError
from lrtflite.history import History
from lrtflite.initial_state import fit_memory, learned_labels, read_initial
from lrtflite.learner_options import LearnerOptions
from lrtflite.model_state import restore_models, save_models
from lrtflite.replay.memory import MEMORY_CODES, MEMORY_SLOTS, ReplayMemory
from lrtflite.runtime import Model
from lrtflite.slots import Slots
from lrtflite.state_file import State
from lrtflite.state_fit import check_fits

# Attempts to read a state folder while another learner commits there and removes generations.
READ_ATTEMPTS = 50


@dataclass(frozen=True)
class Commit:
    """A change on its way from the disk to `serving`.

    `tensors` holds the tensors of both models, `learned` (C,) is true for slots that have learned.
    """

    tensors: dict[str, NDArray[Any]]
    learned: NDArray[np.bool_]
    slots: Slots
    history: History


class Change:
    """A token that lives as long as the change that owns it."""


class CommittedState:
    """Weights, moments, memory, labels and random generator, in RAM and, given a path, on disk.

    The head is loaded twice: `serving` has the committed weights and answers at any time, `working`
    is trained by a session. Features whose moments adapt are loaded twice too: `features` extracts,
    `adapting` adapts. With frozen moments, both are the same model. INVARIANT: outside a change,
    both models of a pair hold the committed state.
    """

    def __init__(
        self, bundle: Bundle, checkpoint: Checkpoint | None, options: LearnerOptions
    ) -> None:
        """Begin with the values in the model files; `options` contains no None."""
        assert options.replay_size is not None
        assert options.policy is not None
        assert options.threads is not None
        manifest = bundle.manifest
        self.bundle, self.options = bundle, options
        self.memory = ReplayMemory(
            options.replay_size, manifest.latent_form, policy=options.policy, codec=manifest.codec
        )
        self.slots = Slots(manifest.labels)
        self.history = History()
        self.rng = np.random.Generator(np.random.PCG64(options.seed))
        running: dict[str, Any] = {"runtime": options.runtime, "threads": options.threads}
        self.features = Model(bundle.features, **running)
        self.serving = Model(bundle.head, **running)
        for name, model in ((FEATURES, self.features), (HEAD, self.serving)):
            if problems := breaches(manifest, name, model.signatures):
                raise BundleError(
                    f"The manifest of {bundle.path} does not fit its {name}: "
                    f"{'; '.join(problems)}; convert the bundle again"
                )
        self.working = Model(bundle.head, **running)
        self.adapting = self.features
        if manifest.adapt_moments:
            self.adapting = Model(bundle.features, **running)
        # Held by a caller that needs moments, weights and labels of the same state.
        self.answering = threading.RLock()
        tensors = save_models(self.serving, self.features)
        self.learned = restore_models(tensors, self.serving, self.features)
        self._checkpoint = checkpoint
        self._read_only = options.read_only
        self._guard = threading.Lock()
        # An interrupt can skip any cleanup, so a change counts as ended once its token is gone.
        self._change: weakref.ref[Change] | None = None
        self._closed = False
        # Generator before the current change, restored if the change is not committed.
        self._rng_before: Mapping[str, Any] | None = None
        # A change that is on disk, but not yet completely in RAM.
        self._made: Commit | None = None
        # True while RAM and disk may hold different states; the one on disk counts then.
        self._out_of_step = False

    @classmethod
    def open(
        cls, bundle: Bundle, path: str | Path | None, options: LearnerOptions
    ) -> CommittedState:
        """Open the state in the folder `path`, or commit the state of a new learner there."""
        checkpoint = None if path is None else Checkpoint(path, read_only=options.read_only)
        try:
            opened = None
            for attempt in range(1, READ_ATTEMPTS + 1):
                try:
                    found = None if checkpoint is None else checkpoint.load(later=(MEMORY_CODES,))
                    meta = None if found is None else found.meta
                    settled = options.settled(bundle.manifest, meta)
                    # Loading models takes longer than another learner's commit, so load them once.
                    if opened is None or settled != opened.options:
                        opened = cls(bundle, checkpoint, settled)
                    opened._begin(found)
                    return opened
                except StateError as error:
                    gone = isinstance(error.__cause__, FileNotFoundError)
                    if not (options.read_only and gone and attempt < READ_ATTEMPTS):
                        raise
            raise AssertionError("the last attempt returns or raises")
        except BaseException:
            if checkpoint is not None:
                checkpoint.close()
            raise

    @property
    def learned_labels(self) -> tuple[str, ...]:
        """Return the labels that the learner can answer with."""
        with self.answering:
            return learned_labels(self.slots.labels, self.learned)

    @contextmanager
    def change(self) -> Iterator[None]:
        """Allow one change at a time; undo it at the end of the block unless it was committed."""
        if self._read_only:
            raise StateError("This learner is read-only; open it without read_only to change it")
        with self.alone():
            # Checked here, because another thread can close an idle learner at any time.
            if self._closed:
                raise StateError("This learner is closed; open the bundle and its state again")
            yield

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep out every change except the caller's own."""
        mine = Change()
        try:
            with self._guard:
                if self._is_changing():
                    raise LrtfliteError("A session is running already; wait for it, or cancel it")
                self._change = weakref.ref(mine)
            self._settle()
            self._rng_before = self.rng.bit_generator.state
            yield
        finally:
            current = self._change
            if current is not None and current() is mine:
                try:
                    self._settle()
                finally:
                    with self._guard:
                        self._change = None
            self._close_if_idle()

    def commit(
        self,
        tensors: dict[str, NDArray[Any]],
        learned: NDArray[np.bool_],
        *,
        slots: Slots,
        history: History | None = None,
    ) -> None:
        """Commit these tensors and the memory, first on disk, then in RAM."""
        made = Commit(tensors, learned, slots, self.history if history is None else history)
        if self._closed:
            raise StateError("This learner was closed meanwhile; open its state and try again")
        if self._checkpoint is not None:
            self._out_of_step = True
            self._checkpoint.commit(self.state(made))
        self._made = made
        self._settle()

    def undo(self) -> None:
        """Return to the state before the last commit."""
        if self._checkpoint is None:
            raise StateError("Nothing to undo: opened without a state path; open with one")
        with self.change():
            previous = self._checkpoint.previous(later=(MEMORY_CODES,))
            self._out_of_step = True
            self._restore(previous)
            self._checkpoint.drop_newest()
            self._rng_before = None  # first: from here on the generator is the restored one
            self._out_of_step = False

    def close(self) -> None:
        """Release the state path; a running change ends first, and is not committed."""
        self._closed = True
        self._close_if_idle()

    def state(self, made: Commit | None = None) -> State:
        """Return the committed state, or the state that `made` leads to."""
        if made is None:
            tensors = save_models(self.serving, self.features)
            made = Commit(tensors, self.learned, self.slots, self.history)
        return State(
            arrays={
                **made.tensors,
                MEMORY_CODES: self.memory.codes,
                MEMORY_SLOTS: self.memory.slots,
            },
            meta={
                "bundle": self.bundle.identity,
                "replay_layer": self.bundle.manifest.replay_layer,
                "replay_size": self.memory.capacity,
                "policy": self.memory.policy,
                "codec": self.memory.codec,
                "counter": self.memory.counter,
                "labels": list(made.slots.labels),
                "learned": made.learned.tolist(),
                "sessions": made.history.sessions,
                "history": made.history.to_json(),
                "rng": self.rng.bit_generator.state,
            },
        )

    def _begin(self, found: State | None) -> None:
        """Begin with the state `found`, or else with the bundle's initial state."""
        if found is not None:
            self._restore(found)
            return
        initial = read_initial(self.bundle, later=(MEMORY_CODES,))
        if initial is not None:
            seeded = self.rng.bit_generator.state
            self._restore(fit_memory(initial, self.memory.capacity, self.rng))
            self.rng.bit_generator.state = seeded
        if self._checkpoint is not None:
            self._checkpoint.commit(self.state())

    def _restore(self, state: State) -> None:
        """Take over a state whose `MEMORY_CODES` are still in its file."""
        check_fits(state, self.bundle)
        self.memory.load(
            state.arrays[MEMORY_SLOTS],
            lambda out: state.read_into(MEMORY_CODES, out),
            counter=int(state.meta["counter"]),
        )
        meta = state.meta
        learned = np.array(meta["learned"], bool)
        slots, history = Slots(tuple(meta["labels"])), History.from_json(meta["history"])
        self._take_over(Commit(state.arrays, learned, slots, history))
        restore_models(state.arrays, self.working, self.adapting)
        self.rng.bit_generator.state = state.meta["rng"]

    def _take_over(self, made: Commit) -> None:
        """Answer with the models and labels of a commit from now on."""
        with self.answering:
            self.learned = restore_models(made.tensors, self.serving, self.features)
            self.slots, self.history = made.slots, made.history

    def _settle(self) -> None:
        """Finish a committed change in RAM; revert an uncommitted one. Idempotent.

        An interrupt may end it anywhere, so the next change calls it again.
        """
        if self._made is not None:
            self._take_over(self._made)
            self.memory.settle()
            self._out_of_step = False
            self._rng_before = self._made = None
        if self._rng_before is not None:
            restore_models(save_models(self.serving, self.features), self.working, self.adapting)
            self.memory.revert()
            self.rng.bit_generator.state = self._rng_before
            if self._out_of_step and self._checkpoint is not None:
                committed = self._checkpoint.load(later=(MEMORY_CODES,))
                if committed is not None:
                    self._restore(committed)
            self._rng_before = None
            self._out_of_step = False

    def _is_changing(self) -> bool:
        return self._change is not None and self._change() is not None

    def _close_if_idle(self) -> None:
        """Release the state path once the learner is closed and nothing changes it."""
        with self._guard:
            if self._closed and self._checkpoint is not None and not self._is_changing():
                self._checkpoint.close()
