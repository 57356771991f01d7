"""A module in a child process: its answer, its errors, and every way to end without an answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from lrtflite.bundle.costs import Costs
from lrtflite.errors import BundleError, InputError, LrtfliteError, ModelError
from lrtflite.verification.child import run_child
from lrtflite.verification.limits import Limits, trial_limits

pytestmark = pytest.mark.slow

LIMITS = Limits(seconds=30, megabytes=300)
IN_CHILD = "def in_child(stream, *words):\n    "


def ask(folder: Path, code: str, monkeypatch: pytest.MonkeyPatch, limits: Limits = LIMITS) -> bytes:
    (folder / "asked.py").write_text(code)
    monkeypatch.setenv("PYTHONPATH", str(folder))
    return run_child("asked", "a", "b", what="a trial of it", limits=limits, given=b"12" * 100_000)


def test_it_gets_bytes_and_words_and_answers_with_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = (
        "import os\n"
        "def in_child(stream, *words):\n"
        "    print('a runtime may print')\n"
        "    os.write(1, b'and its C++ too')\n"
        "    return repr((len(stream.read()), words)).encode() + bytes(3_000_000)\n"
    )
    answer = ask(tmp_path, code, monkeypatch)
    assert answer == b"(200000, ('a', 'b'))" + bytes(3_000_000)


@pytest.mark.parametrize(
    ("code", "kind", "said"),
    [
        ("import os; os.kill(os.getpid(), 11)", BundleError, r"a crash \(SIGSEGV\) in a trial of"),
        ("import os; os.abort()", BundleError, r"a crash \(SIGABRT\) in a trial of it; convert"),
        ("import os; os._exit(0)", BundleError, "to reach its end, got exit code 0 before; conv"),
        ("import os; os._exit(7)", BundleError, "to reach its end, got exit code 7 before"),
        ("raise KeyError('odd')", BundleError, "exit code 1 before: KeyError: 'odd'; convert"),
        ("raise ValueError('odd\\nmore')", BundleError, r"an error \(odd\) in a trial of it"),
        ("raise RuntimeError", BundleError, "within 300 MB of RAM, got a trial of it"),
        ("raise MemoryError", BundleError, "within 300 MB of RAM, got a trial of it"),
        ("import os; os.kill(os.getpid(), 9)", BundleError, "within 300 MB"),
        ("bytearray(1 << 40)", BundleError, "within 300 MB"),
        (
            "from lrtflite.errors import ModelError; raise ModelError('Expected a; do b')",
            ModelError,
            "^Expected a; do b$",
        ),
        ("raise type('Exception', (SystemExit,), {})", BundleError, "to reach its end"),
    ],
)
def test_whatever_ends_it_is_one_line(
    code: str,
    kind: type[LrtfliteError],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(LrtfliteError, match=said) as caught:
        ask(tmp_path, IN_CHILD + code, monkeypatch)
    assert type(caught.value) is kind
    assert "\n" not in str(caught.value)
    assert "; " in str(caught.value)


@pytest.mark.parametrize("code", ["while True: pass", "import signal; signal.pause()"])
def test_one_without_an_end(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        BundleError, match=r"Cannot finish a trial of it: no end after 1 s; .*_SECONDS"
    ):
        ask(tmp_path, IN_CHILD + code, monkeypatch, Limits(1, 300))


def test_one_that_fills_the_ram_step_by_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shared memory, which no limit of the operating system counts as data, is counted too."""
    code = (
        "import mmap\n"
        "rooms = []\n"
        "def in_child(stream, *words):\n"
        "    while len(rooms) < 1000:\n"
        "        rooms.append(mmap.mmap(-1, 1 << 25))\n"
        "        rooms[-1].write(bytes(1 << 25))\n"
    )
    with pytest.raises(BundleError, match=r"within 300 MB of RAM, .*; use .*LRTFLITE_TRIAL_MB"):
        ask(tmp_path, code, monkeypatch)


def costs(ram_mb: float) -> Costs:
    return Costs("", "", 1, 1.0, 1.0, 1, 1.0, ram_mb, 1.0)


def test_the_limit_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "os.sysconf", {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 1_000_000}.__getitem__
    )
    assert trial_limits(costs(100)).megabytes == 2 * 100 + 256
    assert trial_limits(costs(0)).megabytes == 256
    for hostile in (2000.0, 1e30, 3e38):
        assert trial_limits(costs(hostile)).megabytes == pytest.approx(0.75 * 4096)
    assert trial_limits(None).megabytes == 2 * 1000 + 256
    assert trial_limits(None).seconds == 900


def test_both_limits_can_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LRTFLITE_TRIAL_SECONDS", "2.5")
    monkeypatch.setenv("LRTFLITE_TRIAL_MB", "1e5")
    assert trial_limits(costs(1)) == Limits(2.5, 1e5)
    for odd in ("0", "-1", "nan", "inf", "1e99", "many", "1 s"):
        for name in ("LRTFLITE_TRIAL_SECONDS", "LRTFLITE_TRIAL_MB"):
            with monkeypatch.context() as patch:
                patch.setenv(name, odd)
                with pytest.raises(InputError, match=f"in {name}, got '{odd}'"):
                    trial_limits(None)
    monkeypatch.setenv("LRTFLITE_TRIAL_MB", "")
    assert trial_limits(costs(1)).megabytes > 200
