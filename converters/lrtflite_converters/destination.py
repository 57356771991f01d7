"""Where a bundle is put: refused if it holds anything else, replaced once the new one is whole."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lrtflite.bundle import FILES, MANIFEST
from lrtflite.errors import BundleError


def check_out(out: Path, *, replace: bool) -> None:
    """Refuse an output path that holds anything but a bundle to replace, or cannot be written."""
    if out.exists():
        found = {path.name for path in out.iterdir()} if out.is_dir() else {out.name}
        if found and (MANIFEST not in found or found.difference({MANIFEST, *FILES})):
            raise BundleError(
                f"Expected a new or empty folder, or a bundle and nothing else, got {out}; "
                "choose another --out"
            )
        if found and not replace:
            raise BundleError(
                f"Expected a new or empty folder, got the bundle {out}; choose another --out, or "
                "give --replace (states that were taught with it will not open with the new one)"
            )
    parent_of(out)


def put_in_place(made: Path, out: Path, *, aside: Path) -> None:
    """Swap folders, so that the old bundle or the new one is there."""
    if out.exists() and not any(out.iterdir()):
        # It may be the folder that someone stands in, which cannot be swapped.
        for name in (*FILES, MANIFEST):
            (made / name).replace(out / name)
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


def parent_of(out: Path) -> Path:
    parent = out.resolve().parent
    with writing(out):
        parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=parent):
            pass
    return parent


@contextmanager
def writing(out: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise BundleError(f"Cannot write a bundle to {out}: {error.strerror or error}") from error
