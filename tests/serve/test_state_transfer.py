"""A state goes out and comes in as a zip; a hostile or foreign one changes nothing."""

from __future__ import annotations

import io
import os
import shutil
import stat
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fake_bundle import make_bundle, open_fake
from lrtflite import Learner
from lrtflite_serve.transfers.archive import MAX_MEMBERS
from lrtflite_serve.transfers.swapping import swap
from running_service import ZIP, Running, frames_of

Serve = Callable[..., Running]


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def downloaded(served: Running) -> bytes:
    answer = served.http.get("/api/state")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/zip"
    assert "attachment" in answer.headers["content-disposition"]
    return answer.content


def upload(served: Running, content: bytes) -> Any:
    return served.http.put("/api/state", content=content, headers=ZIP)


def zipped(files: dict[str, bytes], *, compressed: bool = False) -> bytes:
    out = io.BytesIO()
    kind = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
    with zipfile.ZipFile(out, "w", kind) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


def unzipped(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_a_download_is_the_state(taught: Running, tmp_path: Path, demo: Path) -> None:
    folder = tmp_path / "copy"
    with zipfile.ZipFile(io.BytesIO(downloaded(taught))) as archive:
        archive.extractall(folder)
    with Learner.open(demo, folder / "state") as learner:
        assert learner.learned == ("red", "blue")
        assert learner.predict(frames_of("blue", 1)[0])[0][0].label == "blue"


def test_an_upload_replaces_the_state_and_keeps_the_old_one(
    taught: Running, demo: Path, tmp_path: Path
) -> None:
    early = downloaded(taught)
    taught.teach("green")
    late = taught.classes()
    answer = upload(taught, early)
    assert answer.status_code == 200, answer.text
    assert taught.labels() == ["red", "blue"]
    assert answer.json()["classes"] == taught.classes()
    old = tmp_path / answer.json()["old_state"]
    with Learner.open(demo, old) as learner:
        assert learner.learned == ("red", "blue", "green")
        assert learner.sessions == late["sessions"]
    # It goes on from there.
    taught.teach("amber")
    assert taught.predict(frames_of("amber", 1)[0])["answers"][0]["label"] == "amber"
    taught.stop()
    with Learner.open(demo, taught.settings.state) as learner:
        assert learner.learned == ("red", "blue", "amber")
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_undo_after_an_upload_takes_nothing_from_the_new_state(taught: Running) -> None:
    uploaded = upload(taught, downloaded(taught)).json()["classes"]
    assert uploaded["last_change"] == "took another state"
    assert not uploaded["can_undo"]
    assert taught.http.post("/api/undo").status_code == 409
    assert taught.labels() == ["red", "blue"]
    # The next change can be taken back again.
    taught.teach("green")
    assert taught.http.post("/api/undo").status_code == 200
    assert taught.labels() == ["red", "blue"]


def refused(served: Running, content: bytes, status: int = 400) -> dict[str, Any]:
    """Upload; check that it is refused, that nothing changed, and that the service goes on."""
    folder, classes = Path(served.settings.state), served.classes()
    before, around = contents(folder), sorted(os.listdir(folder.parent))
    answer = upload(served, content)
    assert answer.status_code == status, answer.text
    assert contents(folder) == before
    assert sorted(os.listdir(folder.parent)) == around
    assert served.classes() == classes
    error: dict[str, Any] = answer.json()["error"]
    return error


def test_a_state_of_another_bundle(taught: Running, tmp_path: Path) -> None:
    other = tmp_path / "other"
    with open_fake(make_bundle(tmp_path / "bundle"), other) as learner:
        learner.rename(slot=0, new="x")
    files = {f"state/{name}": content for name, content in contents(other).items()}
    error = refused(taught, zipped(files), 409)
    assert error["kind"] == "StateError"


def test_damaged_and_partial_states(taught: Running) -> None:
    files = unzipped(downloaded(taught))
    newest = max(name for name in files if "/state-" in name)
    cut = {name: content[:-20] for name, content in files.items()}
    refused(taught, zipped(cut), 409)
    turned = {
        name: bytes([content[0] ^ 1]) + content[1:] if "state-" in name else content
        for name, content in files.items()
    }
    refused(taught, zipped(turned), 409)
    refused(taught, zipped({newest: files[newest]}), 409)


@pytest.mark.parametrize(
    "name",
    [
        "../escape.safetensors",
        "state/../../state-00000009.safetensors",
        "/absolute/state-00000009.safetensors",
        "state/sub/state-00000009.safetensors",
        "state\\..\\..\\state-00000009.safetensors",
        "state/checked.json",
        "state/.state-00000009.part",
        "state/state-00000009.safetensors\n",
        "C:state-00000009.safetensors",
        "state/",
    ],
)
def test_names_outside_the_state(taught: Running, name: str, tmp_path: Path) -> None:
    files = unzipped(downloaded(taught))
    if name == "state/":  # a folder entry with content is no state by itself
        refused(taught, zipped({name: b""}))
        return
    refused(taught, zipped({**files, name: b"x"}))
    assert not (tmp_path / "escape.safetensors").exists()


def test_links_devices_and_repeated_names(taught: Running) -> None:
    files = unzipped(downloaded(taught))
    for kind in (stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR, stat.S_IFDIR):
        out = io.BytesIO(zipped(files))
        with zipfile.ZipFile(out, "a") as archive:
            member = zipfile.ZipInfo("state/rows-00000099.safetensors")
            member.external_attr = (kind | 0o777) << 16
            archive.writestr(member, "../../../etc/passwd")
        refused(taught, out.getvalue())
    out = io.BytesIO(zipped(files))
    with zipfile.ZipFile(out, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr(next(iter(files)), b"other")
    refused(taught, out.getvalue())


def test_a_zip_bomb(taught: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lrtflite_serve.transfers.archive.MAX_UNPACKED", 50_000_000)
    files = unzipped(downloaded(taught))
    bomb = zipped({**files, "state/rows-00000099.safetensors": bytes(60_000_000)}, compressed=True)
    assert len(bomb) < 2_000_000
    assert refused(taught, bomb, 413)["kind"] == "TooLarge"


def test_a_zip_that_lies_about_sizes(taught: Running) -> None:
    files = unzipped(downloaded(taught))
    lying = bytearray(
        zipped({**files, "state/rows-00000099.safetensors": bytes(500_000)}, compressed=True)
    )
    size = (500_000).to_bytes(4, "little")
    while (place := lying.find(size)) >= 0:
        lying[place : place + 4] = (10).to_bytes(4, "little")
    refused(taught, bytes(lying))


def test_too_many_members(taught: Running) -> None:
    files = {f"state/rows-{number:08d}.safetensors": b"" for number in range(2 * MAX_MEMBERS + 1)}
    files["state/state-00000001.safetensors"] = b""
    refused(taught, zipped(files))


@pytest.mark.parametrize(
    "content", [b"", b"PK\x03\x04", b"no zip" * 100, zipped({}), b"PK\x05\x06" + bytes(18)]
)
def test_no_zips(taught: Running, content: bytes) -> None:
    refused(taught, content)


def test_other_types_and_sizes(taught: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = taught.http.put("/api/state", content=b"x", headers={"content-type": "text/plain"})
    assert answer.status_code == 415
    monkeypatch.setattr("lrtflite_serve.http.handlers.transfers.MAX_ARCHIVE", 1000)
    refused(taught, bytes(2000), 413)


def test_nothing_is_lost_if_the_swap_fails(
    taught: Running, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    content, real = downloaded(taught), Path.rename

    def fail_once(self: Path, target: Any) -> Path:
        if self.name == "state" and self.parent.name.startswith(".upload-"):
            raise OSError(28, "No space left on device")
        return real(self, target)

    monkeypatch.setattr(Path, "rename", fail_once)
    refused(taught, content, 507)
    monkeypatch.undo()
    taught.teach("green")
    assert taught.labels() == ["red", "blue", "green"]


def test_a_bundle_that_ships_the_state(taught: Running, tmp_path: Path) -> None:
    answer = taught.http.get("/api/bundle")
    assert answer.status_code == 200
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        archive.extractall(tmp_path)
    with Learner.open(tmp_path / "bundle") as learner:
        assert learner.learned == ("red", "blue")


def test_downloads_leave_nothing_behind(
    taught: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    downloaded(taught)
    taught.http.get("/api/bundle")
    taught.stop()
    assert list(temporary.iterdir()) == []


def test_forms_of_a_model(taught: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    assert taught.http.get("/api/model?form=float16").status_code == 400
    monkeypatch.setattr(
        "lrtflite_serve.transfers.exports.find_spec",
        lambda name: None if name == "tensorflow" else 1,
    )
    answer = taught.http.get("/api/model")
    assert answer.status_code == 501
    assert "[host]" in answer.json()["error"]["advice"]


class Killed(BaseException):
    """The end of a process, in the middle of a swap."""


def test_a_server_killed_in_the_swap_finds_its_state_again(
    serving: Callable[..., Running], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    first = serving()
    first.teach("red")
    content, real = downloaded(first), Path.rename
    first.teach("blue")
    first.stop()
    state = tmp_path / "state"
    scratch = tmp_path / ".upload-killed"
    (scratch / "state").mkdir(parents=True)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        archive.extractall(scratch)

    def killed(self: Path, target: Any) -> Path:
        if self != state:
            raise Killed
        return real(self, target)

    monkeypatch.setattr(Path, "rename", killed)
    with pytest.raises(Killed):
        swap(scratch / "state", state)
    monkeypatch.undo()
    assert not state.exists()
    again = serving()
    assert again.labels() == ["red", "blue"]
    # A state that its owner removed stays away.
    again.stop()
    shutil.rmtree(scratch)
    state.rename(tmp_path / "state-before-20260101-000000")
    assert serving().labels() == []
