"""Experiments on a Dask cluster: several processes, losses in the middle, what workers lack."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import dask_cluster
from lrtflite.data.spec import split_spec
from lrtflite.errors import DataError, InputError
from lrtflite_firmware_sim.experiment.cluster import ClusterWorkers
from lrtflite_firmware_sim.experiment.digests import tree_digest
from lrtflite_firmware_sim.experiment.folder import read_cells
from lrtflite_firmware_sim.experiment.jobs import CellJob
from lrtflite_firmware_sim.experiment.parcels import Parcel
from lrtflite_firmware_sim.experiment.remote import CACHE, check_versions, run_order, with_path

pytest.importorskip("distributed", reason="needs the extra experiment")


def test_an_experiment_survives_a_worker_and_the_scheduler(
    pictures: Path, tmp_path: Path, demo: Path
) -> None:
    """Two workers, one of which sees neither the data nor the folder of the experiment."""
    out, work, bundle = tmp_path / "out", tmp_path / "work", tmp_path / "bundle"
    work.mkdir()
    subprocess.run(["cp", "-r", str(demo), str(bundle)], check=True)
    plan = tmp_path / "plan.toml"
    plan.write_text(
        f'dataset = "folder:{pictures}"\nbundle = "{bundle}"\nfirst-classes = 2\nsplit-seed = 0\n'
        "sessions = 2\n[grid]\nseed = [0, 1, 2, 3, 4, 5]\n"
    )
    words = [sys.executable, dask_cluster.__file__, *map(str, (work, plan, pictures, out))]
    environment = dict(os.environ)
    if dask_cluster.namespaces_allowed():
        words = ["unshare", "-rnm", *words]
        environment[dask_cluster.BRIDGED] = "1"
    done = subprocess.run(words, capture_output=True, text=True, env=environment, timeout=300)
    print(done.stdout, done.stderr)
    assert done.returncode == 0, done.stderr
    if "bridged" not in done.stdout:
        print("no network namespaces here: all processes were at 127.0.0.x")
    cells = read_cells(out).cells
    assert [cell.is_done for cell in cells] == [True] * 6
    assert "lost the scheduler" in done.stderr
    # Each worker without the data unpacked it in its own cache, with the digest of the original.
    if "bridged" in done.stdout:
        [shipped, *_] = work.glob(f"cache*/{tree_digest(pictures)}/{pictures.name}")
        assert tree_digest(shipped) == tree_digest(pictures)


def test_an_unreachable_scheduler_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lrtflite_firmware_sim.experiment.cluster.CONNECT", 0.5)
    port = dask_cluster.free_port()
    with pytest.raises(InputError, match=f"scheduler at tcp://127.0.0.1:{port}, got no answer"):
        ClusterWorkers(f"tcp://127.0.0.1:{port}", tmp_path).__enter__()
    with pytest.raises(InputError, match="scheduler at nonsense"):
        ClusterWorkers("nonsense", tmp_path).__enter__()


def test_a_worker_of_another_version_is_refused() -> None:
    check_versions({}, {})
    with pytest.raises(InputError, match=r"Expected numpy 0\.1 on every worker, got"):
        check_versions({"numpy": "0.1"}, {})


def test_a_parcel_arrives_as_it_was(tmp_path: Path, pictures: Path) -> None:
    cache = tmp_path / "cache"
    sent = Parcel.of(pictures)
    elsewhere = Parcel(sent.digest, str(tmp_path / "nowhere" / pictures.name))
    assert elsewhere.here(cache) is None
    elsewhere.unpack(sent.packed(), cache)
    found = elsewhere.here(cache)
    assert found is not None
    assert tree_digest(found) == sent.digest
    # A file that was changed in the cache is noticed, and the parcel replaces it.
    next(file for file in found.rglob("*") if file.is_file()).write_bytes(b"")
    tree_digest.cache_clear()
    assert elsewhere.here(cache) is None
    elsewhere.unpack(sent.packed(), cache)
    assert elsewhere.here(cache) == found


def test_a_parcel_holds_what_links_point_to(tmp_path: Path, pictures: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    folder = next(each for each in pictures.iterdir() if each.is_dir())
    file = next(each for each in folder.iterdir() if each.is_file())
    (data / "folder").symlink_to(folder)
    (data / "link.png").symlink_to(file)
    (data / "copy.png").write_bytes(file.read_bytes())
    os.link(data / "copy.png", data / "hard.png")
    sent = Parcel.of(data)
    assert sent.size > 3 * file.stat().st_size
    elsewhere = Parcel(sent.digest, str(tmp_path / "nowhere" / "data"))
    elsewhere.unpack(sent.packed(), tmp_path / "cache")
    found = elsewhere.here(tmp_path / "cache")
    assert found is not None
    assert (found / "link.png").read_bytes() == (found / "hard.png").read_bytes()
    assert (found / "folder" / file.name).read_bytes() == file.read_bytes()
    assert not any(each.is_symlink() for each in found.rglob("*"))


def test_a_damaged_parcel_is_refused(tmp_path: Path, pictures: Path) -> None:
    sent = Parcel.of(pictures)
    content = bytearray(sent.packed())
    content[len(content) // 2] ^= 1
    with pytest.raises(DataError, match="Expected an archive of"):
        sent.unpack(bytes(content), tmp_path / "cache")
    with pytest.raises(DataError, match="Expected an archive of"):
        sent.unpack(b"nothing", tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []


@pytest.mark.parametrize("name", ["../outside", "/outside", "things/../../outside"])
def test_a_parcel_cannot_leave_the_cache(tmp_path: Path, name: str) -> None:
    import io
    import tarfile

    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        entry = tarfile.TarInfo(name)
        entry.size = 3
        archive.addfile(entry, io.BytesIO(b"bad"))
    with pytest.raises(DataError, match="an entry"):
        Parcel("0" * 16, str(tmp_path / "things")).unpack(content.getvalue(), tmp_path / "cache")
    assert not (tmp_path / "outside").exists()


def test_a_worker_gets_the_lists_of_a_data_set_too(
    tmp_path: Path, pictures: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lists, cache, given = tmp_path / "lists", tmp_path / "cache", []
    lists.mkdir()
    (lists / "batch.txt").write_text("a\n")
    spec = f"core50:{pictures}?lists={lists}&run=1"
    job = CellJob("0" * 16, {"dataset": spec}, {})
    order = ClusterWorkers("local", tmp_path).order(job)
    # Another machine: other lists at the same path.
    (lists / "batch.txt").write_text("b\n")
    tree_digest.cache_clear()

    def run(job: CellJob, **_: object) -> dict[str, object]:
        given.append(job)
        return {"digest": job.digest, "status": "done"}

    monkeypatch.setenv(CACHE, str(cache))
    monkeypatch.setattr("lrtflite_firmware_sim.experiment.remote.run_cell", run)
    monkeypatch.setattr("lrtflite_firmware_sim.experiment.remote.ram_of_worker", lambda: 1e3)
    assert run_order(order, {}).lacks == ("lists",)
    assert order.lists is not None
    (lists / "batch.txt").write_text("a\n")
    packed = order.lists.packed()
    (lists / "batch.txt").write_text("b\n")
    tree_digest.cache_clear()
    record = run_order(order, {"lists": packed}).record
    assert record is not None
    assert record["options"] == {"dataset": spec}
    [ran] = given
    _, settings = split_spec(str(ran.options["dataset"]))
    assert settings["run"] == "1"
    assert (Path(settings["lists"]) / "batch.txt").read_text() == "a\n"


def test_a_worker_may_have_several_runtimes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "lrtflite_firmware_sim.experiment.digests.pick_runtime",
        lambda runtime: "litert" if runtime == "auto" else runtime,
    )
    monkeypatch.setattr("lrtflite_firmware_sim.experiment.digests.describe_runtime", str)
    workers = ClusterWorkers("local", tmp_path)
    for runtime in ("tflite", "litert"):
        order = workers.order(CellJob("0" * 16, {"runtime": runtime}, {}))
        check_versions(order.versions, order.job.options)


def test_the_path_of_a_data_set_is_replaced(tmp_path: Path) -> None:
    assert with_path("core50:data?protocol=391&run=2", tmp_path) == (
        f"core50:{tmp_path}?protocol=391&run=2"
    )
    assert with_path("folder:things", tmp_path) == f"folder:{tmp_path}"
    assert with_path("core50:data?lists=a&run=2", None, lists=tmp_path) == (
        f"core50:data?lists={tmp_path}&run=2"
    )
