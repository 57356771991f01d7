"""Every name that a kill leaves in a folder of a user is known, whoever writes there."""

from __future__ import annotations

import ast
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from failing_disk import recording
from lrtflite.bundle.bundle import NAMES
from lrtflite.bundle.destination import Destination
from lrtflite.bundle.signing import make_keys
from lrtflite.errors import BundleError, StateError
from lrtflite.files.atomic import check_folder, write_atomic
from lrtflite.files.digest import digest
from lrtflite.files.temporary_names import generation_part, is_part_of, leftovers, part_name
from lrtflite.state.checkpoint import Checkpoint
from lrtflite.state.folder import CHECKED_FILE, is_foreign, unfinished
from lrtflite.state.reading import write_state
from states import put, state

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


def bundle(folder: Path) -> None:
    with Destination.at(folder).making_bundle() as made:
        for name in NAMES[2:]:
            (made / name).write_bytes(b"12")
        write_atomic(made / "manifest.json", "{}")


# Each writer of files in a folder of a user, and the files that it is asked to write.
WRITERS: dict[str, tuple[Callable[[Path], object], tuple[str, ...]]] = {
    "a record of trials": (lambda at: write_atomic(at / CHECKED_FILE, "[]"), (CHECKED_FILE,)),
    "a state": (lambda at: put(at, 1, 2), ()),
    "a bundle": (bundle, NAMES),
    "a state in one file": (lambda at: write_state(at / NAMES[-1], state(1)), NAMES),
    "keys": (lambda at: make_keys(at / "key", at / "key.pub"), ("key", "key.pub")),
    "a look at a folder": (check_folder, ()),
    "a name without a suffix": (lambda at: write_atomic(at / "notes", ""), ("notes",)),
    "a name with dots": (lambda at: write_atomic(at / ".a.b.c", ""), (".a.b.c",)),
}


@pytest.mark.parametrize("name", WRITERS)
def test_what_a_kill_leaves_is_known(name: str, tmp_path: Path) -> None:
    if name == "keys":
        pytest.importorskip("cryptography")
    write, files = WRITERS[name]
    (tmp_path / "whole").mkdir()
    with recording() as recorder:
        write(tmp_path / "whole")
    final = {path.name for path in (tmp_path / "whole").iterdir()}
    left = set()
    for number in range(len(recorder.calls)):
        folder = tmp_path / f"{number}"
        folder.mkdir()
        child = os.fork()
        if child == 0:

            def kill(at: int, _: str) -> None:
                if at == number:  # noqa: B023
                    os.kill(os.getpid(), signal.SIGKILL)

            with recording(kill):
                write(folder)
            vars(os)["_exit"](0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
        names = {path.name for path in folder.iterdir()}
        left |= names - final
        assert names - final <= set(leftovers(names, files=files)), names
        if name == "a bundle" and not names & final:
            bundle(folder)  # the folder still counts as empty
            assert final <= {path.name for path in folder.iterdir()}
    if name != "a look at a folder":  # its file has no name on this file system
        assert left


def test_other_names_are_somebody_elses() -> None:
    names = [".a.txt.part", ".state-1.part", ".b.12345678.part.json", "x.part", ".bundle-x", ".git"]
    assert leftovers(names, files=("a.txt", "b.txt", CHECKED_FILE)) == []
    assert unfinished(names) == []
    for name in names:
        assert is_foreign([name])


def test_names_are_recognised_as_they_are_made() -> None:
    for wanted in (CHECKED_FILE, "key", "key.pub", "initial-state.safetensors", "a.b.c", ".x"):
        made = part_name(wanted)
        assert is_part_of(made, wanted)
        assert not is_part_of(made, "other" + wanted)
        assert Path(made).suffix in (Path(wanted).suffix or ".part")
    assert unfinished([generation_part(7), part_name(CHECKED_FILE)]) != []
    assert not is_foreign([generation_part(7), part_name(CHECKED_FILE), CHECKED_FILE])


def test_a_folder_of_leftovers_becomes_a_state_and_is_cleaned(tmp_path: Path) -> None:
    for name in (part_name(CHECKED_FILE), generation_part(3)):
        (tmp_path / name).write_bytes(b"")
    Checkpoint(tmp_path).close()
    assert list(tmp_path.iterdir()) == []
    (tmp_path / part_name("holiday.jpg")).write_bytes(b"")
    with pytest.raises(StateError, match="Expected a state folder, or a new or empty one"):
        Checkpoint(tmp_path)


def test_a_bundle_is_not_made_over_files_of_others(tmp_path: Path) -> None:
    (tmp_path / part_name("holiday.jpg")).write_bytes(b"")
    with pytest.raises(BundleError, match="new or empty folder"):
        Destination.at(tmp_path)
    assert digest(next(tmp_path.iterdir())).bytes == 0


# Files whose code makes files or folders of temporary names, and why their names are known.
MAKERS = {
    "lrtflite/files/temporary_names.py": "the names",
    "lrtflite/files/atomic.py": "part_name, PROBE",
    "lrtflite/state/writing.py": "generation_part, and names of a generation",
    "lrtflite/files/scratch.py": "removes what dead processes left",
    "lrtflite/workbench/measuring.py": "in TMPDIR, which is a scratch folder in convert",
    "converters/lrtflite_converters/conversion/writing.py": "in TMPDIR",
    "converters/lrtflite_converters/tflite/convert.py": "in TMPDIR",
    "converters/lrtflite_converters/quantise/int8.py": "in TMPDIR",
    "firmware_sim/lrtflite_firmware_sim/experiment/folder.py": "a lock; removes what is left in it",
    "firmware_sim/lrtflite_firmware_sim/experiment/parcels.py": "a lock in the cache of a worker",
    "firmware_sim/lrtflite_firmware_sim/experiment/cluster.py": "a token, in no name of a file",
}
PRIMITIVES = {
    *("mkstemp", "mkdtemp", "TemporaryFile", "NamedTemporaryFile", "TemporaryDirectory"),
    *("O_CREAT", "token_hex"),
}


def test_nothing_else_makes_temporary_names() -> None:
    found = set()
    for folder in ("lrtflite", "converters", "firmware_sim", "cli"):
        for path in (ROOT / folder).rglob("*.py"):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            names = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
            names |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
            if names & PRIMITIVES:
                found.add(path.relative_to(ROOT).as_posix())
    assert found == set(MAKERS)
