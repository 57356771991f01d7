"""Kills, power cuts and failing disks of whole learners: answers are those before or those after.

`make torture` runs the same tests with LRTFLITE_TORTURE, the number of times as many cases.
"""

from __future__ import annotations

import errno
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
import pytest

from failing_disk import FAILS, Files, Recorder, power_cuts, recording
from fake_bundle import frames
from lrtflite import Learner
from lrtflite.errors import StateError
from lrtflite.files import reading as regular_file
from lrtflite.state.checkpoint import Checkpoint
from lrtflite.verification import trial
from states import contents, write_all

TIMES = int(os.environ.get("LRTFLITE_TORTURE", "1"))
Case = TypeVar("Case")


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for nothing; power cuts are simulated from the recorded calls, so no disk is flushed."""
    monkeypatch.setattr(regular_file, "PAUSES", (0, 0))
    monkeypatch.setattr(os, "fsync", lambda handle: None)


def answers(learner: Learner) -> bytes:
    found = learner.probabilities(learner.extract(frames(12, 90, 200)))
    return found.tobytes() + repr(learner.learned).encode()


def test_a_deep_learner_answers_from_one_state(
    open_deep: Callable[..., Learner], tmp_path: Path
) -> None:
    """Trunk, moments, labels and memory; the calls fail one after the other."""
    folder = tmp_path / "state"
    learner = open_deep(folder)
    for number, label in enumerate("ab"):
        learner.learn(frames(10 + number, 20), label)
    before, files = answers(learner), contents(folder)
    learner.learn(frames(200, 210), "c")
    after = answers(learner)
    learner.close()
    for at in range(60):
        write_all(folder, files)
        learner = open_deep(folder)
        assert answers(learner) == before

        def fail(now: int, call: str) -> None:
            if call != "close" and now >= at:  # noqa: B023
                raise OSError(errno.EIO, os.strerror(errno.EIO))

        ended = before
        try:
            with recording(fail):
                learner.learn(frames(200, 210), "c")
            ended = after
        except StateError as error:
            ended = after if "in place" in str(error) else before
        learner.close()
        reopened = open_deep(folder)
        assert answers(reopened) == ended
        reopened.close()
        if learner.sessions == 3:
            break
    else:
        raise AssertionError("the commit never ended")


def few(cases: Sequence[Case], count: int) -> Sequence[Case]:
    """Return all cases of a long run, else some of them, with the last one."""
    if TIMES > 1 or len(cases) <= count:
        return cases
    chosen = np.random.default_rng(0).choice(len(cases), count, replace=False)
    return [cases[k] for k in sorted({*chosen.tolist(), len(cases) - 1})]


def change(learner: Learner, name: str) -> None:
    getattr(learner, name)(frames(200, 210), "c" if name == "learn" else "b")


@pytest.fixture
def deep(
    open_deep: Callable[..., Learner], tmp_path: Path, request: pytest.FixtureRequest
) -> tuple[Path, bytes, bytes, Files, Recorder]:
    """Return a folder, the answers before and after a session, the files before, and its calls."""
    folder = tmp_path / "state"
    learner = open_deep(folder)
    for number, label in enumerate("ab"):
        learner.learn(frames(10 + number, 20), label)
    before, files = answers(learner), contents(folder)
    with recording() as recorder:
        change(learner, getattr(request, "param", "learn"))
    after = answers(learner)
    learner.close()
    assert before != after
    return folder, before, after, files, recorder


@pytest.mark.parametrize(("deep", "name"), [("learn",) * 2, ("relearn",) * 2], indirect=["deep"])
def test_a_deep_learner_after_a_kill_at_every_call(
    open_deep: Callable[..., Learner], deep: tuple[Path, bytes, bytes, Files, Recorder], name: str
) -> None:
    folder, before, after, files, recorder = deep
    ended = set()
    last = len(recorder.calls) - 1
    for number in sorted({*few(range(last), 8), last}):
        write_all(folder, files)
        child = os.fork()
        if child == 0:

            def kill(at: int, _: str) -> None:
                if at == number:  # noqa: B023
                    os.kill(os.getpid(), signal.SIGKILL)

            learner = open_deep(folder)
            with recording(kill):
                change(learner, name)
            vars(os)["_exit"](0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
        learner = open_deep(folder)
        ended.add(answers(learner))
        learner.close()
    assert ended == {before, after}


def test_a_deep_learner_after_every_power_cut(
    open_deep: Callable[..., Learner], deep: tuple[Path, bytes, bytes, Files, Recorder]
) -> None:
    folder, before, after, files, recorder = deep
    ended = set()
    for found in few(list(power_cuts(files, recorder.changes)), 60):
        write_all(folder, found)
        learner = open_deep(folder)
        ended.add(answers(learner))
        learner.close()
    assert ended == {before, after}


def fingerprint(learner: Learner) -> bytes:
    """Return everything that a session may change: answers, labels, memory and generator."""
    memory = learner.memory
    parts = (memory.codes, memory.slots, memory.marks)
    rng = learner.committed.rng.bit_generator.state
    names = (learner.labels, learner.sessions, memory.counter, rng)
    return answers(learner) + b"".join(map(bytes, parts)) + repr(names).encode()


def learn(learner: Learner) -> None:
    learner.learn(frames(200, 210), "c")


CHANGES: dict[str, Callable[[Learner], None]] = {
    "learn": learn,
    "undo": Learner.undo,
    "rename": lambda learner: learner.rename("a", "z"),
    "forget": lambda learner: learner.forget("a"),
}


@pytest.mark.parametrize("fails", FAILS)
@pytest.mark.parametrize("name", CHANGES)
def test_a_failed_change_leaves_the_state_that_its_error_names(
    open_deep: Callable[..., Learner], tmp_path: Path, name: str, fails: str
) -> None:
    """In RAM at once, on disk after a restart, and after a power cut that follows the error."""
    folder = tmp_path / "state"
    learner = open_deep(folder)
    for number, label in enumerate("ab"):
        learner.learn(frames(10 + number, 20), label)
    before, files = fingerprint(learner), contents(folder)
    with recording() as recorder:
        CHANGES[name](learner)
    after = fingerprint(learner)
    learner.close()
    assert before != after
    places = [at for at, call in enumerate(recorder.calls) if fails != "flushes" or call == "fsync"]
    for at in few(places, 12):
        write_all(folder, files)
        learner = open_deep(folder)

        def fail(now: int, call: str) -> None:
            if call != "close" and FAILS[fails](now, at, call):  # noqa: B023
                raise OSError(errno.EIO, os.strerror(errno.EIO))

        with recording(fail) as failed:
            said = ""
            try:
                CHANGES[name](learner)
            except StateError as error:
                said = str(error)
            named = after if not said or "the new state is in place" in said else before
            where = f"{said} (call {at}, {recorder.calls[at]})"
            assert fingerprint(learner) == named, where
        learner.close()
        may_change = "a power cut may" in said
        for found in few(list(power_cuts(files, failed.changes, at_end=True)), 3):
            write_all(tmp_path / "cut", found)
            reopened = open_deep(tmp_path / "cut")
            ended = fingerprint(reopened)
            assert ended == named or (may_change and ended in (before, after)), where
            reopened.close()
        reopened = open_deep(folder)
        assert fingerprint(reopened) == named, where
        reopened.close()


@pytest.mark.parametrize("name", CHANGES)
def test_a_learner_goes_on_after_a_disk_that_failed(
    open_deep: Callable[..., Learner], tmp_path: Path, name: str
) -> None:
    """The next session is that of a learner whose change failed cleanly, or was made."""
    folder = tmp_path / "state"
    with open_deep(folder) as learner:
        for number, label in enumerate("ab"):
            learner.learn(frames(10 + number, 20), label)
        files = contents(folder)
        with recording() as recorder:
            CHANGES[name](learner)
    expected = {}
    for made in (True, False):
        write_all(folder, files)
        with open_deep(folder) as learner:
            if made:
                CHANGES[name](learner)
            learner.learn(frames(90, 95), "d")
            expected[made] = fingerprint(learner)
    for at in few(range(len(recorder.calls)), 10):
        write_all(folder, files)

        def fail(now: int, call: str) -> None:
            if call != "close" and now >= at:  # noqa: B023
                raise OSError(errno.EIO, os.strerror(errno.EIO))

        with open_deep(folder) as learner:
            made = True
            try:
                with recording(fail):
                    CHANGES[name](learner)
            except StateError as error:
                made = "the new state is in place" in str(error)
            learner.learn(frames(90, 95), "d")
            assert fingerprint(learner) == expected[made], at
        with open_deep(folder) as learner:
            assert fingerprint(learner) == expected[made], at


SESSIONS = """
import sys
import numpy as np
from lrtflite import Learner
with Learner.open(*sys.argv[1:3]) as learner:
    shape = learner.bundle.manifest.latent_shape
    quick = learner.training.with_options(epochs=1, least_steps=1)
    print(learner.sessions, flush=True)
    while learner.sessions < int(sys.argv[3]):
        rng = np.random.default_rng(learner.sessions)
        label = f"class {learner.sessions % 5}"
        learner.learn_latents(rng.random((10, *shape), np.float32), label, training=quick)
        if len(sys.argv) > 4:
            probes = np.random.default_rng(0).random((8, *shape), np.float32)
            print(learner.probabilities(probes).tobytes().hex(), flush=True)
        else:
            print(learner.sessions, flush=True)
    sys.stdin.read()
