"""After many lessons a service has as many files, threads and megabytes as after a few."""

from __future__ import annotations

import io
import os
from contextlib import suppress
from pathlib import Path

import httpx
import pytest
from PIL import Image

from lrtflite.replay.store import MAX_FILES
from lrtflite_serve.http.api import FRAME_THREADS, SLOW_THREADS
from running_service import Running, frames_of
from serve_command import started
from waiting import wait

pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs /proc")
COLOURS = ("red", "blue", "green")
# Megabytes that RSS may vary by, such as those of an allocator.
SLACK = 10
FEW, MANY = 6, 30


def open_files(process: int) -> tuple[int, int]:
    """Return the number of open files of the replay memory, and of all others."""
    folder, names = Path("/proc") / str(process) / "fd", []
    for name in os.listdir(folder):
        with suppress(OSError):  # closed just now
            names.append(os.readlink(folder / name))
    rows = sum("/rows-" in name for name in names)
    return rows, len(names) - rows


def threads_of(process: int) -> int:
    return len(os.listdir(Path("/proc") / str(process) / "task"))


def megabytes(process: int) -> float:
    pages = int((Path("/proc") / str(process) / "statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def one_round(served: Running, number: int) -> None:
    """Teach, ask, undo and cancel; every kind of body, and a picture that is none."""
    colour = COLOURS[number % len(COLOURS)]
    served.teach(colour, 4)
    served.predict(frames_of(colour, 1)[0], f"?stream={number}")
    lesson = served.begin(label="never")
    served.send(lesson, frames_of(colour, 1)[0])
    assert served.http.delete(f"/api/lessons/{lesson}").status_code == 200
    for kind in ("PNG", "JPEG", "WEBP", "BMP"):
        out = io.BytesIO()
        Image.fromarray(frames_of(colour, 1)[0]).save(out, kind)
        for content, status in ((out.getvalue(), 200), (out.getvalue()[:60], 400)):
            headers = {"content-type": f"image/{kind.lower()}"}
            answer = served.http.post("/api/predict", content=content, headers=headers)
            assert answer.status_code == status
    [first, *_] = served.classes()["classes"]
    slot = first["slot"]
    assert served.http.get(f"/api/classes/{slot}/thumbnail").status_code == 200
    picture = served.http.get(f"/api/pictures?slot={slot}").json()[0]["id"]
    assert served.http.get(f"/api/pictures/{picture}").status_code == 200
    with served.http.stream("GET", "/api/events") as events:
        assert next(events.iter_lines()) == "event: hello"
    if number % 3 == 0:
        assert served.http.get("/api/state").status_code == 200
        assert served.http.post(f"/api/classes/{slot}/relearn").status_code == 200
        assert served.http.post("/api/undo").status_code == 200


def test_files_threads_and_ram_do_not_grow(tmp_path: Path, demo: Path) -> None:
    words = (demo, "--keep-pictures", "--replay-size", 50)
    with (
        started(tmp_path, *words) as (child, address),
        httpx.Client(base_url=address, timeout=60) as client,
    ):
        served = Running(client, None, None, None, None)  # type: ignore[arg-type]
        for number in range(FEW):
            one_round(served, number)
        _, files = open_files(child.pid)
        threads, ram = threads_of(child.pid), megabytes(child.pid)
        for number in range(FEW, int(os.environ.get("LRTFLITE_LESSONS", MANY))):
            one_round(served, number)
        wait(lambda: open_files(child.pid)[1] <= files, f"at most {files} open files")
        assert open_files(child.pid)[0] <= MAX_FILES
        # Pools start their threads when they need them.
        pools = FRAME_THREADS + SLOW_THREADS
        wait(lambda: threads_of(child.pid) <= threads + pools, f"{threads + pools} threads")
        assert megabytes(child.pid) <= ram + SLACK
