"""Read the arrays of an `.npz` file that somebody else may have made, within limits of RAM.

`numpy.load` evaluates the header of an array with Python's own parser, whose errors are of many
kinds, and unpacks without limit. This reader knows the one form that numpy writes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrtflite.files.zip import ZipContent

SUFFIX = ".npy"
# Start of an array of version 1.0, which is followed by two bytes with the length of the header.
_MAGIC, _START = b"\x93NUMPY\x01\x00", 10
# One field of a header: a dtype without objects, an order, or a shape (numbers of Python 2 end
# with L).
_FIELD = re.compile(
    r"\s*(?P<quote>['\"])(?P<name>descr|fortran_order|shape)(?P=quote)\s*:\s*"
    r"(?:['\"](?P<dtype>[<>|=]?(?:[biufU]\d{1,4}|\?))['\"]|(?P<order>True|False)|"
    r"\(\s*(?P<shape>(?:\d{1,18}L?\s*,\s*)*(?:\d{1,18}L?\s*)?)\))\s*(?:,|$)"
)


def read_npz(
    content: bytes, *, most: int, names: Collection[str] | None = None
) -> dict[str, NDArray[Any]]:
    """Return the arrays of a file, or those of `names` that it has, of at most `most` bytes.

    Raise one of `zip_file.MALFORMED` for malformed bytes.
    """
    archive = ZipContent(content)
    for member in archive.names if names is None else ():
        if not member.endswith(SUFFIX):
            raise ValueError(f"a file {member[:40]!r}")
    chosen = [
        member
        for member in archive.names
        if names is None or (member.removesuffix(SUFFIX) in names and member.endswith(SUFFIX))
    ]
    if sum(map(archive.size, chosen)) > most:
        raise ValueError(f"more than {most:,} bytes")
    # `read` unpacks no more than the directory says, so the limit holds for unpacked bytes.
    return {
        member.removesuffix(SUFFIX): _array(archive.read(member, most=most), member)
        for member in chosen
    }


def _array(raw: bytes, member: str) -> NDArray[Any]:
    if not raw.startswith(_MAGIC):
        raise ValueError(f"version {tuple(raw[6:8])} of an array")
    end = _START + int.from_bytes(raw[_START - 2 : _START], "little")
    dtype, shape, fortran = _header(raw[_START:end].decode("latin1"), member)
    # Before an array of this shape is made.
    if dtype.itemsize == 0 or math.prod(shape) * dtype.itemsize != len(raw) - end:
        raise ValueError(f"an invalid array {member[:40]!r}")
    values = np.frombuffer(raw, dtype, offset=end) if len(raw) > end else np.empty(0, dtype)
    return values.reshape(shape[::-1]).T if fortran else values.reshape(shape)


def _header(text: str, member: str) -> tuple[np.dtype[Any], tuple[int, ...], bool]:
    """Return dtype, shape and whether the order is Fortran's."""
    fields = text.strip()
    found: dict[str, str] = {}
    if fields.startswith("{") and fields.endswith("}"):
        fields, place = fields[1:-1].strip(), 0
        while place < len(fields) and (match := _FIELD.match(fields, place)):
            for kind in ("dtype", "order", "shape"):
                if match[kind] is not None:
                    found[f"{match['name']} {kind}"] = match[kind]
            place = match.end()
        if place == len(fields) and set(found) == {
            "descr dtype",
            "fortran_order order",
            "shape shape",
        }:
            shape = tuple(int(side) for side in re.findall(r"\d+", found["shape shape"]))
            return np.dtype(found["descr dtype"]), shape, found["fortran_order order"] == "True"
    raise ValueError(f"an invalid array {member[:40]!r}")
