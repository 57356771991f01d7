"""Ship what a learner knows: a copy of its bundle, with its state as the one to start from."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from lrtflite.bundle import FILES, INITIAL, Bundle, digest, write_manifest
from lrtflite.checkpoint import State, read_state, write_state
from lrtflite.destination import Destination
from lrtflite.errors import BundleError, StateError
from lrtflite.replay.codecs import CODECS
from lrtflite.replay.memory import MEMORY_CODES, MEMORY_SLOTS
from lrtflite.replay.policies import balanced_choice
from lrtflite.runtime import Model


def ship(
    bundle: Bundle, state: State, out: str | Path | Destination, *, replace_bundle: bool = False
) -> Bundle:
    """Write the bundle `out`: the models of `bundle`, and `state` for new learners to start from.

    Its models are the same bytes, so a state that was taught with `bundle` opens with `out` too.
    """
    destination = Destination.at(out, replace=replace_bundle)
    with destination.making_bundle() as made:
        for name in FILES:
            shutil.copy(bundle.path / name, made / name)
        write_state(made / INITIAL, state)
        manifest = replace(
            bundle.manifest,
            labels=tuple(state.meta["labels"]),
            files={name: digest(made / name) for name in (*FILES, INITIAL)},
        )
        write_manifest(made, manifest)
    return Bundle.open(destination.path)


def read_initial(bundle: Bundle, *, later: Sequence[str] = ()) -> State | None:
    """Read the state that a new learner starts from; `later` is as in `read_state`."""
    if bundle.initial is None:
        return None
    try:
        return read_state(bundle.initial, later=later)
    except StateError as error:
        raise BundleError(f"{error}; copy the bundle again") from error


def learned_labels(labels: Sequence[str | None], learned: Iterable[bool]) -> tuple[str, ...]:
    """Return the labels whose slot has learned something; a name alone is not enough."""
    return tuple(label for label, known in zip(labels, learned) if label is not None and known)


def labels_of(state: State) -> tuple[str, ...]:
    """Return the labels that a state can answer."""
    return learned_labels(state.meta["labels"], state.meta["learned"])


def shipped_labels(bundle: Bundle) -> tuple[str, ...]:
    """Return the labels that a bundle was taught before it shipped."""
    state = read_initial(bundle, later=(MEMORY_CODES,))
    return () if state is None else labels_of(state)


def fit_memory(initial: State, capacity: int, rng: np.random.Generator) -> State:
    """Return the state with at most `capacity` latents, the same number of each class."""
    slots = initial.arrays[MEMORY_SLOTS]
    if len(slots) <= capacity:
        return initial
    assert initial.path is not None  # it was read from a bundle
    kept = np.sort(balanced_choice(slots, capacity, rng))
    codes = read_state(initial.path).arrays[MEMORY_CODES][kept]
    arrays = {**initial.arrays, MEMORY_CODES: codes, MEMORY_SLOTS: slots[kept]}
    return replace(initial, arrays=arrays)


def check_initial(bundle: Bundle, head: Model) -> str:
    """Return what a bundle was taught, in words, or raise BundleError if it does not fit."""
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
            f"Expected an initial state of the bundle {bundle.path}, got one of another; "
            "copy the bundle again"
        )
    return f"{len(labels_of(state))} classes, {len(slots)} latents in its memory"
