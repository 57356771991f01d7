"""A long history: earlier sessions are in arrays, and nothing that merging needs is lost."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from learning import TRAINING, latents_of
from lrtflite import Learner
from lrtflite.errors import DamagedState, StateError
from lrtflite.state import history as folded_history
from lrtflite.state.checkpoint import Checkpoint
from lrtflite.state.folder import read_state
from lrtflite.state.history import ARRAYS, BLOCK, EARLIEST, Folded, History, TaughtSession
from lrtflite.state.reading import State, read_state_file, write_state
from lrtflite_cli.group import cli
from states import meta_of, patterns, state

pytestmark = pytest.mark.slow

Open = Callable[..., Learner]


def entry(number: int, *labels: str | None) -> TaughtSession:
    identity = hashlib.sha256(str(number).encode()).hexdigest()[:32]
    return TaughtSession(
        identity, number, labels or ("mug",), tuple(range(1, len(labels or "a") + 1))
    )


def with_history(history: History, number: int = 1) -> State:
    """Return a small state with a history, whose head and memory show `number`."""
    found = state(number)
    arrays = {**found.arrays, **history.arrays}
    return State(arrays, found.memory, found.meta.with_history(history))


def test_the_newest_sessions_stay_in_full() -> None:
    history = History()
    for number in range(1, 1001):
        history = history.with_session({"mug": 2, "hat": number})
        assert history.sessions == number
        assert len(history.recent) < 2 * BLOCK
        assert len(history.folded) % BLOCK == 0
    assert len(history.recent) >= BLOCK
    assert [each.session for each in history.entries] == list(range(1, 1001))
    assert history.patterns == {"mug": 2000, "hat": 1000 * 1001 // 2}
    assert len(history.ids) == 1000


def test_folding_loses_no_id_label_or_count() -> None:
    entries = [
        entry(1, "mug", "hat"), entry(2, None, "pen"), entry(3), entry(4, "hat"), entry(5, None),
    ]  # fmt: skip
    folded = Folded().with_entries(entries[:3]).with_entries(entries[3:])
    assert folded.entries == tuple(entries)
    assert folded.patterns == {"mug": 1 + 1, "hat": 2 + 1, "pen": 2}
    renamed = folded.renamed("mug", "cup").renamed("hat", None)
    assert [each.labels for each in renamed.entries] == [
        ("cup", None), (None, "pen"), ("cup",), (None,), (None,),
    ]  # fmt: skip
    assert renamed.patterns == {"cup": 2, "pen": 2}
    # Arrays stay as they are, so that a commit does not write them again.
    assert all(renamed.arrays[name] is folded.arrays[name] for name in ARRAYS)
    # A new class of an old name has nothing to do with the forgotten one.
    again = renamed.with_entries([entry(6, "hat")])
    assert again.entries == (*renamed.entries, entry(6, "hat"))
    assert again.labels.count(None) == 1


def test_a_session_with_very_many_labels_is_folded_early() -> None:
    history = History()
    for _ in range(3):
        history = history.with_session({f"class {k}": 1 for k in range(6000)})
    assert (len(history.recent), len(history.folded)) == (1, 2)
    assert history.patterns["class 5999"] == 3


def test_ids_of_another_client_are_recognised_before_and_after_folding() -> None:
    session = {"id": "Gerät 7/1", "session": 1, "labels": [], "patterns": []}
    once = History.from_state([session], None, {})
    expected = hashlib.sha256("Gerät 7/1".encode()).hexdigest()[:32]
    assert once.ids == {expected}
    assert History((), Folded().with_entries(once.recent)).ids == once.ids


def test_a_commit_writes_as_much_after_100000_sessions_as_after_100(tmp_path: Path) -> None:
    """Bytes, not times: those of all files that a commit leaves and that were not there before."""
    written = {}
    for sessions in (100, 100_000):
        folder = tmp_path / str(sessions)
        history = History.of(entry(number) for number in range(1, sessions + 1))
        checkpoint = Checkpoint(folder)
        found = []
        for number in range(20):
            before = set(folder.iterdir())
            history = history.with_session({"mug": 5})
            checkpoint.commit(with_history(history, number))
            found.append(sum(each.stat().st_size for each in set(folder.iterdir()) - before))
        checkpoint.close()
        assert read_state(folder).meta.sessions == sessions + 20
        written[sessions] = found
    # The first three have no earlier generation to share with.
    assert max(written[100_000][3:]) < 2.5 * max(written[100][3:])
    assert max(written[100_000][3:]) < 40_000
    assert sum(each.stat().st_size for each in (tmp_path / "100000").iterdir()) < 3 * 3_300_000


def test_a_long_history_survives_the_disk(tmp_path: Path) -> None:
    history = History.of(entry(number, "mug", "hat") for number in range(1, 701))
    write_state(tmp_path / "one.safetensors", with_history(history))
    found = read_state_file(tmp_path / "one.safetensors")
    assert found.history == history
    checkpoint = Checkpoint(tmp_path / "folder")
    for number in range(700, 705):
        history = history.with_session({"mug": 1})
        checkpoint.commit(with_history(history, number))
    checkpoint.close()
    found = read_state(tmp_path / "folder")
    assert found.history == history


def test_a_state_of_format_5_of_any_length_is_read_and_folded(tmp_path: Path) -> None:
    sessions = meta_of(70_000).history
    for number, each in enumerate(sessions):
        each["id"] = f"{number:032x}"
    found = History.from_state(sessions, None, {})
    assert found.sessions == len(found.ids) == 70_000
    assert len(found.recent) < 2 * BLOCK


def test_the_command_shows_earlier_sessions_in_one_line(tmp_path: Path) -> None:
    history = History.of(entry(number, "mug", "hat") for number in range(1, 301))
    late = history.with_session({"pen": 7}, time=1_700_000_000, device="kitchen")
    path = tmp_path / "state.safetensors"
    write_state(path, with_history(late.renamed("hat", None)))
    said = CliRunner().invoke(cli, ["state", str(path), "--history"]).output
    (earlier,) = (line for line in said.splitlines() if line.startswith("128 "))
    assert earlier.split() == ["128", "earlier", "128", "of", "mug"]
    assert "session 128 " not in said
    assert "session 129" in said
    assert "7 of pen; 2023-11-14 22:13 UTC; on kitchen" in said
    shown = json.loads(CliRunner().invoke(cli, ["state", str(path), "--history", "--json"]).output)
    assert shown["folded"] == {"sessions": 128, "patterns": {"mug": 128}}
    assert shown["history"][-1]["time"] == 1_700_000_000


def crafted(history: History, changes: dict[str, Any], **meta: Any) -> State:
    found = with_history(history)
    arrays = {**found.arrays, **changes}
    return State(
        {name: values for name, values in arrays.items() if values is not None},
        found.memory,
        replace(found.meta, **meta),
    )


LONG = History.of(entry(number) for number in range(1, 301))
IDS, SESSIONS, TAUGHT = (LONG.arrays[name] for name in ARRAYS)
FOLDED = LONG.folded.to_json()


@pytest.mark.parametrize(
    ("changes", "meta"),
    [
        ({"history/ids": None}, {}),
        ({"history/ids": IDS[:-1]}, {}),
        ({"history/ids": IDS[:, :15]}, {}),
        ({"history/ids": IDS.astype(np.float32)}, {}),
        ({"history/ids": IDS.reshape(-1)}, {}),
        ({"history/ids": np.zeros((), np.uint8)}, {}),
        ({"history/sessions": SESSIONS[:-1]}, {}),
        ({"history/sessions": SESSIONS + 1}, {}),
        ({"history/sessions": np.full_like(SESSIONS, 2**32 - 1)}, {}),
        ({"history/sessions": SESSIONS.astype(np.int64)}, {}),
        ({"history/taught": TAUGHT[:-1]}, {}),
        ({"history/taught": TAUGHT + 1}, {}),
        ({"history/taught": np.full_like(TAUGHT, 2**32 - 1)}, {}),
        ({}, {"folded": {**FOLDED, "sessions": 127}}),
        ({}, {"folded": {**FOLDED, "sessions": -128}}),
        ({}, {"folded": {**FOLDED, "sessions": True}}),
        ({}, {"folded": {**FOLDED, "labels": []}}),
        ({}, {"folded": {**FOLDED, "labels": "mug"}}),
        ({}, {"folded": {**FOLDED, "labels": [["mug"]]}}),
        ({}, {"folded": {**FOLDED, "labels": ["m" * 1001]}}),
        ({}, {"folded": {**FOLDED, "labels": [None] * 100_001}}),
        ({}, {"folded": {"labels": ["mug"]}}),
        ({}, {"folded": [128]}),
        ({}, {"folded": 128}),
        ({}, {"device": 7}),
        ({}, {"device": "a\nb"}),
        ({}, {"device": "k" * 201}),
        ({}, {"bundle_version": ["1"]}),
    ],
)
def test_crafted_folded_sessions_are_refused(
    tmp_path: Path, changes: dict[str, Any], meta: dict[str, Any]
) -> None:
    path = tmp_path / "state.safetensors"
    write_state(path, crafted(LONG, {}))
    read_state_file(path)
    write_state(path, crafted(LONG, changes, **meta))
    with pytest.raises(DamagedState) as caught:
        read_state_file(path)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("name", ["MAX_FOLDED", "MAX_TAUGHT"])
def test_more_folded_sessions_than_the_limit(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "state.safetensors"
    write_state(path, crafted(LONG, {}))
    monkeypatch.setattr(f"lrtflite.state.reading.{name}", 127)
    with pytest.raises(DamagedState, match="invalid history/"):
        read_state_file(path)
    monkeypatch.setattr(folded_history, name, 200)
    with pytest.raises(StateError, match=r"Expected at most .* got 256 with 256 labels; go on"):
        LONG.folded.with_entries(LONG.recent[:128])


@pytest.mark.parametrize(
    "odd",
    [{"time": -1}, {"time": 1.5}, {"time": "now"}, {"time": True}, {"device": 3},
     {"device": "\x1b[2J"}, {"bundle_version": "v" * 201}, {"patterns": [2**32]},
     {"session": 2**32}],
)  # fmt: skip
def test_crafted_sessions_are_refused(tmp_path: Path, odd: dict[str, Any]) -> None:
    path = tmp_path / "state.safetensors"
    meta = meta_of(1)
    meta.history[0].update({"later": {"than": "this"}, "time": None})
    write_state(path, State(state(1).arrays, patterns(1, 2), meta))
    read_state_file(path)
    meta.history[0].update(odd)
    write_state(path, State(state(1).arrays, patterns(1, 2), meta))
    with pytest.raises(DamagedState):
        read_state_file(path)


def test_a_session_has_its_time_and_device(
    open_learner: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "state"
    monkeypatch.setattr("time.time", lambda: 1_800_000_000.7)
    with open_learner(path, device="kitchen") as learner:
        learner.learn_latents(latents_of(0), "mug", training=TRAINING)
    monkeypatch.setattr("time.time", lambda: EARLIEST - 1.0)  # a board without a battery
    with open_learner(path) as learner:
        learner.learn_latents(latents_of(1), "hat", training=TRAINING)
        shipped = learner.ship(tmp_path / "shipped")
    meta = read_state(path).meta
    assert meta.device == "kitchen"
    first, second = meta.history
    assert (first["time"], first["device"]) == (1_800_000_000, "kitchen")
    assert ("time" in second, second["device"]) == (False, "kitchen")
    # Another device that starts from this state has another name, or none.
    with Learner.open(shipped, tmp_path / "other") as other:
        assert other.committed.history.entries[0].device == "kitchen"
    assert read_state(tmp_path / "other").meta.device is None


def test_learning_renaming_and_forgetting_reach_folded_sessions(
    open_learner: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lrtflite.state.history.BLOCK", 2)
    monkeypatch.setattr("lrtflite.state.writing.MAX_INLINE_HISTORY", 0)
    path = tmp_path / "state"
    with open_learner(path) as learner:
        for number in range(6):
            learner.learn_latents(latents_of(number), f"class {number % 3}", training=TRAINING)
        before = learner.committed.history
        assert (len(before.folded), len(before.recent)) == (4, 2)
        learner.rename("class 0", "mug")
        learner.forget("class 1")
    with open_learner(path) as learner:
        after = learner.committed.history
        assert [each.id for each in after.entries] == [each.id for each in before.entries]
        names = [each.labels for each in after.entries]
        assert names == 2 * [("mug",), (None,), ("class 2",)]
        learner.undo()
        assert learner.committed.history == before.renamed("class 0", "mug")
    said = json.loads(CliRunner().invoke(cli, ["state", str(path), "--json"]).output)
    assert [each["label"] for each in said["classes"]] == ["mug", "class 1", "class 2"]
