"""The initial state of a bundle, from what it was taught before it shipped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from lrtflite.bundle.bundle import Bundle
from lrtflite.counted import classes_text, counted
from lrtflite.errors import BundleError, StateError, problem_of
from lrtflite.replay.policies import balanced_choice
from lrtflite.runtime.model import Model
from lrtflite.state.form import StateForm
from lrtflite.state.reading import State, read_state_file


def read_initial(bundle: Bundle, form: StateForm | None = None) -> State | None:
    """Return the state that a new learner starts from, if any; its rows stay in the file."""
    if bundle.initial is None:
        return None
    try:
        return read_state_file(bundle.initial, form)
    except StateError as error:
        # The advice for a damaged state does not apply to a bundle.
        problem = problem_of(error)
        raise BundleError(f"{problem}", "copy the bundle again") from error


def learned_labels(labels: Sequence[str | None], learned: Iterable[bool]) -> tuple[str, ...]:
    """Return the labels whose slots have learned; a slot can have a label before it learns."""
    return tuple(label for label, has in zip(labels, learned) if label is not None and has)


def labels_of(state: State) -> tuple[str, ...]:
    """Return the labels that a state can answer with."""
    return learned_labels(state.meta.labels, state.meta.learned)


def shipped_labels(bundle: Bundle) -> tuple[str, ...]:
    """Return the labels that a bundle was taught before it shipped."""
    state = read_initial(bundle)
    return () if state is None else labels_of(state)


def fit_memory(initial: State, capacity: int, rng: np.random.Generator) -> State:
    """Return the state with at most `capacity` latents, with the same number from each class."""
    slots = initial.memory.facts["slots"]
    if len(slots) <= capacity:
        return initial
    kept = np.sort(balanced_choice(slots, capacity, rng))
    return replace(initial, memory=initial.memory.select(kept))


def check_initial(bundle: Bundle, head: Model, features: Model) -> str:
    """Describe the initial state of a bundle, or raise BundleError if it does not fit."""
    state = read_initial(bundle, StateForm.of(bundle, head.signatures, features.signatures))
    if state is None:
        return "nothing was taught before it shipped"
    if state.meta.labels != bundle.manifest.labels:
        raise BundleError(
            f"Expected an initial state for the bundle {bundle.path}, got one for another bundle",
            "copy the bundle again",
        )
    latents = counted(len(state.memory), "latent")
    return f"{classes_text(len(labels_of(state)))}, {latents} in its memory"
