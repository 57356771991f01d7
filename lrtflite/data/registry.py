"""The table of data sets, and opening one by its name.

A new data set is one file with an opener and one line in `SOURCES`.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Callable

from lrtflite.data.choice import ClassChoice
from lrtflite.data.source import FrameSource, SourceRequest
from lrtflite.data.spec import split_spec
from lrtflite.errors import DataError, InputError
from lrtflite.progress import OnProgress
from lrtflite.tables.table import Table

# Endings of files that `tm:PATH` takes.
ARCHIVES = (".tm", ".zip")

Opener = Callable[[SourceRequest], FrameSource]


@dataclass(frozen=True)
class SourceEntry:
    """A line of `SOURCES`.

    `opener` is "module:function" of an `Opener`, imported when the source is first opened. `takes`
    names the text required after the colon, such as PATH; it is empty for a source that takes none.
    `summary` follows the name in help texts.
    """

    opener: str
    takes: str
    summary: str


SOURCES: Table[SourceEntry] = Table(
    "data set",
    {
        "synthetic": SourceEntry(
            "lrtflite.data.synthetic.source:open_synthetic",
            takes="",
            summary="drawn videos of 50 objects",
        ),
        "synthetic-backbone": SourceEntry(
            "lrtflite.data.synthetic.source:open_synthetic",
            takes="",
            summary="drawn pictures to train a backbone",
        ),
        "folder": SourceEntry(
            "lrtflite.data.folders.source:open_folder",
            takes="PATH",
            summary="your pictures and videos, one folder per class",
        ),
        "tm": SourceEntry(
            "lrtflite.data.projects.source:open_project",
            takes="PATH",
            summary="a Teachable Machine project, or a zip of class folders",
        ),
        "core50": SourceEntry(
            "lrtflite.data.core50.opener:open_core50",
            takes="PATH",
            summary="the CORe50 benchmark",
        ),
        "openloris": SourceEntry(
            "lrtflite.data.openloris.source:open_openloris",
            takes="PATH",
            summary="the OpenLORIS-object benchmark",
        ),
    },
)


def usage(name: str) -> str:
    """Return a data set's name as a user types it: `synthetic`, `folder:PATH`."""
    takes = SOURCES[name].takes
    return f"{name}:{takes}" if takes else name


def open_source(
    spec: str,
    *,
    size: int = 128,
    seed: int = 0,
    skip_unreadable: bool = False,
    on_progress: OnProgress | None = None,
) -> FrameSource:
    """Open a data set of `SOURCES` by name; `docs/data.md` lists names and settings.

    Every data set takes `?classes=a,b,c` or `?classes=20`: only these classes, or only the first
    20; see `ClassChoice`.

    `size` is the side of the frames; `seed` decides which frames are drawn or held out. All files
    are checked first, with a call of `on_progress` after each. A file that cannot be read is an
    error, or left out if `skip_unreadable`. `source_notes` returns remarks to print next to a
    result.
    """
    if not isinstance(size, int) or size < 1:
        raise InputError(f"Expected a frame size of at least 1, got {size!r}", "the default is 128")
    if not isinstance(seed, int) or seed < 0:
        raise InputError(f"Expected a seed of at least 0, got {seed!r}", "the default is 0")
    kind, settings = split_spec(spec)
    chosen = settings.pop("classes", None)
    choice = None if chosen is None else ClassChoice.parse(chosen)
    name, colon, argument = kind.partition(":")
    entry = SOURCES.get(name)
    if entry is None or bool(entry.takes) != bool(argument) or bool(colon) != bool(argument):
        raise _unknown_source(spec)
    request = SourceRequest(
        name=name,
        argument=argument,
        settings=settings,
        size=size,
        seed=seed,
        choice=choice,
        skip_unreadable=skip_unreadable,
        on_progress=on_progress,
    )
    return _opener(entry)(request)


def _opener(entry: SourceEntry) -> Opener:
    module, _, function = entry.opener.partition(":")
    opener: Opener = getattr(import_module(module), function)
    return opener


def _unknown_source(spec: str) -> DataError:
    """Return the error for a spec that names no data set, with the likeliest correction."""
    name, mark, query = spec, "", ""
    if "=" in spec.rpartition("?")[2]:
        name, mark, query = spec.rpartition("?")
    meant = _meant(name)
    hint = f"did you mean {f'{meant}{mark}{query}'!r}?" if meant else "give one of these"
    known = ", ".join(map(usage, SOURCES))
    return DataError(f"Expected one of {known} as the data set, got {spec!r}", hint)


def _meant(name: str) -> str | None:
    kind, colon, argument = name.partition(":")
    if name and _is_folder(name):
        return f"folder:{name}"
    if name.lower().endswith(ARCHIVES):
        return f"tm:{name}"
    near = difflib.get_close_matches(kind.lower(), SOURCES, n=1, cutoff=0.7)
    if near and (colon or "/" not in name):
        takes = SOURCES[near[0]].takes
        return f"{near[0]}:{argument or takes}" if takes else near[0]
    if argument and _is_folder(argument):  # dir:things
        return f"folder:{argument}"
    if not colon and ("/" in name or "\\" in name or name.startswith(("~", "."))):
        return f"folder:{name}"
    return None


def _is_folder(name: str) -> bool:
    try:
        return Path(name).expanduser().is_dir()
    except (OSError, RuntimeError, ValueError):  # too long, unknown user, a null byte
        return False
