"""Send folders to workers as archives, and check them against a digest on arrival."""

from __future__ import annotations

import fcntl
import io
import os
import shutil
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from lrtflite.errors import DataError, LrtfliteError
from lrtflite.files.temporary_names import part_name
from lrtflite_firmware_sim.experiment.digests import files_in, tree_digest

# Maximum size of a data set that is shipped, in bytes; users copy larger ones themselves.
MAX_BYTES = 1 << 30


@dataclass(frozen=True)
class Parcel:
    """A file or folder that a worker needs: where it is here, and the digest of its contents."""

    digest: str
    path: str

    @classmethod
    def of(cls, path: str | Path) -> Parcel:
        return cls(tree_digest(Path(path)), str(Path(path).expanduser().resolve()))

    @property
    def size(self) -> int:
        """Return the size of all files."""
        path = Path(self.path)
        if path.is_file():
            return path.stat().st_size
        return sum(file.stat().st_size for _, file in files_in(path))

    def here(self, cache: Path) -> Path | None:
        """Return where this machine has it, at the same path or in a cache; None if nowhere."""
        for place in (Path(self.path), self._in(cache / self.digest)):
            if place.exists() and tree_digest(place) == self.digest:
                return place
        return None

    def _in(self, folder: Path) -> Path:
        return folder / Path(self.path).name

    def packed(self) -> bytes:
        """Return an archive of the file or folder."""
        content, top = io.BytesIO(), Path(self.path)
        # A worker has not what a link points to.
        with tarfile.open(fileobj=content, mode="w", dereference=True) as archive:
            if top.is_file():
                archive.add(top, arcname=top.name)
            for name, file in files_in(top) if top.is_dir() else ():
                archive.add(file, arcname=f"{top.name}/{name}", recursive=False)
        return content.getvalue()

    def unpack(self, content: bytes, cache: Path) -> None:
        """Put an archive into a cache; raise DataError if its contents have another digest."""
        cache.mkdir(parents=True, exist_ok=True)
        place = cache / self.digest
        part = cache / part_name(self.digest)
        try:
            try:
                _unpack(content, part)
                found = tree_digest(self._in(part))
            except (tarfile.TarError, OSError, ValueError) as error:
                raise _damaged(self, str(error)) from error
            finally:
                tree_digest.cache_clear()
            if found != self.digest:
                raise _damaged(self, f"the digest {found}")
            with locked(cache / f"{self.digest}.lock"):
                if place.exists() and self.here(cache) is None:
                    shutil.rmtree(place)  # damaged
                if not place.exists():
                    part.replace(place)
                    tree_digest.cache_clear()
        finally:
            shutil.rmtree(part, ignore_errors=True)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock between the processes of this machine."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _unpack(content: bytes, folder: Path) -> None:
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as archive:
        for member in archive:
            name = PurePosixPath(member.name)
            if not member.isfile() or name.is_absolute() or ".." in name.parts:
                raise ValueError(f"an entry {member.name!r}")
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            stream = archive.extractfile(member)
            assert stream is not None
            with stream, target.open("wb") as out:
                shutil.copyfileobj(stream, out)


def _damaged(parcel: Parcel, got: str) -> LrtfliteError:
    return DataError(
        f"Expected an archive of {parcel.path} with the digest {parcel.digest}, got {got}",
        "run the experiment again",
    )
