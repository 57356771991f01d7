"""Tables of named choices."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import Any

import pytest

from lrtflite.errors import InputError
from lrtflite.tables.table import Table, first_sentence


def test_what_is_registered_can_be_chosen() -> None:
    table: Table[int] = Table("number", {"one": 1})
    table.register("two", 2)
    assert table.choose("two") == table["two"] == 2
    assert list(table) == ["one", "two"]
    assert len(table) == 2
    assert "two" in table


def test_a_name_that_is_taken() -> None:
    table: Table[int] = Table("number", {"one": 1})
    with pytest.raises(InputError) as caught:
        table.register("one", 3)
    assert str(caught.value) == (
        "Expected a new name for a number, got 'one', which is taken; choose another"
    )
    assert table["one"] == 1


def test_an_entry_for_the_time_of_a_block() -> None:
    table: Table[int] = Table("number", {"one": 1})
    with contextlib.suppress(ZeroDivisionError), table.registered("two", 2):
        assert list(table) == ["one", "two"]
        raise ZeroDivisionError
    assert list(table) == ["one"]
    with pytest.raises(InputError, match="got 'one', which is taken"), table.registered("one", 3):
        pass
    assert table["one"] == 1


@pytest.mark.parametrize(
    ("name", "end"),
    [
        ("thre", "got 'thre'; did you mean 'three'?"),
        ("x", "got 'x'; choose one of these"),
        (5, "got 5; choose one of these"),
    ],
)
def test_a_name_that_is_not_there(name: Any, end: str) -> None:
    table: Table[int] = Table("number", {"one": 1, "three": 3})
    for ask in (table.choose, table.check):
        with pytest.raises(InputError) as caught:
            ask(name)
        assert str(caught.value) == f"Expected a number of one, three, {end}"


def test_an_entry_is_imported_when_it_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "late_entry.py").write_text("ANSWER = [42]\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    table: Table[list[int]] = Table("list", {"late": "late_entry:ANSWER"})
    table.check("late")
    assert list(table) == ["late"]
    assert "late_entry" not in sys.modules
    found = table["late"]
    assert found == [42]
    assert table["late"] is found
    monkeypatch.delitem(sys.modules, "late_entry")


def test_the_first_line_of_a_docstring() -> None:
    def documented() -> None:
        """Do one thing.

        And say more of it.
        """

    assert first_sentence(documented) == "Do one thing."
    documented.__doc__ = None
    assert first_sentence(documented) == ""
