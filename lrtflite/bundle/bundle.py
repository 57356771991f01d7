"""A bundle: the folder that `lrtflite convert` makes and a device needs."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from lrtflite.arguments import shown
from lrtflite.bundle.manifest import BUNDLE_FORMAT, Manifest
from lrtflite.bundle.manifest_json import MAX_MANIFEST, read_manifest
from lrtflite.bundle.signing import MANIFEST_FILE as MANIFEST_FILE
from lrtflite.bundle.signing import SIGNATURE_FILE, check_signature
from lrtflite.errors import BundleError, NotRegular, TooShort, problem_of
from lrtflite.files.atomic import write_atomic
from lrtflite.files.bundle_file import BundleFile
from lrtflite.files.digest import File, digest
from lrtflite.files.reading import FileSource, read_whole
from lrtflite.tables.table import Table

FEATURES_FILE = "features.tflite"
HEAD_FILE = "head.tflite"
GOLDEN_FILE = "golden.npz"
FILES = (FEATURES_FILE, HEAD_FILE, GOLDEN_FILE)
# The state that the bundle ships with; missing if the bundle was taught nothing.
INITIAL_FILE = "initial-state.safetensors"
EARLIER_INITIAL_FILE = "initial-state.npz"
# Every name that a bundle's folder may hold.
NAMES = (MANIFEST_FILE, SIGNATURE_FILE, *FILES, INITIAL_FILE)
# Maximum size of a file that is kept in RAM, such as those of a signed bundle, in bytes.
MAX_IN_RAM = 1 << 30

# Bundles with a name, and the functions that make them from installed packages.
PHOTOS = "photos"
PACKAGED: Table[Callable[[], Bundle]] = Table(
    "packaged bundle", {PHOTOS: "lrtflite.photos.packaged:packaged_bundle"}
)


@dataclass(frozen=True)
class Bundle:
    """An opened bundle whose files match their digests.

    `contents` has the files of a bundle whose signature was required: the bytes that were checked
    are the bytes that are used.
    """

    path: Path
    manifest: Manifest
    contents: Mapping[str, bytes] = field(default_factory=dict, repr=False, compare=False)
    signed_with: str | None = None

    @classmethod
    def open(cls, path: str | Path, *, require_signature: str | Path | None = None) -> Bundle:
        """Read the manifest and check every file against its digest.

        `path` is the bundle's folder, or the manifest in it.
        `require_signature` is the file of a public key. The bundle must be signed with it, and all
        its files are then kept in RAM. The name of a packaged bundle, "photos", is a path too.
        """
        if is_packaged(path):
            found = PACKAGED[str(path)]()
            if require_signature is None:
                return found
            path = found.path
        path = _folder_of(Path(path))
        content = _read_manifest_file(path)
        if require_signature is not None:
            check_signature(path, content, Path(require_signature))
        manifest_path = path / MANIFEST_FILE
        try:
            text = content.decode()
        except UnicodeDecodeError as error:
            raise BundleError(
                f"Cannot read {manifest_path}: {error}", "copy the bundle again"
            ) from error
        manifest = read_manifest(text, where=str(manifest_path))
        _check_names(manifest, manifest_path)
        contents: dict[str, bytes] = {}
        for name, expected in manifest.files.items():
            if require_signature is None:
                _check_file(path / name, expected)
            else:
                contents[name] = _check_content(path / name, expected)
        key = None if require_signature is None else str(require_signature)
        return cls(path, manifest, contents, key)

    def file(self, name: str) -> BundleFile:
        """Return a file, with its bytes if the bundle was opened with a signature."""
        return BundleFile(self.path / name, self.contents.get(name))

    def content(self, name: str) -> bytes:
        """Return the bytes of a file, after a check if they are read only now."""
        if name in self.contents:
            return self.contents[name]
        return _check_content(self.path / name, self.manifest.files[name])

    @property
    def features(self) -> BundleFile:
        return self.file(FEATURES_FILE)

    @property
    def head(self) -> BundleFile:
        return self.file(HEAD_FILE)

    @property
    def golden(self) -> BundleFile:
        return self.file(GOLDEN_FILE)

    @property
    def initial(self) -> BundleFile | None:
        """Return the initial state; None if the bundle was taught nothing."""
        return self.file(INITIAL_FILE) if INITIAL_FILE in self.manifest.files else None

    @property
    def identity(self) -> str:
        """Return a digest of both models; a state only opens with the models it was made with."""
        digests = [self.manifest.files[name].sha256 for name in (FEATURES_FILE, HEAD_FILE)]
        return hashlib.sha256("".join(digests).encode()).hexdigest()


def is_packaged(path: str | Path) -> bool:
    """Return whether a path is the name of a packaged bundle, and not a bundle of that name."""
    return str(path) in PACKAGED and not (Path(path) / MANIFEST_FILE).exists()


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write the manifest into the folder of a new bundle, in the current format."""
    write_atomic(folder / MANIFEST_FILE, replace(manifest, format=BUNDLE_FORMAT).to_json())


