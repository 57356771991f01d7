"""Folders that bundles are written to: checked before the work, replaced once a bundle is whole."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lrtflite.bundle import FILES, INITIAL_FILE, MANIFEST_FILE
from lrtflite.errors import BundleError
from lrtflite.scratch import LOCK, scratch_folder
from lrtflite.undisturbed import undisturbed
from lrtflite.whole_file import check_folder, flush_file, flush_folder


@dataclass(frozen=True)
class Destination:
    """A folder that a bundle can be written to; make one with `Destination.at`.

    `replace` allows a bundle that is there to be replaced, `replaces` says that there was one.
    """

    path: Path
    replace: bool
    replaces: bool

    @classmethod
    def at(cls, out: str | Path | Destination, *, replace: bool = False) -> Destination:
        """Return the destination `out`, checked; one that was checked before, as it is.

        Raise BundleError if the folder holds anything but a bundle to replace, or cannot be
        written. Nothing is created yet.
        """
        if isinstance(out, Destination):
            return out
        path = Path(out)
        found = _names(path)
        _check_names(path, found, replace=replace)
        with _writing(path):
            check_folder(_workshop(path))
        return cls(path, replace, replaces=bool(found))

    @contextmanager
    def making_bundle(self) -> Iterator[Path]:
        """Yield an empty folder, which takes this place once the block has filled it."""
        out = self.path
        workshop = _workshop(out)
        with _writing(out):
            workshop.mkdir(parents=True, exist_ok=True)
            with scratch_folder(parent=workshop, prefix=".bundle-") as folder:
                made = folder / "bundle"
                made.mkdir()
                yield made
                for path in made.iterdir():
                    flush_file(path)
                flush_folder(made)
                # Files that someone put there meanwhile must not go with the old bundle.
                _check_names(out, _names(out) - {folder.name}, replace=self.replace)
                # Without its lock no later run removes the folder: killed in the middle of the
                # swap, this one may leave the old bundle in it.
                (folder / LOCK).unlink()
                with undisturbed():
                    if workshop == out.resolve():
                        _fill(out, made)
                    else:
                        _swap(made, out, aside=folder / "old")


def _check_names(out: Path, found: set[str], *, replace: bool) -> None:
    """Raise BundleError if a folder with these names in it is no place for a bundle."""
    if found and (
        MANIFEST_FILE not in found or found.difference({MANIFEST_FILE, *FILES, INITIAL_FILE})
    ):
        raise BundleError(
            f"Expected a new or empty folder, or a bundle and nothing else, got {out}; "
            "choose another --out"
        )
    if found and not replace:
        raise BundleError(
            f"Expected a new or empty folder, got the bundle {out}; choose another --out, or "
            "give --replace (states that were taught with it will not open with the new one)"
        )


def _fill(out: Path, made: Path) -> None:
    """Move the files into an empty folder; without its manifest, the last, it is no bundle yet."""
    for path in sorted(made.iterdir(), key=lambda path: path.name == MANIFEST_FILE):
        path.replace(out / path.name)
    flush_folder(out)


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
    flush_folder(out.parent)


def _names(out: Path) -> set[str]:
    """Return what a folder holds; the path's own name where it is something else."""
    if not out.exists() and not out.is_symlink():
        return set()
    if not out.is_dir():
        return {out.name}
    with _writing(out):
        return {path.name for path in out.iterdir()}


def _workshop(out: Path) -> Path:
    """Return the folder to work in, on the file system of `out`.

    An empty `out` itself: it may be a mount point, or the folder that someone stands in, and then
    cannot be swapped. Otherwise the folder that it is in.
    """
    whole = out.resolve()
    return whole if whole.is_dir() and not _names(out) else whole.parent


@contextmanager
def _writing(out: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise BundleError(f"Cannot write a bundle to {out}: {error.strerror or error}") from error
