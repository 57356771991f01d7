"""Every temporary name that a kill or a power cut can leave in a folder of a user.

Readers of folders ask here which names are leftovers. Folders in TMPDIR are in `scratch`.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable
from pathlib import PurePath

# Prefix of the folder in which a bundle is made, next to its place.
BUNDLE_PREFIX = ".bundle-"
# Prefix and suffix of a file that only tests whether a folder can be written.
PROBE = ".probe.", ".part"
_RANDOM = "[a-z0-9_]{8}"
_BUNDLE = re.compile(rf"{re.escape(BUNDLE_PREFIX)}{_RANDOM}", re.ASCII)
_PROBE = re.compile(rf"\.probe\.{_RANDOM}\.part", re.ASCII)
_GENERATION = re.compile(r"\.state-(\d{8}|[1-9]\d{8,11})\.part", re.ASCII)


def part_name(name: str) -> str:
    """Return a new name to write the file `name` under; its suffix stays.

    Keras and numpy choose the format by the suffix.
    """
    path = PurePath(name)
    return f".{path.stem}.{secrets.token_hex(4)}.part{path.suffix}"


def generation_part(number: int) -> str:
    """Return the name of a generation that is being written."""
    return f".state-{number:08d}.part"


def is_part_of(name: str, wanted: str) -> bool:
    """Return whether `part_name` may have made `name` for the file `wanted`."""
    path = PurePath(wanted)
    pattern = rf"\.{re.escape(path.stem)}\.{_RANDOM}\.part{re.escape(path.suffix)}"
    return re.fullmatch(pattern, name, re.ASCII) is not None


def leftovers(names: Iterable[str], *, files: Iterable[str]) -> list[str]:
    """Return the names that unfinished writing of these `files`, or of a state, has left."""
    files = tuple(files)
    own = (_BUNDLE, _PROBE, _GENERATION)
    return [
        name
        for name in names
        if any(each.fullmatch(name) for each in own)
        or any(is_part_of(name, wanted) for wanted in files)
    ]
