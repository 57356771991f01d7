"""The folder of kept pictures, next to the state folder, with one folder per class slot.

mug.state/
mug.state.pictures/
    slot-00/  00000001-5f2c90ab31de.png  00000002-77a1e4c20b9d.jpg
    slot-03/  ...

A class that is renamed keeps its pictures, because its slot stays. The number in a name counts the
pictures of the slot in the order in which they were added; the rest is a digest of the content.
Other files and folders, links among them, are left alone and never read.
"""

from __future__ import annotations

import io
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrtflite.arguments import shown, whole_number
from lrtflite.errors import InputError, LrtfliteError, NotRegular, UnreadableFile
from lrtflite.files.atomic import flush_folder, write_atomic
from lrtflite.files.reading import read_whole
from lrtflite.frames.image_file import read_image
from lrtflite.system.extras import missing

SUFFIX = ".pictures"
# Largest picture that is kept or read, in bytes, and the maximum number of a slot.
MAX_BYTES, MAX_PICTURES = 32 << 20, 100_000
MAX_SLOT = 99_999
_DIGITS = 12
_SLOT = re.compile(r"slot-(\d{2}|[1-9]\d{2,4})", re.ASCII)
_NAME = re.compile(rf"(\d{{8}})-([0-9a-f]{{{_DIGITS}}})\.(?:png|jpg)", re.ASCII)
# First bytes of the formats that are kept as they are.
_STARTS = {b"\x89PNG\r\n\x1a\n": "png", b"\xff\xd8\xff": "jpg"}


@dataclass(frozen=True)
class KeptPicture:
    """A picture of a class slot; `id` is its name within the folder, such as slot-03/….png."""

    slot: int
    path: Path

    @property
    def id(self) -> str:
        return f"{self.path.parent.name}/{self.path.name}"

    def content(self) -> bytes:
        """Return the bytes of the file; raise UnreadableFile if it is gone, too large or a link."""
        try:
            return read_whole(self.path, most=MAX_BYTES)
        except (OSError, NotRegular) as error:
            reason = getattr(error, "strerror", None) or "not a regular file within the limits"
            raise UnreadableFile(
                f"Expected a readable picture, got {self.path} ({reason})",
                "replace or remove it",
                reason=reason,
            ) from error

    def read(self, size: int) -> NDArray[np.uint8]:
        """Return the picture as a frame (size, size, 3) uint8; raise UnreadableFile if damaged."""
        self.content()  # refuses links, FIFOs and files that are too large
        return read_image(self.path, size)


