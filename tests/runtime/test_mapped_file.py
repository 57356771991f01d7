"""Pages of a mapped file: given back, and read again when they are needed."""

from __future__ import annotations

import mmap
import sys
from pathlib import Path

import numpy as np
import pytest

from lrtflite.bundle.bundle import Bundle
from lrtflite.runtime.mapped_file import release_pages
from lrtflite.runtime.model import Model

PAGES = 64
linux = pytest.mark.skipif(sys.platform != "linux", reason="madvise drops pages on Linux only")


def resident(path: Path) -> int:
    """Return the bytes of a file that this process has in RAM, as the kernel counts them."""
    total, own = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        words = line.split()
        if not words[0].endswith(":"):
            own = words[-1] == str(path)
        elif own and words[0] == "Rss:":
            total += 1024 * int(words[1])
    return total


@linux
def test_a_file_that_only_others_read(tmp_path: Path) -> None:
    path = tmp_path / "weights"
    content = np.random.default_rng(0).bytes(PAGES * mmap.PAGESIZE)
    path.write_bytes(content)
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapped:
        assert mapped[:] == content
        assert resident(path) == len(content)
        assert release_pages(path) == len(content)
        assert resident(path) == 0
        assert mapped[:] == content


@linux
def test_pages_that_were_written_stay(tmp_path: Path) -> None:
    path = tmp_path / "notes"
    path.write_bytes(bytes(mmap.PAGESIZE))
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) as mapped:
        mapped[:3] = b"own"
        assert release_pages(path) == 0
        assert mapped[:3] == b"own"


def test_a_file_that_is_not_mapped(tmp_path: Path) -> None:
    assert release_pages(tmp_path / "nothing") == 0


@linux
def test_weights_that_a_runtime_has_packed(demo: Path, runtime: str) -> None:
    bundle = Bundle.open(demo)
    model = Model(bundle.features, runtime=runtime)
    frame = np.random.default_rng(0).integers(0, 256, (1, 128, 128, 3), np.uint8)
    before = model.run("extract", frames=frame)["latents"]
    size = bundle.features.path.stat().st_size
    assert resident(bundle.features.path.resolve()) < size / 2
    model.release()
    np.testing.assert_array_equal(model.run("extract", frames=frame)["latents"], before)
