"""Read the arrays and texts of an HDF5 file that somebody else may have made.

Such a file can point at other files, declare arrays without values, and list one text a million
times. Only what lies in the file itself is read, once, and never more than the file holds.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Maximum number of groups and arrays, of groups inside each other, and of characters in the name of
# a group.
MAX_OBJECTS, MAX_DEPTH, MAX_NAME = 200_000, 32, 1000


@dataclass(frozen=True)
class Contents:
    """The arrays of a group by path, and the names that groups have as an attribute, by path."""

    arrays: dict[str, NDArray[np.float32]]
    names: dict[str, str]


class Hdf5:
    """A file in RAM; methods raise one of `zip_file.MALFORMED` for malformed bytes."""

    def __init__(self, content: bytes) -> None:
        import h5py  # type: ignore[import-untyped]

        self._size = len(content)
        self._file = h5py.File(io.BytesIO(content), "r")

    def __enter__(self) -> Hdf5:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()

    def text(self, name: str, *, most: int) -> str | None:
        """Return an attribute of the file that is one text, or None if there is none."""
        return _text(self._file, name, most)

    def contents(self, named: str | None = None, *, group: str | None = None) -> Contents:
        """Return the arrays of the file, or of one of its groups.

        `named` is the last part of the paths of groups whose attribute `name` is returned too, by
        the path above them.
        """
        start = self._file if group is None else _member(self._file, group)
        if start is None or not hasattr(start, "items"):
            raise ValueError(f"{group} is missing")
        arrays: dict[str, NDArray[np.float32]] = {}
        names: dict[str, str] = {}
        left = self._size
        for path, found in _walk(start):
            if hasattr(found, "items"):
                folder, _, last = path.rpartition("/")
                if last == named and (name := _text(found, "name", MAX_NAME)) is not None:
                    names[folder] = name
            elif found.dtype.kind in "fiu":
                left -= found.nbytes
                arrays[path] = _array(found, path, left)
        return Contents(arrays, names)


def _walk(start: Any) -> Iterator[tuple[str, Any]]:
    """Yield groups and datasets by path, each once; links to other places are not followed."""
    from h5py import Dataset, Group, h5o

    waiting, seen = [("", start, 0)], set[tuple[int, int]]()
    while waiting:
        above, group, depth = waiting.pop()
        if depth > MAX_DEPTH:
            raise ValueError(f"groups inside each other, more than {MAX_DEPTH}")
        for name in group:
            found = _member(group, name)
            if not isinstance(found, (Group, Dataset)):
                continue
            info = h5o.get_info(found.id)
            if (info.fileno, info.addr) in seen:
                continue
            seen.add((info.fileno, info.addr))
            if len(seen) > MAX_OBJECTS:
                raise ValueError(f"more than {MAX_OBJECTS:,} groups and arrays")
            path = f"{above}{name}"
            yield path, found
            if isinstance(found, Group):
                waiting.append((f"{path}/", found, depth + 1))


def _member(group: Any, name: str) -> Any:
    """Return a member of a group, or None if it is absent or a link to another place or file."""
    from h5py import HardLink

    link = group.get(name, getlink=True)
    return group[name] if isinstance(link, HardLink) else None


def _array(data: Any, path: str, left: int) -> NDArray[np.float32]:
    # An array without its own bytes may be of any size, or lie in another file.
    if data.is_virtual or data.external or data.chunks is not None or left < 0:
        raise ValueError(f"an array {path[:80]} that is not stored as Keras does")
    if data.id.get_storage_size() != data.nbytes:
        raise ValueError(f"an array {path[:80]} without its values")
    with np.errstate(over="ignore"):  # infinity is refused where the array is used
        return np.asarray(data[()], np.float32)


def _text(owner: Any, name: str, most: int) -> str | None:
    if name not in owner.attrs:
        return None
    attribute = owner.attrs.get_id(name)
    # A list may hold the same text any number of times.
    if attribute.shape != () or attribute.get_storage_size() > most:
        raise ValueError(f"an invalid attribute {name}")
    found = owner.attrs[name]
    if not isinstance(found, (str, bytes)):
        return None
    if len(found) > most:
        raise ValueError(f"an attribute {name} of more than {most:,} bytes")
    return found.decode() if isinstance(found, bytes) else found
