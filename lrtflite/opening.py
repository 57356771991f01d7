"""Open a learner's state: the newest whole generation in a folder, or a new state."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

from lrtflite.bundle.bundle import Bundle
from lrtflite.labels import label_warnings
from lrtflite.options import LearnerOptions
from lrtflite.runtime.model import Model
from lrtflite.state.checkpoint import Checkpoint
from lrtflite.state.committed import CommittedState
from lrtflite.state.initial import fit_memory, read_initial
from lrtflite.state.reading import GenerationHeader
from lrtflite.verification.trial import try_models

_log = logging.getLogger("lrtflite")
# A loader of models, and a trial of a bundle's models before they are loaded.
Load = Callable[..., Model]
Try = Callable[..., None]


def opened_bundle(bundle: str | Path | Bundle, key: str | None) -> Bundle:
    """Return an opened bundle; one that was not checked against a required key is opened again."""
    if isinstance(bundle, Bundle):
        if key in (None, bundle.signed_with):
            return bundle
        bundle = bundle.path
    return Bundle.open(bundle, require_signature=key)


def open_committed(
    bundle: Bundle,
    path: str | Path | None,
    options: LearnerOptions,
    *,
    load: Load = Model,
    trial: Try = try_models,
) -> CommittedState:
    """Open the state in the folder `path`, or commit the state of a new learner there.

    `trial` runs the models of the bundle in a child process; then `load` loads them here.
    """
    checkpoint = None if path is None else Checkpoint(path, read_only=options.read_only)
    try:
        folder = None if path is None else Path(path)
        trial(bundle, options.runtime, folder, remember=not options.read_only)
        if checkpoint is None or checkpoint.is_new:
            made = _new(bundle, checkpoint, options, load)
        else:
            made = _existing(bundle, checkpoint, options, load)
    except BaseException:
        if checkpoint is not None:
            checkpoint.close()
        raise
    for warning in label_warnings(made.slots.labels):
        _log.warning("%s", warning)
    return made


def _new(
    bundle: Bundle, checkpoint: Checkpoint | None, options: LearnerOptions, load: Load
) -> CommittedState:
    settled = options.settled(bundle.manifest)
    made = CommittedState(bundle, checkpoint, settled, load=load)
    initial = read_initial(bundle, made.form)
    if initial is None:
        made.begin()
    else:
        seeded = made.rng.bit_generator.state
        made.restore(fit_memory(initial, made.memory.capacity, made.rng))
        made.rng.bit_generator.state = seeded
    if checkpoint is not None:
        made.take_memory(checkpoint.commit(made.state()))
    return made


def _existing(
    bundle: Bundle, checkpoint: Checkpoint, options: LearnerOptions, load: Load
) -> CommittedState:
    """Open the newest generation that is whole and that the models take."""
    made: CommittedState | None = None

    def take(opened: GenerationHeader, salvage: bool) -> CommittedState:
        nonlocal made
        meta = opened.record.meta
        kept = options.or_else(replay_size=meta.replay_size, policy=meta.policy, device=meta.device)
        settled = kept.settled(bundle.manifest)
        # Loading models takes longer than another learner's commit, so load them once.
        if made is None or settled != made.options:
            made = CommittedState(bundle, checkpoint, settled, load=load)
        made.restore_generation(opened, salvage=salvage)
        return made

    return checkpoint.newest(take)
