"""Merge the states of several devices: add their sums, and solve for the rest again.

The manifest has a rule for each tensor of the head. A device's own part is its sums minus those it
started from, so that the shipped sums count once.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrtflite.bundle.bundle import Bundle
from lrtflite.bundle.manifest import REFUSE, SOLVE, SUM_BY_CLASS, Manifest
from lrtflite.contract.signatures import ZERO
from lrtflite.errors import BundleError, InputError, StateError
from lrtflite.files.atomic import check_folder
from lrtflite.fleet.devices import (
    HEAD,
    Device,
    Origin,
    check_fleet,
    merged_background,
    merged_history,
    merged_labels,
    read_device,
)
from lrtflite.fleet.memory import merge_memories
from lrtflite.runtime.model import Model
from lrtflite.state.checkpoint import Checkpoint
from lrtflite.state.form import StateForm
from lrtflite.state.history import History
from lrtflite.state.initial import read_initial
from lrtflite.state.meta import StateMeta
from lrtflite.state.reading import State
from lrtflite.verification.trial import try_models

Arrays = dict[str, NDArray[Any]]
Labels = Sequence["str | None"]
# Maximum number of tensor names in an error.
_NAMED = 3


@dataclass(frozen=True)
class Merged:
    """The result of a merge, written to the state folder `out`.

    `shipped` are the sessions that the devices started from; `history` contains each once.
    """

    out: Path
    state: State
    devices: tuple[Device, ...]
    dropped: tuple[Device, ...]
    history: History
    shipped: History


def merge(
    bundle: str | Path | Bundle,
    states: Sequence[str | Path],
    out: str | Path,
    *,
    drop: Sequence[str | Path] = (),
    seed: int = 0,
    runtime: str = "auto",
) -> Merged:
    """Write the state folder `out`, which answers like a single device that was taught everything.

    `drop` removes states that were merged into the first one. Raise InputError or StateError, with
    nothing written, for states that cannot be merged.
    """
    opened, target = bundle if isinstance(bundle, Bundle) else Bundle.open(bundle), Path(out)
    _check_request(opened.manifest, states, drop, target)
    try_models(opened, runtime)
    head = Model(opened.head, runtime=runtime)
    _check_rules(opened.manifest, head)
    form = StateForm.of(opened, head.signatures, {})  # moments that adapt are refused above
    origins = _origins(opened, head, form)
    devices = tuple(read_device(Path(path), form, origins) for path in states)
    dropped = tuple(read_device(Path(path), form, origins) for path in drop)
    check_fleet(devices, dropped)
    history = merged_history(devices, dropped)
    labels = merged_labels(devices, dropped, history)
    sums = _add_up(opened.manifest, head, devices, dropped, labels)
    tensors, learned = _solve(opened.manifest, head, sums)
    rng = np.random.Generator(np.random.PCG64(seed))
    generator = rng.bit_generator.state
    replay_size = opened.manifest.replay_size
    memory = merge_memories(devices, dropped, labels, capacity=replay_size, rng=rng)
    state = State(
        arrays={**tensors, **history.arrays},
        memory=memory,
        meta=StateMeta.of(
            opened,
            history,
            replay_size=replay_size,
            policy=opened.manifest.policy,
            labels=labels,
            learned=learned,
            rng=generator,
            background=merged_background(devices, labels),
        ),
    )
    _write(state, target)
    shipped = history.only(_widest(devices).history.ids)
    return Merged(target, state, devices, dropped, history, shipped)


def _check_request(
    manifest: Manifest, states: Sequence[str | Path], drop: Sequence[str | Path], out: Path
) -> None:
    if not states or (len(states) == 1 and not drop):
        raise InputError(
            f"Expected at least two states to merge, or one and --drop, got {len(states) or 'none'}"
            "",
            "give the state folder of each device",
        )
    if os.path.lexists(out):
        raise StateError(
            f"Expected a new state folder to write, got {out}, which exists", "choose another --out"
        )
    if manifest.adapt_moments:
        raise InputError(
            "Expected a bundle whose states add up",
            "moments below the replay layer adapt on each "
            "device and cannot be merged; convert without --adapt-moments",
        )
    try:
        check_folder(out.parent)
    except OSError as error:
        raise StateError(
            f"Cannot write the state {out}: {error.strerror or error}", "choose another --out"
        ) from error


def _check_rules(manifest: Manifest, head: Model) -> None:
    """Raise InputError if a tensor cannot be merged, BundleError if a rule does not fit it."""
    tensors = head.signatures["restore"].inputs
    refused = [name for name in tensors if manifest.merging.get(name, REFUSE) == REFUSE]
    if refused:
        more = len(refused) - _NAMED
        names = ", ".join(refused[:_NAMED]) + (f" and {more} more" if more > 0 else "")
        raise InputError(
            "Expected a bundle whose states add up",
            f"strategy {manifest.strategy} cannot be "
            f"merged: {names} depend on the order of sessions; convert with --strategy lda",
        )
    for name, tensor in tensors.items():
        if manifest.merging[name] == SUM_BY_CLASS and tensor.shape[0] != manifest.slots:
            raise BundleError(
                f"Expected {manifest.slots} rows in {name}, which merges by class, got "
                f"{tensor.shape[0]}",
                "convert the bundle again",
            )


def _origins(bundle: Bundle, head: Model, form: StateForm) -> tuple[Origin, ...]:
    """Return the possible origins of a learner: the bundle's initial state, and the head alone."""
    nothing = np.zeros((0, 1))
    fresh = Origin(head.run("save", zero=ZERO), nothing, bundle.manifest.labels, History())
    initial = read_initial(bundle, form)
    if initial is None:
        return (fresh,)
    tensors = {name: initial.arrays[HEAD + name] for name in fresh.tensors}
    codes = initial.memory.rows.all()
    return Origin(tensors, codes, initial.meta.labels, initial.history), fresh


