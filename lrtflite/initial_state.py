"""The initial state of a bundle, from what it was taught before it shipped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from lrtflite.bundle import Bundle
from lrtflite.errors import BundleError, StateError
from lrtflite.replay.codecs import CODECS
from lrtflite.replay.memory import MEMORY_CODES, MEMORY_SLOTS
from lrtflite.replay.policies import balanced_choice
from lrtflite.runtime import Model
from lrtflite.state_file import State, read_state


def read_initial(bundle: Bundle, *, later: Sequence[str] = ()) -> State | None:
    """Return the state that a new learner starts from, if any; `later`: see `read_state`."""
    if bundle.initial is None:
        return None
    try:
        return read_state(bundle.initial, later=later)
    except StateError as error:
        # The advice for a damaged state does not apply to a bundle.
        problem = str(error).partition("; ")[0]
        raise BundleError(f"{problem}; copy the bundle again") from error


def learned_labels(labels: Sequence[str | None], learned: Iterable[bool]) -> tuple[str, ...]:
    """Return the labels whose slots have learned; a slot can have a label before it learns."""
    return tuple(label for label, has in zip(labels, learned) if label is not None and has)


def labels_of(state: State) -> tuple[str, ...]:
    """Return the labels that a state can answer with."""
    return learned_labels(state.meta["labels"], state.meta["learned"])


def shipped_labels(bundle: Bundle) -> tuple[str, ...]:
    """Return the labels that a bundle was taught before it shipped."""
    state = read_initial(bundle, later=(MEMORY_CODES,))
    return () if state is None else labels_of(state)


def fit_memory(initial: State, capacity: int, rng: np.random.Generator) -> State:
    """Return the state with at most `capacity` latents, with the same number from each class."""
    slots = initial.arrays[MEMORY_SLOTS]
    if len(slots) <= capacity:
        return initial
    assert initial.path is not None  # it was read from a file
    kept = np.sort(balanced_choice(slots, capacity, rng))
    codes = read_state(initial.path).arrays[MEMORY_CODES][kept]
    arrays = {**initial.arrays, MEMORY_CODES: codes, MEMORY_SLOTS: slots[kept]}
    return replace(initial, arrays=arrays)


def check_initial(bundle: Bundle, head: Model) -> str:
    """Describe the initial state of a bundle, or raise BundleError if it does not fit."""
    state = read_initial(bundle)
    if state is None:
        return "nothing was taught before it shipped"
    manifest = bundle.manifest
    expected = {f"head/{k}": v.shape for k, v in head.signatures["restore"].inputs.items()}
    found = {k: v.shape for k, v in state.arrays.items() if k.startswith("head/")}
    slots, codes = state.arrays[MEMORY_SLOTS], state.arrays[MEMORY_CODES]
    codec = CODECS.choose(manifest.codec)(manifest.latent_form)
    if (
        found != expected
        or state.meta["codec"] != manifest.codec
        or codes.shape != (len(slots), *codec.shape)
        or codes.dtype != codec.dtype
        or tuple(state.meta["labels"]) != manifest.labels
        or state.meta["bundle"] != bundle.identity
    ):
        raise BundleError(
            f"Expected an initial state for the bundle {bundle.path}, got one for another bundle; "
            "copy the bundle again"
        )
    return f"{len(labels_of(state))} classes, {len(slots)} latents in its memory"
