"""Names of the files in a state folder, and which of them to keep."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from lrtflite.errors import StateError
from lrtflite.state_meta import Record

# Eight digits, or up to twelve of which the first is not 0, as `name_of` writes them.
_NUMBER = r"(\d{8}|[1-9]\d{8,11})"
MOST_NUMBER = 10**12 - 1
GENERATION = re.compile(rf"state-{_NUMBER}\.safetensors", re.ASCII)
_NUMBERED = re.compile(rf"(?:state|tensors|rows)-{_NUMBER}\.(?:safetensors|damaged)", re.ASCII)
_PART = re.compile(rf"(?:tensors|rows)-{_NUMBER}\.safetensors", re.ASCII)
_LEFTOVER = re.compile(rf"\.state-{_NUMBER}\.part", re.ASCII)
# Generations of states before format 5.
EARLIER = re.compile(r"state-\d{8}\.npz", re.ASCII)
# A file of ours that is not part of the state.
CHECKED_FILE = "checked.json"


def name_of(kind: str, number: int) -> str:
    """Return the name of a file of a generation: `state`, `tensors` or `rows`."""
    return f"{kind}-{number:08d}.safetensors"


def numbers(names: Iterable[str]) -> list[int]:
    """Return the numbers of all generations, oldest first."""
    return sorted(int(match[1]) for name in names if (match := GENERATION.fullmatch(name)))


def next_number(names: Iterable[str]) -> int:
    """Return a number that no file has had, not even a leftover or a damaged one."""
    taken = [int(match[1]) for name in names if (match := _NUMBERED.fullmatch(name))]
    number = max(taken, default=-1) + 1
    if number > MOST_NUMBER:  # its name would not be found again
        raise StateError(
            f"Expected a generation below {MOST_NUMBER} in the state folder, got {number - 1}; "
            "open a new state path"
        )
    return number


def leftovers(names: Iterable[str]) -> list[str]:
    """Return the names of unfinished generations."""
    return [name for name in names if _LEFTOVER.fullmatch(name)]


def is_foreign(names: Iterable[str]) -> bool:
    """Return whether a folder holds other files and no state."""
    own = (_NUMBERED, _LEFTOVER)
    found = [name for name in names if name != CHECKED_FILE]
    if any(GENERATION.fullmatch(name) or EARLIER.fullmatch(name) for name in found):
        return False
    return not all(any(each.fullmatch(name) for each in own) for name in found)


def kept(records: Mapping[int, Record]) -> set[int]:
    """Return the generations to keep: the newest, the one before it, and perhaps a spare.

    The spare is an older generation that shares no tensors with the newest. It is kept while the
    one before shares some, so that one damaged file never spoils all generations.
    """
    order = sorted(records, reverse=True)
    stay = set(order[:2])
    own = {named.name for named in records[order[0]].tensors}

    def shares(number: int) -> bool:
        return any(named.name in own for named in records[number].tensors)

    if len(order) > 1 and shares(order[1]):
        stay.update([number for number in order[2:] if not shares(number)][:1])
    return stay


def unused(names: Iterable[str], records: Iterable[Record]) -> list[str]:
    """Return the names of files with tensors or rows that no generation names."""
    used = frozenset().union(*(record.names for record in records))
    return [name for name in names if _PART.fullmatch(name) and name not in used]


def temporary(folder: Path, number: int) -> Path:
    """Return the path of a generation that is being written."""
    return folder / f".state-{number:08d}.part"
