"""Answer two questions about installed packages from the names of their folders.

`importlib.metadata` answers them too, but it loads Python's email package and twenty others: 2 MB
of RAM. It still decides where the folders leave a doubt.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator

_INFO = re.compile(r"(?P<name>.+)-(?P<version>[0-9][0-9A-Za-z.]*)\.dist-info")
_FOLDERS = (".dist-info", ".egg-info")


def may_have_entry_points(group: str) -> bool:
    """Return False only if no installed package can have an entry point of this group."""
    for folder in sys.path:
        if os.path.isfile(folder):  # a zip of packages
            return True
        for name in _names(folder):
            if name.endswith(".egg"):
                return True
            if name.endswith(_FOLDERS) and _mentions(os.path.join(folder, name), group):
                return True
    return False


def installed_version(distribution: str) -> str:
    """Return the version of an installed package, or raise PackageNotFoundError."""
    wanted = _plain(distribution)
    for folder in sys.path:
        for name in _names(folder):
            found = _INFO.fullmatch(name)
            if found is not None and _plain(found["name"]) == wanted:
                return found["version"]
    from importlib import metadata

    return metadata.version(distribution)


def _names(folder: str) -> Iterator[str]:
    try:
        yield from os.listdir(folder or ".")
    except OSError:
        return


def _mentions(folder: str, group: str) -> bool:
    try:
        with open(os.path.join(folder, "entry_points.txt"), "rb") as file:
            return group.encode() in file.read()
    except OSError:
        return False


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
