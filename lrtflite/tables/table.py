"""Tables of named choices: every policy, codec, network and so on is registered in one.

The command line, the checks of options, the documents and the tests read names from tables.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any, Generic, TypeVar, cast

from lrtflite.errors import InputError
from lrtflite.tables.plugins import load_plugins

Entry = TypeVar("Entry")


class Table(Mapping[str, Entry], Generic[Entry]):
    """Entries by the name that a user types; plugins may add more.

    An entry may be given as "module:attribute", which is imported on first use. Listing the names
    therefore does not load the modules of the entries.
    """

    def __init__(self, kind: str, entries: Mapping[str, Entry | str]) -> None:
        self.kind = kind
        self._entries: dict[str, Entry | str] = dict(entries)

    def register(self, name: str, entry: Entry | str) -> None:
        """Add an entry; raise InputError if the name is taken."""
        if name in self._entries:
            raise InputError(
                f"Expected a new name for a {self.kind}, got {name!r}, which is taken",
                "choose another",
            )
        self._entries[name] = entry

    @contextmanager
    def registered(self, name: str, entry: Entry | str) -> Iterator[None]:
        """Add an entry until the block ends; raise InputError if the name is taken."""
        self.register(name, entry)
        try:
            yield
        finally:
            del self._entries[name]

    def choose(self, name: object) -> Entry:
        """Return the entry called `name`, or raise InputError that lists all names."""
        self.check(name)
        return self[cast(str, name)]

    def check(self, name: object) -> None:
        """Raise InputError unless there is an entry called `name`; do not import it."""
        if name not in self:
            near = get_close_matches(str(name), list(self), n=1)
            advice = f"did you mean {near[0]!r}?" if near else "choose one of these"
            article = "an" if self.kind[0] in "aeiou" else "a"
            raise InputError(
                f"Expected {article} {self.kind} of {', '.join(self)}, got {name!r}", advice
            )

    def __getitem__(self, name: str) -> Entry:
        load_plugins()
        entry = self._entries[name]
        if isinstance(entry, str):
            module, _, attribute = entry.partition(":")
            found: Any = getattr(importlib.import_module(module), attribute)
            self._entries[name] = found
            return cast(Entry, found)
        return entry

    def __contains__(self, name: object) -> bool:
        load_plugins()
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        load_plugins()
        return iter(self._entries)

    def __len__(self) -> int:
        load_plugins()
        return len(self._entries)


def first_sentence(documented: object) -> str:
    """Return the first line of a docstring, the description of a table's entry."""
    return (documented.__doc__ or "").strip().partition("\n")[0]