"""


def test_kills_at_random_lose_nothing_that_was_committed(demo: Path, tmp_path: Path) -> None:
    """After each kill, the answers are exactly those of a learner that was never killed."""
    rng, folder, most = np.random.default_rng(0), tmp_path / "state", 30 * TIMES
    command = [sys.executable, "-c", SESSIONS, str(demo)]
    straight = subprocess.run(
        [*command, str(tmp_path / "straight"), str(most), "answers"],
        capture_output=True,
        text=True,
        check=True,
        stdin=subprocess.DEVNULL,
    )
    expected = straight.stdout.split()[1:]
    least = 0
    for _ in range(4 * TIMES):
        with subprocess.Popen(
            [*command, str(folder), str(most)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ) as process:
            assert process.stdout is not None
            assert int(process.stdout.readline()) in (least, least + 1)
            time.sleep(float(rng.uniform(0, 0.15)))
            process.kill()
            said = process.stdout.read().split()
        committed = int(said[-1]) if said else least
        with Learner.open(demo, folder, read_only=True) as learner:
            least = learner.sessions
            assert least in (committed, committed + 1)
            shape = learner.bundle.manifest.latent_shape
            probes = np.random.default_rng(0).random((8, *shape), np.float32)
            found = learner.probabilities(probes).tobytes().hex()
        assert least == 0 or found == expected[least - 1]
    assert least > 0


OPENING = """
import sys
from lrtflite import Learner
print("go", flush=True)
Learner.open(*sys.argv[1:3])
print("open", flush=True)
sys.stdin.read()
"""


def test_kills_at_random_in_the_first_opening(demo: Path, tmp_path: Path) -> None:
    """Whatever a kill leaves, the folder opens, and so does one that is killed again and again."""
    rng, often, left = np.random.default_rng(0), tmp_path / "often", set[str]()
    longest = 0.0
    for number in range(4 * TIMES):
        folder = often if number % 3 == 2 else tmp_path / f"{number}"
        command = [sys.executable, "-c", OPENING, str(demo), str(folder)]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"go\n"
            started = time.monotonic()
            if number == 0:  # the first one shows how long it takes
                assert process.stdout.readline() == b"open\n"
                longest = 1.2 * (time.monotonic() - started)
            else:
                time.sleep(float(rng.uniform(0, longest)))
            process.kill()
        if folder.exists():
            left.update(path.name for path in folder.iterdir())
        if folder != often:
            check_opens(demo, folder)
    check_opens(demo, often)


def check_opens(bundle: Path, folder: Path) -> None:
    """Open a folder and learn; nothing that was being written is left."""
    with Learner.open(bundle, folder) as learner:
        shape = learner.bundle.manifest.latent_shape
        learner.learn_latents(np.zeros((1, *shape), np.float32), "cup")
    assert not [path.name for path in folder.iterdir() if path.name.startswith(".")]


def test_a_kill_at_every_call_of_the_first_opening(
    open_deep: Callable[..., Learner], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The trial is replaced by its record, so that only calls to the disk are left."""
    monkeypatch.setattr("lrtflite.verification.trial.run_child", lambda *_, **__: b"")
    bundle = open_deep().bundle

    def opened(folder: Path) -> None:
        trial.passed.clear()
        checkpoint = Checkpoint(folder)
        trial.try_models(bundle, "auto", folder)
        checkpoint.close()
        open_deep(folder).close()

    with recording() as recorder:
        opened(tmp_path / "whole")
    seen = set[str]()
    for number in few(range(len(recorder.calls)), 40):
        folder = tmp_path / f"{number}"
        child = os.fork()
        if child == 0:

            def kill(at: int, _: str) -> None:
                if at == number:  # noqa: B023
                    os.kill(os.getpid(), signal.SIGKILL)

            with recording(kill):
                opened(folder)
            vars(os)["_exit"](0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
        if folder.exists():
            seen.update(re.sub("[0-9a-f]{8}", "*", path.name) for path in folder.iterdir())
        opened(folder)
        assert not [path.name for path in folder.iterdir() if path.name.startswith(".")]
    assert {".checked.*.part.json", ".state-*.part"} <= seen
