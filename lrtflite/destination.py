"""Where a bundle is put: refused if it holds anything else, replaced once the new one is whole."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lrtflite.bundle import FILES, INITIAL, MANIFEST
from lrtflite.errors import BundleError
from lrtflite.scratch import LOCK, scratch_folder
from lrtflite.undisturbed import undisturbed


def check_out(out: Path, *, replace: bool) -> None:
    """Raise BundleError if `out` holds anything but a bundle to replace, or cannot be written."""
    if out.exists():
        found = {path.name for path in out.iterdir()} if out.is_dir() else {out.name}
        if found and (MANIFEST not in found or found.difference({MANIFEST, *FILES, INITIAL})):
            raise BundleError(
                f"Expected a new or empty folder, or a bundle and nothing else, got {out}; "
                "choose another --out"
            )
        if found and not replace:
            raise BundleError(
                f"Expected a new or empty folder, got the bundle {out}; choose another --out, or "
                "give --replace (states that were taught with it will not open with the new one)"
            )
    _parent_of(out)


@contextmanager
def making_bundle(out: Path) -> Iterator[Path]:
    """Yield an empty folder, which takes the place of `out` once the block has filled it."""
    parent = _parent_of(out)
    with _writing(out), scratch_folder(parent=parent, prefix=".bundle-") as folder:
        made = folder / "bundle"
        made.mkdir()
        yield made
        # Without its lock no later run removes the folder: killed in the middle of the swap, this
        # one may leave the old bundle in it.
        (folder / LOCK).unlink()
        _put_in_place(made, out, aside=folder / "old")


def _put_in_place(made: Path, out: Path, *, aside: Path) -> None:
    """Swap folders, so that the old bundle or the new one is there."""
    with undisturbed():
        _swap(made, out, aside)


def _swap(made: Path, out: Path, aside: Path) -> None:
    if out.exists() and not any(out.iterdir()):
        # It may be the folder that someone stands in, which cannot be swapped. A folder without a
        # manifest is no bundle yet, so that comes last.
        for path in sorted(made.iterdir(), key=lambda path: path.name == MANIFEST):
            path.replace(out / path.name)
        return
    replaces = out.exists()
    if replaces:
        out.replace(aside)
    try:
        made.replace(out)
    except BaseException:
        if replaces:
            aside.replace(out)
        raise


def _parent_of(out: Path) -> Path:
    parent = out.resolve().parent
    with _writing(out):
        parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=parent):
            pass
    return parent


@contextmanager
def _writing(out: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise BundleError(f"Cannot write a bundle to {out}: {error.strerror or error}") from error
