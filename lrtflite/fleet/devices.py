"""The devices of a fleet, as merging sees them: their states, and the sessions of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from lrtflite.errors import InputError, StateError
from lrtflite.labels import BACKGROUND
from lrtflite.state.folder import StateFolder, read_state
from lrtflite.state.form import StateForm
from lrtflite.state.history import History, TaughtSession
from lrtflite.state.initial import labels_of
from lrtflite.state.reading import State

HEAD = "head/"


@dataclass(frozen=True)
class Origin:
    """The knowledge that new learners of a bundle start from.

    `tensors` are the head's, `codes` the latents of the memory; `labels` has each slot's label.
    """

    tensors: Mapping[str, NDArray[Any]]
    codes: NDArray[Any]
    labels: tuple[str | None, ...]
    history: History


@dataclass(frozen=True)
class Device:
    """A device's state, with the knowledge that it started from."""

    path: Path
    state: State
    history: History
    origin: Origin

    @property
    def own(self) -> History:
        """Return the sessions that this device was taught itself."""
        return self.history.without(self.origin.history.ids)

    @property
    def labels(self) -> tuple[str | None, ...]:
        return self.state.meta.labels

    @property
    def learned_labels(self) -> tuple[str, ...]:
        return labels_of(self.state)

    def origin_names(self) -> dict[int, str | None]:
        """Return this device's names for the classes it started from, by their slot in the origin.

        None stands for a class that the device has forgotten.
        """
        known = set(self.labels)
        names: dict[int, str | None] = {
            slot: label if label in known else None
            for slot, label in enumerate(self.origin.labels)
            if label is not None
        }
        mine = {entry.id: entry for entry in self.history.entries}
        for entry in self.origin.history.entries:
            for was, now in zip(entry.labels, mine[entry.id].labels):
                if was is not None:
                    names[self.origin.labels.index(was)] = now
        return names


def read_device(path: Path, form: StateForm, origins: Sequence[Origin]) -> Device:
    """Read a state folder; its origin is the first of `origins` whose sessions it contains.

    Raise StateError for a state from another bundle, or one that has only part of an origin.
    """
    bundle = form.bundle
    manifest = bundle.manifest
    device = StateFolder(path)
    device.check_names(may_be_new=False)
    for opened in device.opened():
        meta = opened.record.meta
        if meta.bundle != bundle.identity or meta.codec != manifest.codec:
            same = meta.replay_layer == manifest.replay_layer
            what = "another strategy, weights or conversion" if same else meta.replay_layer
            raise StateError(
                f"Expected states for the bundle {bundle.path} ({manifest.strategy}, "
                f"{manifest.replay_layer}), got {path} from another bundle ({what})",
                "merge states of one bundle only",
            )
        break
    state = read_state(path, form)
    history = state.history
    for origin in origins:
        if origin.history.ids <= history.ids:
            return Device(path, state, history, origin)
        if origin.history.ids & history.ids:
            raise StateError(
                f"Expected all {origin.history.sessions} session(s) that {bundle.path} shipped "
                f"with in {path}, got some of them",
                "give the bundle that it started from",
            )
    raise AssertionError("the last origin has no sessions")


def check_fleet(devices: Sequence[Device], dropped: Sequence[Device]) -> None:
    """Raise InputError if a session would count twice, or a dropped one was never merged."""
    first, *others = devices
    for device in dropped:
        _check_dropped(device, first)
    gone = _ids(dropped)
    _check_apart(
        [(first, first.own.ids - gone), *((device, device.own.ids) for device in others)],
        "merge each device once, with the bundle that it started from",
    )
    _check_apart([(device, device.own.ids) for device in dropped], "drop each device once")
    _check_names(devices)
    if len(devices) == 1 and first.own.ids <= gone:
        raise InputError(
            f"Expected to drop part of {first.path}, got all of its sessions",
            "nothing would be left to write",
        )


