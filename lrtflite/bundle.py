"""A bundle: the folder that `lrtflite convert` makes and a device needs."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from lrtflite.errors import BundleError
from lrtflite.manifest import File, Manifest
from lrtflite.manifest_reading import read_manifest
from lrtflite.whole_file import write_whole

MANIFEST_FILE = "manifest.json"
FEATURES_FILE = "features.tflite"
HEAD_FILE = "head.tflite"
GOLDEN_FILE = "golden.npz"
FILES = (FEATURES_FILE, HEAD_FILE, GOLDEN_FILE)
# The state that the bundle ships with; missing if the bundle was taught nothing.
INITIAL_FILE = "initial-state.npz"


@dataclass(frozen=True)
class Bundle:
    """An opened bundle whose files match their digests."""

    path: Path
    manifest: Manifest

    @classmethod
    def open(cls, path: str | Path) -> Bundle:
        """Read the manifest and check every file against its digest."""
        path = Path(path)
        manifest_path = path / MANIFEST_FILE
        try:
            text = manifest_path.read_text(encoding="utf-8")
        except (FileNotFoundError, NotADirectoryError) as error:
            make = f"make one with: lrtflite convert --replay-layer pool6 --out {path}"
            raise BundleError(
                f"Expected a bundle folder with {MANIFEST_FILE}, got {path}, which "
                f"{'has none' if path.exists() else 'is not there'}; {make}"
            ) from error
        except (OSError, UnicodeDecodeError) as error:
            raise BundleError(
                f"Cannot read {manifest_path}: {error}; copy the bundle again"
            ) from error
        manifest = read_manifest(text, where=str(manifest_path))
        for name in FILES:
            if name not in manifest.files:
                raise BundleError(
                    f"Expected {name} among the files of {manifest_path}, got none; "
                    "convert the bundle again"
                )
        for name, expected in manifest.files.items():
            _check_file(path / name, expected)
        return cls(path, manifest)

    @property
    def features(self) -> Path:
        return self.path / FEATURES_FILE

    @property
    def head(self) -> Path:
        return self.path / HEAD_FILE

    @property
    def golden(self) -> Path:
        return self.path / GOLDEN_FILE

    @property
    def initial(self) -> Path | None:
        """Return the path of the initial state; None if the bundle was taught nothing."""
        return self.path / INITIAL_FILE if INITIAL_FILE in self.manifest.files else None

    @property
    def identity(self) -> str:
        """Return a digest of both models; a state only opens with the models it was made with."""
        digests = [self.manifest.files[name].sha256 for name in (FEATURES_FILE, HEAD_FILE)]
        return hashlib.sha256("".join(digests).encode()).hexdigest()


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write the manifest into the folder of a new bundle."""
    write_whole(folder / MANIFEST_FILE, manifest.to_json())


def digest(path: Path) -> File:
    """Return the size and SHA-256 of a file, which is read in chunks to save RAM."""
    sha, size = hashlib.sha256(), 0
    with path.open("rb") as file:
        while chunk := file.read(1 << 18):
            sha.update(chunk)
            size += len(chunk)
    return File(sha.hexdigest(), size)


@contextmanager
def demo_bundle() -> Iterator[Path]:
    """Yield the folder of the bundle that comes with the package."""
    with resources.as_file(resources.files("lrtflite") / "demo_bundle") as path:
        yield path


def _check_file(path: Path, expected: File) -> None:
    try:
        found = digest(path)
    except OSError as error:
        raise BundleError(
            f"Expected the bundle file {path}, got: {error.strerror}; copy the bundle again"
        ) from error
    if found.bytes != expected.bytes:
        raise BundleError(
            f"Expected {expected.bytes} bytes in {path}, got {found.bytes}; "
            "the file is truncated or from another bundle: copy the bundle again"
        )
    if found.sha256 != expected.sha256:
        raise BundleError(
            f"Expected SHA-256 {expected.sha256[:12]}... of {path}, got {found.sha256[:12]}...; "
            "the file was changed after conversion: copy the bundle again"
        )
