"""The committed state of a learner, in RAM and on disk; changes are all or nothing."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrtflite.bundle.bundle import Bundle
from lrtflite.errors import DamagedState, LrtfliteError, StateError, StateInPlace
from lrtflite.files.deferred_signals import deferred_signals
from lrtflite.options import LearnerOptions
from lrtflite.replay.memory import Content, ReplayMemory
from lrtflite.runtime.model import Model
from lrtflite.state.checkpoint import Checkpoint
from lrtflite.state.folder import number_of
from lrtflite.state.form import StateForm
from lrtflite.state.history import History
from lrtflite.state.initial import learned_labels
from lrtflite.state.meta import StateMeta
from lrtflite.state.models import LoadedModels, restore_models, save_models
from lrtflite.state.reading import GenerationHeader, State, read_opened
from lrtflite.state.record import Record
from lrtflite.state.slots import Slots


@dataclass(frozen=True)
class Commit:
    """A change on its way from the disk to `serving`.

    `tensors` holds the tensors of both models, `learned` (C,) is true for slots that have learned.
    `rng` is the state of the generator afterwards, or None if it is the current one.
    """

    tensors: Mapping[str, NDArray[Any]]
    learned: NDArray[np.bool_]
    slots: Slots
    history: History
    memory: Content
    rng: Mapping[str, Any] | None = None


class Change:
    """A token that lives as long as the change that owns it."""


class CommittedState:
    """Weights, moments, memory, labels and random generator, in RAM and, given a path, on disk.

    `serving` and `features` answer, `working` and `adapting` are changed by a session; see
    `LoadedModels`. INVARIANT: outside a change, both models of a pair hold the committed state.
    """

    def __init__(
        self,
        bundle: Bundle,
        checkpoint: Checkpoint | None,
        options: LearnerOptions,
        *,
        load: Callable[..., Model] = Model,
    ) -> None:
        """Load the models with `load`; `begin` or `restore` follows. `options` contains no None."""
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
        loaded = LoadedModels.of(bundle, options, load)
        self.features, self.adapting = loaded.features, loaded.adapting
        self.serving, self.working = loaded.serving, loaded.working
        # Held by a caller that needs moments, weights and labels of the same state.
        self.answering = threading.RLock()
        self.learned = np.zeros(manifest.slots, bool)
        self.form = StateForm.of(bundle, self.serving.signatures, self.features.signatures)
        self._checkpoint = checkpoint
        # Number and record of the generation that was opened.
        self._generation: tuple[int, Record] | None = None
        # The committed content of `memory`, which a change may have replaced already.
        self._content = self.memory.content
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

    def begin(self) -> None:
        """Take over the values in the model files, where there is no state to restore."""
        tensors = self._tensors()
        self.learned = restore_models(tensors, self.serving, self.features)

    @property
    def learned_labels(self) -> tuple[str, ...]:
        """Return the labels that the learner can answer with; the background is never an answer."""
        with self.answering:
            labels = list(self.slots.labels)
            if self.slots.background is not None:
                labels[self.slots.background] = None
            return learned_labels(labels, self.learned)

    @contextmanager
    def change(self) -> Iterator[None]:
        """Allow one change at a time; undo it at the end of the block unless it was committed."""
        if self._read_only:
            raise StateError("This learner is read-only", "open it without read_only to change it")
        with self.alone():
            # Checked here, because another thread can close an idle learner at any time.
            if self._closed:
                raise StateError("This learner is closed", "open the bundle and its state again")
            yield

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep out every change except the caller's own."""
        mine = Change()
        try:
            with self._guard:
                if self._is_changing():
                    raise LrtfliteError("A session is running already", "wait for it, or cancel it")
                self._change = weakref.ref(mine)
            self._settle()
            self._rng_before = self.rng.bit_generator.state
            yield
        except BaseException:
            # If the disk cannot be read either, the first error says more; the next change reads.
            with suppress(StateError):
                self._end(mine)
            raise
        else:
            self._end(mine)

    def _end(self, mine: Change) -> None:
        """End a change that this token owns."""
        try:
            current = self._change
            if current is not None and current() is mine:
                try:
                    self._settle()
                finally:
                    with self._guard:
                        self._change = None
        finally:
            self._close_if_idle()

    def commit(
        self,
        tensors: dict[str, NDArray[Any]],
        learned: NDArray[np.bool_],
        *,
        slots: Slots,
        history: History | None = None,
        frees: bool = False,
    ) -> None:
        """Commit these tensors and the memory, first on disk, then in RAM.

        A change that `frees` space may give up undo for it on a full disk.
        """
        history = self.history if history is None else history
        made = Commit(tensors, learned, slots, history, self.memory.content)
        if self._closed:
            raise StateError("This learner was closed meanwhile", "open its state and try again")
        checkpoint = self._checkpoint
        if checkpoint is None:
            self._made = replace(
                made, memory=replace(made.memory, rows=made.memory.rows.detached())
            )
            self._settle()
        else:
            state = self.state(made)
            self._write(checkpoint, made, lambda: checkpoint.commit(state, frees=frees))

    @property
    def can_undo(self) -> bool:
        return self._checkpoint is not None and self._checkpoint.previous_number() is not None

    def undo(self) -> None:
        """Return to the state before the last commit."""
        checkpoint = self._checkpoint
        if checkpoint is None:
            raise StateError("Nothing to undo: opened without a state path", "open with one")
        with self.change():
            previous = checkpoint.previous()
            state = read_opened(previous, self.form)
            made = self._commit_of(state)
            self.memory.load(made.memory)
            # `serving` answers from the current state until the previous one is on disk again.
            restore_models(state.arrays, self.working, self.adapting)
            self._write(checkpoint, made, lambda: checkpoint.undo(previous, state))

    def _write(self, checkpoint: Checkpoint, made: Commit, write: Callable[[], Content]) -> None:
        """Write a change to the disk, then adopt it in RAM; after any failure both agree."""
        self._out_of_step = True
        try:
            self._finish(made, write())
        except StateInPlace:
            assert checkpoint.content is not None  # that of the generation in place
            self._finish(made, checkpoint.content)
            raise
        except StateError:
            self._out_of_step = False  # the generation before is still the newest
            raise

    def _finish(self, made: Commit, content: Content) -> None:
        """Adopt a change whose memory is on the disk now."""
        self._made = replace(made, memory=replace(made.memory, rows=content.rows))
        self._settle()

    def reload(self) -> bool:
        """Adopt the newest generation in the folder; return whether it was a different one.

        On any failure, and if every newer generation is damaged, the state stays as it is.
        """
        folder = self._checkpoint
        if folder is None or not self._read_only:
            raise StateError(
                "Expected a learner opened with read_only=True and a state path, got one that "
                "holds the newest state itself",
                "open another one to follow a writer",
            )

        def take(opened: GenerationHeader, salvage: bool) -> bool:
            found = number_of(opened.path), opened.record
            is_older = self._generation is not None and found[0] < self._generation[0]
            if found == self._generation or (is_older and folder.damaged):
                return False
            self._adopt(opened, salvage=salvage)
            return True

        with self.alone():
            if self._closed:
                raise StateError("This learner is closed", "open the bundle and its state again")
            self._rng_before = None  # nothing to revert: a reader draws no numbers
            folder.damaged.clear()
            folder.check_names(may_be_new=False)
            return folder.newest(take)

    def _adopt(self, opened: GenerationHeader, *, salvage: bool) -> None:
        """Like `restore_generation`, but put everything back on any failure."""
        memory, kept = self.memory, (self.memory.capacity, self.memory.policy)
        before = Commit(self._tensors(), self.learned, self.slots, self.history, self._content)
        with deferred_signals(), self.answering:
            try:
                memory.capacity = opened.record.meta.replay_size
                memory.policy = opened.record.meta.policy
                self.restore_generation(opened, salvage=salvage)
            except BaseException:
                memory.capacity, memory.policy = kept
                self.take_memory(before.memory)
                self._take_over(before)
                raise

    def close(self) -> None:
        """Release the state path; a running change ends first, and is not committed."""
        self._closed = True
        self._close_if_idle()

    def state(self, made: Commit | None = None, *, history: History | None = None) -> State:
        """Return the committed state, or the state that `made` leads to.

        `history` replaces that of the committed state.
        """
        if made is None:
            history = self.history if history is None else history
            made = Commit(self._tensors(), self.learned, self.slots, history, self.memory.content)
        return State(
            arrays={**made.tensors, **made.history.arrays},
            memory=made.memory,
            meta=StateMeta.of(
                self.bundle,
                made.history,
                replay_size=self.memory.capacity,
                policy=self.memory.policy,
                labels=made.slots.labels,
                learned=made.learned,
                rng=self.rng.bit_generator.state,
                device=self.options.device,
                background=made.slots.background,
            ),
        )

    def _tensors(self) -> dict[str, NDArray[Any]]:
        """Return the committed tensors, while nothing changes.

        They come from `working`, which a commit saves anyway: a model that has run `save` keeps a
        copy of every tensor for as long as it is loaded.
        """
        return save_models(self.working, self.adapting)

    def restore_generation(self, opened: GenerationHeader, *, salvage: bool) -> None:
        """Take over a generation of the state folder, or raise DamagedState."""
        assert self._checkpoint is not None  # it opened the generation
        state = read_opened(opened, self.form, salvage=salvage)
        try:
            self.restore(state)
        except (ValueError, RuntimeError) as error:  # from the runtime
            raise DamagedState(
                f"Expected a state that the models take, got: {error}",
                f"restore {opened.path} from a copy, or open a new state path",
            ) from error
        self._generation = number_of(opened.path), opened.record
        if not self._read_only:
            self._checkpoint.adopt(opened, state)

    def restore(self, state: State) -> None:
        """Take over a state that has the form of this bundle's states."""
        made = self._commit_of(state)
        self.memory.load(made.memory)
        self._content = made.memory
        self._take_over(made)
        if self.working is not self.serving:
            restore_models(state.arrays, self.working, self.adapting)

    def _commit_of(self, state: State) -> Commit:
        """Return the change that leads to a state."""
        meta, content, rng = state.meta, state.memory, state.meta.rng
        if meta.policy != self.memory.policy:
            # A counter and marks mean something only to the policy that made them.
            content = content.without_marks()
        slots, history = Slots(meta.labels, meta.background), state.history
        if rng is None:  # the state of a client with another generator
            rng = np.random.PCG64((self.options.seed, history.sessions)).state
        learned = np.array(meta.learned, bool)
        return Commit(state.arrays, learned, slots, history, content, rng)

    def take_memory(self, content: Content) -> None:
        """Replace the committed content of the memory."""
        self.memory.content = self._content = content

    def _take_over(self, made: Commit) -> None:
        """Answer with the models and labels of a commit from now on."""
        with self.answering:
            self.learned = restore_models(made.tensors, self.serving, self.features)
            self.slots, self.history = made.slots, made.history
        if made.rng is not None:
            self.rng.bit_generator.state = made.rng

    def _settle(self) -> None:
        """Finish a committed change in RAM; revert an uncommitted one. Idempotent.

        An interrupt may end it anywhere, so the next change calls it again.
        """
        if self._made is not None:
            self._take_over(self._made)
            self.take_memory(self._made.memory)
            self._out_of_step = False
            self._rng_before = self._made = None
        if self._rng_before is not None:
            restore_models(save_models(self.serving, self.features), self.working, self.adapting)
            self.memory.content = self._content
            self.rng.bit_generator.state = self._rng_before
            if self._out_of_step and self._checkpoint is not None:
                committed = self._checkpoint.load(self.form)
                if committed is not None:
                    self.restore(committed)
            self._rng_before = None
            self._out_of_step = False

    def _is_changing(self) -> bool:
        return self._change is not None and self._change() is not None

    def _close_if_idle(self) -> None:
        """Release the state path once the learner is closed and nothing changes it."""
        with self._guard:
            if self._closed and self._checkpoint is not None and not self._is_changing():
                self._checkpoint.close()
