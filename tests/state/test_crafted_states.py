"""States that no client wrote, with digests that are right: a runtime never sees their values."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from learning import TRAINING, fingerprint, latents_of
from lrtflite import Learner
from lrtflite.errors import DamagedState, StateError
from lrtflite.files.tensors import Outgoing, write_tensors
from lrtflite.replay.policies import POLICIES
from lrtflite.state.folder import read_state
from lrtflite.state.reading import State, write_state
from lrtflite.state.record import Record
from lrtflite_cli.group import cli

NEWEST = "state-00000009.safetensors"
Arrays = dict[str, Any]


def shape(arrays: Arrays, _: Arrays) -> None:
    arrays["head/cw"] = arrays["head/cw"][:, :-1]


def longer(arrays: Arrays, _: Arrays) -> None:
    arrays["head/past"] = np.zeros(10_000, np.float32)


def scalar(arrays: Arrays, _: Arrays) -> None:
    arrays["head/past"] = np.float32(0).reshape(())


def dtype(arrays: Arrays, _: Arrays) -> None:
    arrays["head/past"] = arrays["head/past"].astype(np.float64)


def missing(arrays: Arrays, _: Arrays) -> None:
    del arrays["head/past"]


def unknown(arrays: Arrays, _: Arrays) -> None:
    arrays["head/more"] = np.zeros(3, np.float32)


def unknown_model(arrays: Arrays, _: Arrays) -> None:
    arrays["features/mean"] = np.zeros(3, np.float32)


def nan(arrays: Arrays, _: Arrays) -> None:
    arrays["head/cw"] = np.full_like(arrays["head/cw"], np.nan)


def infinity_in_memory(arrays: Arrays, _: Arrays) -> None:
    arrays["memory/codes"] = np.full_like(arrays["memory/codes"], np.inf)


def row_shape(arrays: Arrays, _: Arrays) -> None:
    arrays["memory/codes"] = arrays["memory/codes"][:, :-1]


def row_dtype(arrays: Arrays, _: Arrays) -> None:
    arrays["memory/codes"] = arrays["memory/codes"].astype(np.float16)


def slot_too_high(arrays: Arrays, _: Arrays) -> None:
    arrays["memory/slots"] = arrays["memory/slots"] + 50


def slot_below_zero(arrays: Arrays, _: Arrays) -> None:
    arrays["memory/slots"] = arrays["memory/slots"] - 1


def slots_of_another_count(arrays: Arrays, _: Arrays) -> None:
    arrays["memory/slots"] = arrays["memory/slots"][:-1]


def place_too_high(arrays: Arrays, _: Arrays) -> None:
    arrays["memory/places"] = np.arange(len(arrays["memory/slots"])) + 1


def place_below_zero(arrays: Arrays, _: Arrays) -> None:
    arrays["memory/places"] = np.arange(len(arrays["memory/slots"])) - 1


def labels(_: Arrays, meta: Arrays) -> None:
    meta["labels"], meta["learned"] = meta["labels"][:-1], meta["learned"][:-1]


def label_twice(_: Arrays, meta: Arrays) -> None:
    meta["labels"] = ["a", "a", *meta["labels"][2:]]


def control_characters(_: Arrays, meta: Arrays) -> None:
    meta["labels"] = ["\x1b[2J", *meta["labels"][1:]]


def too_many_rows(_: Arrays, meta: Arrays) -> None:
    meta["replay_size"] = 1


def path_outside(_: Arrays, meta: Arrays) -> None:
    meta["rows"] = [{"name": "../rows-00000001.safetensors", "bytes": 1, "sha256": "0" * 64}]


CRAFTED = (shape, longer, scalar, dtype, missing, unknown, unknown_model, nan, infinity_in_memory,
           row_shape, row_dtype, slot_too_high, slot_below_zero, slots_of_another_count,
           place_too_high, place_below_zero, labels, label_twice, control_characters,
           too_many_rows, path_outside)  # fmt: skip


def write(path: Path, arrays: Mapping[str, Any], meta: Mapping[str, Any], record: Record) -> None:
    found = json.loads(record.to_json()["state"])
    found.update(meta)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    write_tensors(
        handle,
        {"format": "5", "state": json.dumps(found)},
        {name: Outgoing.of(np.asarray(values)) for name, values in arrays.items()},
    )
    os.close(handle)


@pytest.fixture
def folder(open_learner: Callable[..., Learner], tmp_path: Path) -> Path:
    learner = open_learner(tmp_path / "state")
    for kind, label in enumerate("ab"):
        learner.learn_latents(latents_of(kind), label, training=TRAINING)
    learner.close()
    return tmp_path / "state"


@pytest.mark.parametrize("craft", CRAFTED)
def test_a_crafted_state_falls_back(
    folder: Path, open_learner: Callable[..., Learner], craft: Callable[[Arrays, Arrays], None]
) -> None:
    learner = open_learner(folder)
    before = fingerprint(learner)
    learner.close()
    state = read_state(folder)
    arrays = {**state.arrays, "memory/codes": state.memory.rows.all()}
    arrays["memory/slots"] = state.memory.facts["slots"]
    changed: Arrays = {}
    for name in ("labels", "learned"):
        changed[name] = list(getattr(state.meta, name))
    craft(arrays, changed)
    write(folder / NEWEST, arrays, changed, Record(state.meta))
    learner = open_learner(folder)
    assert fingerprint(learner) == before
    learner.close()
    assert (folder / NEWEST).with_suffix(".damaged").exists()
    # Alone in its folder, it is an error of one line, and stays.
    for path in folder.iterdir():
        path.unlink()
    write(folder / NEWEST, arrays, changed, Record(state.meta))
    with pytest.raises(DamagedState) as caught:
        open_learner(folder)
    assert str(caught.value).isprintable()
    assert (folder / NEWEST).exists()


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("mark", [-(2**31), -1, 2**31 - 1])
def test_marks_and_counters_of_any_value_do_no_harm(
    folder: Path, open_learner: Callable[..., Learner], policy: str, mark: int
) -> None:
    state = read_state(folder)
    odd = state.memory.with_marks(np.full(len(state.memory), mark))
    odd = replace(odd, counter=2**62 if mark > 0 else 0)
    write_state(folder / NEWEST, State(state.arrays, odd, replace(state.meta, policy=policy)))
    learner = open_learner(folder, replay_size=None)
    assert learner.memory.policy == policy
    learner.learn_latents(latents_of(2), "c", training=TRAINING)
    assert learner.learned == ("a", "b", "c")


def test_control_characters_do_not_reach_the_terminal(folder: Path, tmp_path: Path) -> None:
    state = read_state(folder)
    entries = [{**entry, "labels": ["\x1b[31m"]} for entry in state.meta.history]
    odd = {"policy": "\x1b[2J", "codec": "\r\x07", "bundle": "\x1b]0;", "history": entries}
    arrays = {**state.arrays, "memory/slots": state.memory.facts["slots"]}
    arrays["memory/codes"] = state.memory.rows.all()
    path = tmp_path / "state.safetensors"
    write(path, arrays, {**odd, "replay_layer": "\x1b[1m\n"}, Record(state.meta))
    for more in ([], ["--history"], ["--json"]):
        said = CliRunner().invoke(cli, ["state", str(path), *more])
        assert said.exit_code == 0
        assert not set(said.output) & set("\x1b\r\x07")


def test_a_state_of_another_bundle_is_refused_on_one_line(
    folder: Path, open_learner: Callable[..., Learner]
) -> None:
    state = read_state(folder)
    odd = replace(state.meta, bundle="x", replay_layer="\x1b[2J\n")
    write_state(folder / NEWEST, State(state.arrays, state.memory, odd))
    with pytest.raises(StateError, match="another bundle") as caught:
        open_learner(folder)
    assert str(caught.value).isprintable()
