"""The contents of a state as facts to show, read without a bundle or a runtime."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lrtflite.labels import label_warnings
from lrtflite.state.folder import EARLIER, StateFolder, earlier_format
from lrtflite.state.history import TaughtSession
from lrtflite.state.reading import GenerationHeader, State, open_state, read_opened


@dataclass(frozen=True)
class ClassSummary:
    """A class: patterns taught in all sessions, and rows of the replay memory."""

    label: str
    slot: int
    learned: bool
    patterns: int
    rows: int


@dataclass(frozen=True)
class StateSummary:
    """The contents of a state; `bytes` counts its own file and every file that it names.

    `warnings` has a line for each label that would be refused today.
    """

    path: str
    format: int
    bundle: str
    replay_layer: str
    sessions: int
    slots: int
    classes: tuple[ClassSummary, ...]
    replay_size: int
    policy: str
    codec: str
    rows: int
    row_bytes: int
    tensors: int
    tensor_bytes: int
    bytes: int
    undo: bool
    device: str | None
    bundle_version: str | None
    warnings: tuple[str, ...]
    history: tuple[TaughtSession, ...]
    folded: FoldedSummary


@dataclass(frozen=True)
class FoldedSummary:
    """Sessions before those of `history`: their number, and the patterns of each label."""

    sessions: int
    patterns: dict[str, int]


def summarise(path: Path) -> StateSummary:
    """Describe the newest whole generation of a state folder, or a state file."""
    if path.is_file():
        if EARLIER.fullmatch(path.name):
            raise earlier_format(path)
        opened = open_state(Path(os.path.realpath(path)))  # the user may name a link
        return _summary(path, opened, read_opened(opened))
    folder = StateFolder(path)
    folder.check_names(may_be_new=False)
    return folder.newest(
        lambda opened, salvage: _summary(path, opened, read_opened(opened, salvage=salvage))
    )


def _summary(path: Path, opened: GenerationHeader, state: State) -> StateSummary:
    record, meta, rows = opened.record, state.meta, state.memory.rows
    history = state.history
    taught = history.patterns
    tensors = {name: each for name, each in state.arrays.items() if name not in history.arrays}
    kept = np.bincount(state.memory.facts["slots"], minlength=len(meta.labels))
    named = (*record.tensors, *record.rows)
    return StateSummary(
        path=str(path),
        format=record.format,
        bundle=meta.bundle,
        replay_layer=meta.replay_layer,
        sessions=history.sessions,
        slots=len(meta.labels),
        classes=tuple(
            ClassSummary(label, slot, learned, taught.get(label, 0), int(kept[slot]))
            for slot, (label, learned) in enumerate(zip(meta.labels, meta.learned))
            if label is not None
        ),
        replay_size=meta.replay_size,
        policy=meta.policy,
        codec=meta.codec,
        rows=len(rows),
        row_bytes=rows.nbytes // max(1, len(rows)),
        tensors=len(tensors),
        tensor_bytes=sum(values.nbytes for values in tensors.values()),
        bytes=opened.file.source.size + sum(each.file.bytes for each in named),
        undo=record.undo is not None,
        device=meta.device,
        bundle_version=meta.bundle_version,
        warnings=tuple(label_warnings(meta.labels)),
        history=history.recent,
        folded=FoldedSummary(len(history.folded), history.folded.patterns),
    )