class KeptPictures:
    """The kept pictures in a folder, which need not exist yet.

    Each change is one file that is written, moved or deleted at once, so a reader in another
    process always sees whole pictures. Changes by several writers must not overlap.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    @classmethod
    def beside(cls, state: str | Path) -> KeptPictures:
        """Return the kept pictures of a state folder: STATE.pictures."""
        path = Path(os.path.abspath(state))  # "." has no name
        return cls(path.with_name(path.name + SUFFIX))

    @property
    def slots(self) -> tuple[int, ...]:
        """Return the slots that have a folder, in ascending order."""
        found = (_SLOT.fullmatch(path.name) for path in _folders(self.folder))
        return tuple(sorted(int(match[1]) for match in found if match))

    def of(self, slot: int) -> tuple[KeptPicture, ...]:
        """Return the pictures of a slot in the order in which they were added."""
        folder = self._folder(slot)
        if folder.is_symlink() or not folder.is_dir():
            return ()
        try:
            names = sorted(name for name in os.listdir(folder) if _NAME.fullmatch(name))
        except FileNotFoundError:  # another thread has just moved or deleted it
            return ()
        return tuple(KeptPicture(slot, folder / name) for name in names)

    def all(self) -> tuple[KeptPicture, ...]:
        """Return the pictures of all slots, slot by slot."""
        return tuple(picture for slot in self.slots for picture in self.of(slot))

    def find(self, identity: str) -> KeptPicture:
        """Return the picture with this id; raise InputError for an id that no picture has."""
        folder, _, name = identity.partition("/") if isinstance(identity, str) else ("", "", "")
        slot = _SLOT.fullmatch(folder)
        if slot and _NAME.fullmatch(name):
            for picture in self.of(int(slot[1])):
                if picture.path.name == name:
                    return picture
        raise InputError(
            f"Expected the id of a kept picture, got {shown(identity)}", "list the pictures again"
        )

    def add(self, slot: int, picture: NDArray[Any] | bytes) -> KeptPicture:
        """Keep a picture (H, W, 3) uint8 as PNG, or the bytes of a PNG or JPEG file as they are.

        Return the picture of the slot that has the same content, if there is one.
        """
        content = picture if isinstance(picture, bytes) else _png(picture)
        suffix = next((kind for start, kind in _STARTS.items() if content.startswith(start)), None)
        if suffix is None or len(content) > MAX_BYTES:
            raise InputError(
                f"Expected a PNG or JPEG file of at most {MAX_BYTES:,} bytes, "
                f"got {len(content):,} bytes of {'another format' if suffix is None else suffix}",
                "give the picture as an array",
            )
        return self._place(slot, sha256(content).hexdigest()[:_DIGITS], suffix, content)

    def delete(self, picture: KeptPicture) -> None:
        """Delete a picture; one that is gone already is fine."""
        found = self.find(picture.id)
        with _changing(found.path):
            found.path.unlink(missing_ok=True)

    def move(self, picture: KeptPicture, slot: int) -> KeptPicture:
        """Move a picture to another slot, and return it there."""
        found = self.find(picture.id)
        if found.slot == slot:
            return found
        digest, suffix = found.path.stem.partition("-")[2], found.path.suffix[1:]
        moved = self._same(slot, digest)
        with _changing(found.path):
            if moved is not None:
                found.path.unlink(missing_ok=True)
                return moved
            target = self._next(slot, digest, suffix)
            target.path.parent.mkdir(parents=True, exist_ok=True)
            found.path.rename(target.path)
            flush_folder(target.path.parent)
            return target

    def forget(self, slot: int) -> None:
        """Delete all pictures of a slot, with its folder."""
        folder = self._folder(slot)
        if folder.is_symlink() or not folder.is_dir():
            return
        with _changing(folder):
            shutil.rmtree(folder)
            with suppress(OSError):  # the last class is gone
                self.folder.rmdir()

    def _place(self, slot: int, digest: str, suffix: str, content: bytes) -> KeptPicture:
        known = self._same(slot, digest)
        if known is not None:
            return known
        target = self._next(slot, digest, suffix)
        with _changing(target.path):
            write_atomic(target.path, content)
        return target

    def _same(self, slot: int, digest: str) -> KeptPicture | None:
        same = (each for each in self.of(slot) if each.path.stem.endswith(f"-{digest}"))
        return next(same, None)

    def _next(self, slot: int, digest: str, suffix: str) -> KeptPicture:
        """Return the place of a new picture; raise InputError if the slot is full or linked."""
        folder, pictures = self._folder(slot), self.of(slot)
        if folder.is_symlink() or len(pictures) >= MAX_PICTURES:
            reason = "is a link" if folder.is_symlink() else f"has {len(pictures):,} pictures"
            raise InputError(f"Cannot keep a picture in {folder}: it {reason}", "remove some")
        last = int(pictures[-1].path.name.partition("-")[0]) if pictures else 0
        return KeptPicture(slot, folder / f"{last + 1:08d}-{digest}.{suffix}")

    def _folder(self, slot: int) -> Path:
        return self.folder / f"slot-{whole_number('slot', slot, most=MAX_SLOT):02d}"


def _folders(folder: Path) -> list[Path]:
    """Return the folders in a folder that are not links; none if it does not exist."""
    if not folder.is_dir():
        return []
    return [path for path in folder.iterdir() if path.is_dir() and not path.is_symlink()]


def _png(picture: NDArray[Any]) -> bytes:
    try:
        from PIL import Image
    except ImportError:
        raise missing("PIL") from None
    pixels = np.asarray(picture)
    if pixels.ndim != 3 or pixels.shape[2] != 3 or pixels.dtype != np.uint8 or not pixels.size:
        raise InputError(
            f"Expected a picture (H, W, 3) uint8, got {pixels.shape} {pixels.dtype}", "convert it"
        )
    out = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(pixels)).save(out, "PNG")
    return out.getvalue()


@contextmanager
def _changing(path: Path) -> Iterator[None]:
    """Turn an OSError of the block into an LrtfliteError that names `path`."""
    try:
        yield
    except OSError as error:
        raise LrtfliteError(
            f"Cannot change the kept pictures in {path}: {error.strerror or error}",
            "check the disk and its permissions",
        ) from error