def merged_history(devices: Sequence[Device], dropped: Sequence[Device]) -> History:
    """Return the sessions of all devices; those of an origin appear once.

    The dropped sessions are removed from the first device. Another device may contribute them
    again: a device that has learned more replaces its earlier state.
    """
    first, *others = devices
    entries: dict[str, TaughtSession] = {}
    for device in devices:
        shipped = device.history.only(device.origin.history.ids)
        for entry in shipped.entries:
            before = entries.get(entry.id, entry)
            labels = tuple(a if a is not None else b for a, b in zip(before.labels, entry.labels))
            entries[entry.id] = replace(entry, labels=labels)
    own = [first.own.without(_ids(dropped)), *(device.own for device in others)]
    for history in own:
        entries.update({entry.id: entry for entry in history.entries})
    return History.of(entries.values())


def merged_labels(
    devices: Sequence[Device], dropped: Sequence[Device], history: History
) -> tuple[str | None, ...]:
    """Return the label of each slot: the first device's labels, then the others' in free slots."""
    first, *others = devices
    left = set(history.patterns)
    gone = {label for device in dropped for label in device.own.patterns} - left
    labels = [None if label in gone else label for label in first.labels]
    missing = [
        label
        for device in others
        for label in device.learned_labels
        if label not in labels and label not in gone
    ]
    new = list(dict.fromkeys(missing))
    if len(new) > labels.count(None):
        needed = len(labels) - labels.count(None) + len(new)
        raise InputError(
            f"Expected at most {len(labels)} labels in all states together, got {needed}",
            "forget "
            f"some on the devices, or convert a bundle with --classes {needed} for the fleet",
        )
    for label in new:
        labels[labels.index(None)] = label
    return tuple(labels)


def merged_background(devices: Sequence[Device], labels: Sequence[str | None]) -> int | None:
    """Return the slot of the background among merged labels; it has the same label everywhere.

    Raise InputError if its label is that of an ordinary class on another device.
    """
    if all(device.state.meta.background is None for device in devices):
        return None
    for device in devices:
        if device.state.meta.background is None and BACKGROUND in device.labels:
            raise InputError(
                f"Expected no class named {BACKGROUND!r} next to a background, got one in "
                f"{device.path}",
                "rename this class first",
            )
    return labels.index(BACKGROUND) if BACKGROUND in labels else None


def _ids(devices: Sequence[Device]) -> frozenset[str]:
    return frozenset().union(*(device.own.ids for device in devices))


def _check_dropped(device: Device, first: Device) -> None:
    there = {entry.id: entry for entry in first.history.entries}
    strange = [entry for entry in device.history.entries if entry.id not in there]
    if strange or not device.own.entries:
        what = f"{len(strange)} that are not" if strange else "no sessions of its own"
        raise InputError(
            f"Expected --drop of a state whose sessions are all in {first.path}, got "
            f"{device.path} with {what}",
            "drop the state that was merged into it",
        )
    if any(there[entry.id] != entry for entry in device.own.entries):
        raise InputError(
            f"Expected {device.path} as it was merged into {first.path}, got one in which a label "
            "has since been renamed or forgotten",
            "drop the state as it was merged",
        )


def _check_apart(members: Sequence[tuple[Device, frozenset[str]]], advice: str) -> None:
    for (one, ids), (other, others) in combinations(members, 2):
        same = one.path.resolve() == other.path.resolve()
        if same or ids & others:
            count = len(ids & others)
            common = f"have {count} session{'s' * (count > 1)} in common"
            raise InputError(
                f"Expected states with sessions of their own, got {one.path} and {other.path}, "
                f"which {'are one folder' if same else common}",
                advice,
            )


def _check_names(devices: Sequence[Device]) -> None:
    """Raise InputError if two devices have different names for a class they both started from."""
    named: dict[tuple[int, int], tuple[str, Device]] = {}
    for device in devices:
        for slot, label in device.origin_names().items():
            if label is None:
                continue
            key = (id(device.origin), slot)
            before, other = named.setdefault(key, (label, device))
            if before != label:
                raise InputError(
                    "Expected one name for each class that the bundle shipped with, got "
                    f"{before!r} in {other.path} and {label!r} in {device.path}",
                    "rename one",
                )
