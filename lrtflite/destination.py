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
    found = _names(out)
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
    _workshop(out)


@contextmanager
def making_bundle(out: Path) -> Iterator[Path]:
    """Yield an empty folder, which takes the place of `out` once the block has filled it."""
    workshop = _workshop(out)
    with _writing(out), scratch_folder(parent=workshop, prefix=".bundle-") as folder:
        made = folder / "bundle"
        made.mkdir()
        yield made
        # Without its lock no later run removes the folder: killed in the middle of the swap, this
        # one may leave the old bundle in it.
        (folder / LOCK).unlink()
        with undisturbed():
            if workshop == out.resolve():
                _fill(out, made)
            else:
                _swap(made, out, aside=folder / "old")


def _fill(out: Path, made: Path) -> None:
    """Move the files into an empty folder; without its manifest, the last, it is no bundle yet."""
    for path in sorted(made.iterdir(), key=lambda path: path.name == MANIFEST):
        path.replace(out / path.name)


def _swap(made: Path, out: Path, *, aside: Path) -> None:
    """Swap folders, so that the old bundle or the new one is there."""
    replaces = out.exists()
    if replaces:
        out.replace(aside)
    try:
        made.replace(out)
    except BaseException:
        if replaces:
            aside.replace(out)
        raise


def _names(out: Path) -> set[str]:
    """Return what a folder holds; the path's own name where it is something else."""
    if not out.exists() and not out.is_symlink():
        return set()
    if not out.is_dir():
        return {out.name}
    with _writing(out):
        return {path.name for path in out.iterdir()}


def _workshop(out: Path) -> Path:
    """Return the folder to work in, on the file system of `out`; make sure it can be written.

    An empty `out` itself: it may be a mount point, or the folder that someone stands in, and then
    cannot be swapped. Otherwise the folder that it is in.
    """
    whole = out.resolve()
    workshop = whole if whole.is_dir() and not _names(out) else whole.parent
    with _writing(out):
        workshop.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=workshop):
            pass
    return workshop


@contextmanager
def _writing(out: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise BundleError(f"Cannot write a bundle to {out}: {error.strerror or error}") from error