def _widest(devices: Iterable[Device]) -> Origin:
    return max((device.origin for device in devices), key=lambda each: each.history.sessions)


def _add_up(
    manifest: Manifest,
    head: Model,
    devices: Sequence[Device],
    dropped: Sequence[Device],
    labels: Labels,
) -> Arrays:
    """Return the merged sums, with zeros for the tensors still to be solved."""
    # Use float64, so that a dropped device leaves nothing but the rounding of the states.
    total: Arrays = {
        name: np.zeros(tensor.shape) for name, tensor in head.signatures["restore"].inputs.items()
    }

    def add(tensors: Mapping[str, NDArray[Any]], names: Labels, sign: int) -> None:
        rows = [
            (slot, labels.index(name))
            for slot, name in enumerate(names)
            if name is not None and name in labels
        ]
        for name, values in total.items():
            rule = manifest.merging[name]
            if rule == SUM_BY_CLASS:
                for slot, row in rows:
                    values[row] += sign * tensors[name][slot].astype(np.float64)
            elif rule != SOLVE:
                values += sign * tensors[name].astype(np.float64)

    for sign, members in ((1, devices), (-1, dropped)):
        for device in members:
            state = {name: device.state.arrays[HEAD + name] for name in total}
            add(state, device.labels, sign)
            names = device.origin_names()
            add(_remembered(head, device.origin, names), _by_slot(names, labels), -sign)
    origin = _widest(devices)
    names = _common_names([device for device in devices if device.origin is origin])
    add(_remembered(head, origin, names), _by_slot(names, labels), 1)
    return {name: values.astype(np.float32) for name, values in total.items()}


def _common_names(devices: Sequence[Device]) -> dict[int, str | None]:
    """Return the names of an origin's classes; a class is forgotten if every device forgot it."""
    names: dict[int, str | None] = {}
    for device in devices:
        for slot, label in device.origin_names().items():
            names[slot] = names.get(slot) or label
    return names


def _by_slot(names: Mapping[int, str | None], labels: Labels) -> Labels:
    return [names.get(slot) for slot in range(len(labels))]


def _remembered(head: Model, origin: Origin, names: Mapping[int, str | None]) -> Arrays:
    """Return the tensors of an origin without the classes that a device forgot."""
    head.run("restore", **origin.tensors)
    mask = np.zeros(len(origin.labels), np.float32)
    mask[[slot for slot, label in names.items() if label is None]] = 1
    if mask.any():
        head.run("forget", mask=mask)
    return head.run("save", zero=ZERO)


def _solve(manifest: Manifest, head: Model, sums: Arrays) -> tuple[Arrays, NDArray[np.bool_]]:
    """Return the head's tensors in the form of a state, and the slots that have learned."""
    head.run("restore", **sums)
    counts = np.zeros(manifest.slots, np.float32)
    for signature in ("begin", "consolidate"):
        rates = manifest.training.scalars(head.signatures[signature].inputs)
        found = head.run(signature, counts=counts, **rates)
    tensors = head.run("save", zero=ZERO)
    for name, values in tensors.items():
        if not np.isfinite(values).all():
            raise StateError(
                f"Expected finite sums, got NaN or infinity in {name} of the merged state",
                "leave out the device whose state is damaged",
            )
    return {HEAD + name: values for name, values in tensors.items()}, found["learned"] > 0


def _write(state: State, out: Path) -> None:
    """Write a new state folder completely or not at all."""
    checkpoint = Checkpoint(out)
    try:
        checkpoint.commit(state)
    except BaseException:
        with suppress(OSError):
            out.rmdir()
        raise
    finally:
        checkpoint.close()
