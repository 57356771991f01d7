"""Find the classes in an archive, and the pictures of each.

project.tm (as Teachable Machine saves an image project):
    manifest.json
    mug-!-0.jpg  mug-!-1.jpg  stapler-!-0.jpg

things.zip, with or without a folder around all classes:
    things/mug/IMG_1.jpg  things/stapler/a.png
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from lrtflite.data.folders.classes import COMPANIONS, by_name
from lrtflite.data.media import ANIMATIONS, STILLS
from lrtflite.data.projects.archive import Archive
from lrtflite.errors import DataError, InputError
from lrtflite.files.strict_json import strict_json
from lrtflite.files.zip import MALFORMED
from lrtflite.labels import check_label, new_label

MANIFEST = "manifest.json"
# Text between the name of a class and the number of a picture.
MARK = "-!-"
# Kinds of files in an archive of class folders.
PICTURES = STILLS + ANIMATIONS
# Folders that archivers on macOS add.
_FOREIGN = "__MACOSX"
# The kind of a project of pictures, where its manifest has one.
_IMAGE = "image"

Classes = Mapping[str, Mapping[Path, str]]
"""The pictures of each class, as a path below the archive and the name of the member."""


def read_classes(archive: Archive) -> dict[str, dict[Path, str]]:
    """Return the classes in the order of their names, each with its pictures by name."""
    names = [name for name in archive.names if not _is_hidden(name)]
    is_project = any(MARK in name for name in names) or MANIFEST in names
    found = _of_project(archive, names) if is_project else _of_folders(archive, names)
    if not found:
        raise DataError(f"Expected pictures in {archive.path}, got none", "add some to the project")
    classes: dict[str, dict[Path, str]] = {}
    for written in sorted(found, key=lambda name: by_name(Path(name))):
        name = _class_name(archive, written, classes)
        if name in classes:
            raise DataError(
                f"Expected one class named {name!r} in {archive.path}, got two whose accents are "
                "encoded differently",
                "rename one",
            )
        pictures = {archive.path / member: member for member in found[written]}
        classes[name] = {path: pictures[path] for path in sorted(pictures, key=by_name)}
    return classes


def _of_project(archive: Archive, names: list[str]) -> dict[str, list[str]]:
    if MANIFEST in names:
        _check_kind(archive)
    found: dict[str, list[str]] = {}
    for name in names:
        if name == MANIFEST:
            continue
        label, mark, _ = name.rpartition(MARK)
        if not mark:
            raise DataError(
                f"Expected pictures named CLASS{MARK}NUMBER in {archive.path}, as in a Teachable "
                f"Machine image project, got {name[:80]!r}",
                "save an image project; projects of sounds or poses have no pictures",
            )
        found.setdefault(label, []).append(name)
    return found


def _check_kind(archive: Archive) -> None:
    """Raise DataError for a project of sounds or poses."""
    try:
        manifest = strict_json(archive.manifest(MANIFEST).decode())
    except MALFORMED:  # text nested too deep is a RecursionError
        manifest = None
    if not isinstance(manifest, dict):
        raise DataError(
            f"Expected {MANIFEST} of {archive.path} as a JSON object, got a damaged one",
            "save the project again",
        )
    kind = manifest.get("type", _IMAGE)
    if kind != _IMAGE:
        raise DataError(
            f"Expected a Teachable Machine image project, got one of type {str(kind)[:40]!r} in "
            f"{archive.path}",
            "save an image project",
        )


def _of_folders(archive: Archive, names: list[str]) -> dict[str, list[str]]:
    names = [name for name in names if PurePosixPath(name).suffix.lower() not in COMPANIONS]
    parts = [PurePosixPath(name).parts for name in names]
    # One folder around all classes is left out.
    depth = 1 if parts and all(len(each) == 3 for each in parts) else 0
    if depth and len({each[0] for each in parts}) > 1:
        depth = 0
    found: dict[str, list[str]] = {}
    for name, each in zip(names, parts):
        if len(each) != depth + 2 or PurePosixPath(name).suffix.lower() not in PICTURES:
            kinds = " ".join(suffix[1:] for suffix in PICTURES)
            raise DataError(
                f"Expected a Teachable Machine project, or one folder of images ({kinds}) per "
                f"class, in {archive.path}, got {name[:80]!r}",
                "move it elsewhere, or unpack the archive and give folder:PATH for videos",
            )
        found.setdefault(each[depth], []).append(name)
    return found


def _class_name(archive: Archive, written: str, taken: Classes) -> str:
    try:
        return new_label(check_label(written), taken)
    except InputError as error:
        raise DataError(
            f"{error.problem}, the name of a class in {archive.path}", "rename the class"
        ) from error


def _is_hidden(name: str) -> bool:
    parts = PurePosixPath(name).parts
    return _FOREIGN in parts or any(part.startswith(".") for part in parts)
