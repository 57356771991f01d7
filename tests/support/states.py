"""Small states for tests of files and folders, without a bundle."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from lrtflite.replay.memory import Content
from lrtflite.state.checkpoint import Checkpoint
from lrtflite.state.meta import StateMeta
from lrtflite.state.reading import State

ROW = (3,)


def patterns(number: int, count: int) -> Content:
    """Return a memory whose rows hold `number` and their place."""
    rows = [np.array([number, k, 0], np.float32) for k in range(count)]
    empty = Content.empty(ROW, np.dtype(np.float32))
    return empty.with_rows(rows, np.arange(count), slots=np.zeros(count, np.int32))


def meta_of(number: int) -> StateMeta:
    entry = {"id": "0", "session": 1, "labels": ["cup"], "patterns": [1]}
    return StateMeta(
        bundle="b" * 64,
        replay_layer="pool6",
        replay_size=1000,
        policy="algorithm1",
        codec="raw",
        labels=("cup", None),
        learned=(True, False),
        rng=np.random.PCG64(number).state,
        sessions=number,
        history=tuple({**entry, "session": k + 1} for k in range(number)),
    )


def state(number: int, *, rows: int = 2, memory: Content | None = None) -> State:
    """Return a state that shows its number in every part; its trunk never changes."""
    arrays = {
        "head/cw": np.full((3, 2), number, np.float32),
        "head/trunk": np.arange(64, dtype=np.float32),
    }
    return State(arrays, memory or patterns(number, rows), meta_of(number))


def value(found: State | None) -> int:
    """Return the number of a state, which all its parts must agree on."""
    assert found is not None
    number = found.meta.sessions
    assert found.arrays["head/cw"].tolist() == [[number] * 2] * 3
    assert found.arrays["head/trunk"].tolist() == list(range(64))
    assert set(found.memory.rows.all()[:, 0].tolist()) <= {float(number)}
    return number


def put(folder: Path, *numbers: int) -> None:
    """Commit states into a folder and close it."""
    checkpoint = Checkpoint(folder)
    checkpoint.load()
    for number in numbers:
        checkpoint.commit(state(number))
    checkpoint.close()


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def write_all(folder: Path, files: dict[str, bytes]) -> None:
    """Make a folder with these files and no others."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.iterdir():
        path.unlink()
    for name, content in files.items():
        (folder / name).write_bytes(content)