@contextmanager
def demo_bundle() -> Iterator[Path]:
    """Yield the folder of the bundle that comes with the package."""
    from importlib import resources

    with resources.as_file(resources.files("lrtflite") / "demo_bundle") as path:
        yield path


def _folder_of(path: Path) -> Path:
    """Return the folder of a bundle, of which the user may have named the manifest."""
    return path.parent if path.name == MANIFEST_FILE and path.is_file() else path


def _no_bundle(path: Path) -> tuple[str, str]:
    """Return what is at a path without a bundle, and advice that overwrites nothing."""
    if path.exists():
        got = "is a file" if path.is_file() else "has none"
        return got, "give the folder of a bundle, which `lrtflite convert` makes"
    make = shlex.join(["lrtflite", "convert", "--replay-layer", "pool6", "--out", str(path)])
    return "is not there", f"check the path, or make one with: {make}"


def _read_manifest_file(path: Path) -> bytes:
    manifest_path = path / MANIFEST_FILE
    try:
        return read_whole(manifest_path, most=MAX_MANIFEST)
    except (FileNotFoundError, NotADirectoryError) as error:
        got, advice = _no_bundle(path)
        raise BundleError(
            f"Expected a bundle folder with {MANIFEST_FILE}, got {path}, which {got}", advice
        ) from error
    except (OSError, MemoryError, NotRegular, TooShort) as error:
        problem = problem_of(error)
        raise BundleError(
            f"Cannot read {manifest_path}: {problem}", "copy the bundle again"
        ) from error


def _check_names(manifest: Manifest, where: Path) -> None:
    """Raise BundleError unless the manifest lists the files of a bundle and no others."""
    for name in FILES:
        if name not in manifest.files:
            raise BundleError(
                f"Expected {name} among the files of {where}, got none", "convert the bundle again"
            )
    if EARLIER_INITIAL_FILE in manifest.files:
        raise BundleError(
            f"Expected an initial state of format 5 in {where.parent}, got format 4",
            "teach the bundle again with this version",
        )
    for name in manifest.files:
        if name not in (*FILES, INITIAL_FILE):
            raise BundleError(
                f"Expected only {', '.join((*FILES, INITIAL_FILE))} among the files of {where}, "
                f"got {shown(name)}",
                "copy the bundle again",
            )


def _check_content(path: Path, expected: File) -> bytes:
    """Return the bytes of a file after a check."""
    with _reading(path):
        if expected.bytes > MAX_IN_RAM:
            raise BundleError(
                f"Expected at most {MAX_IN_RAM:,} bytes in {path} to keep it in RAM, got "
                f"{expected.bytes:,}",
                "ship a smaller replay memory",
            )
        content = read_whole(path, most=MAX_IN_RAM)
    _compare(path, File(hashlib.sha256(content).hexdigest(), len(content)), expected)
    return content


def _check_file(path: Path, expected: File) -> None:
    with _reading(path):
        # Before a digest, which would read a file without an end for ever.
        size = FileSource(path).size
        _compare(path, digest(path) if size == expected.bytes else File("", size), expected)


def _compare(path: Path, found: File, expected: File) -> None:
    if found.bytes != expected.bytes:
        raise BundleError(
            f"Expected {expected.bytes} bytes in {path}, got {found.bytes}",
            "the file is truncated or from another bundle: copy the bundle again",
        )
    if found.sha256 != expected.sha256:
        raise BundleError(
            f"Expected SHA-256 {expected.sha256[:12]}... of {path}, got {found.sha256[:12]}...",
            "the file was changed after conversion: copy the bundle again",
        )


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, MemoryError) as error:
        why = getattr(error, "strerror", None) or "out of memory"
        raise BundleError(
            f"Expected the bundle file {path}, got: {why}", "copy the bundle again"
        ) from error
    except (NotRegular, TooShort) as error:
        raise BundleError(f"{str(error).partition('; ')[0]}", "copy the bundle again") from error
