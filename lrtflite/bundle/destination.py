"""Folders for new bundles: checked first, and replaced once the new bundle is complete."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lrtflite.bundle.bundle import EARLIER_INITIAL_FILE, MANIFEST_FILE, NAMES
from lrtflite.errors import BundleError
from lrtflite.files.atomic import check_folder, flush_file, flush_folder
from lrtflite.files.deferred_signals import deferred_signals
from lrtflite.files.scratch import LOCK, scratch_folder
from lrtflite.files.temporary_names import BUNDLE_PREFIX, leftovers


@dataclass(frozen=True)
class Destination:
    """A folder that a bundle can be written to; make one with `Destination.at`.

    `replace` allows an existing bundle to be replaced; `replaces` is true if there was one.
    """

    path: Path
    replace: bool
    replaces: bool

    @classmethod
    def at(cls, out: str | Path | Destination, *, replace: bool = False) -> Destination:
        """Check the folder `out` and return it as a destination; return a Destination unchanged.

        Raise BundleError if the folder contains anything other than a bundle to replace, or is not
        writable. Create nothing yet.
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
        """Yield an empty folder; after the block, move the bundle in it to this place."""
        out = self.path
        workshop = _workshop(out)
        with _writing(out):
            workshop.mkdir(parents=True, exist_ok=True)
            with scratch_folder(parent=workshop, prefix=BUNDLE_PREFIX) as folder:
                made = folder / "bundle"
                made.mkdir()
                yield made
                for path in made.iterdir():
                    flush_file(path)
                flush_folder(made)
                # Files that someone added meanwhile must not be deleted with the old bundle.
                _check_names(out, _names(out) - {folder.name}, replace=self.replace)
                # Without a lock file, no later process removes the folder. It may hold the old
                # bundle if this process is killed in the middle of the swap.
                (folder / LOCK).unlink()
                with deferred_signals():
                    if workshop == out.resolve():
                        _fill(out, made)
                    else:
                        _swap(made, out, aside=folder / "old")


def _check_names(out: Path, found: set[str], *, replace: bool) -> None:
    """Raise BundleError if a folder that contains these names cannot hold a bundle."""
    if found and (MANIFEST_FILE not in found or found.difference({*NAMES, EARLIER_INITIAL_FILE})):
        raise BundleError(
            f"Expected a new or empty folder, or a bundle and nothing else, got {out}",
            "choose another --out",
        )
    if found and not replace:
        raise BundleError(
            f"Expected a new or empty folder, got the bundle {out}",
            "choose another --out, or "
            "give --replace (states that were taught with it will not open with the new one)",
        )


def _fill(out: Path, made: Path) -> None:
    """Move the files into an empty folder; the manifest comes last and completes the bundle."""
    for path in sorted(made.iterdir(), key=lambda path: path.name == MANIFEST_FILE):
        path.replace(out / path.name)
    flush_folder(out)


def _swap(made: Path, out: Path, *, aside: Path) -> None:
    """Swap folders, so that either the old bundle or the new one always exists."""
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
    """Return the names in a folder without leftovers of a killed process.

    For a path that is not a folder, return its own name.
    """
    if not out.exists() and not out.is_symlink():
        return set()
    if not out.is_dir():
        return {out.name}
    with _writing(out):
        found = {path.name for path in out.iterdir()}
    return found.difference(leftovers(found, files=NAMES))


def _workshop(out: Path) -> Path:
    """Return the folder to work in, on the file system of `out`.

    It is an empty `out` itself, which cannot be swapped if it is a mount point or somebody's
    working directory. Otherwise it is the parent of `out`.
    """
    whole = out.resolve()
    return whole if whole.is_dir() and not _names(out) else whole.parent


@contextmanager
def _writing(out: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise BundleError(
            f"Cannot write a bundle to {out}: {error.strerror or error}", "choose another --out"
        ) from error
