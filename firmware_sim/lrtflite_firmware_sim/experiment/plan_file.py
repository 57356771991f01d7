"""A plan file: options with one value, and axes with several, in TOML."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from importlib import resources
from pathlib import Path
from typing import Any

from lrtflite.arguments import shown
from lrtflite.errors import InputError
from lrtflite.system.extras import missing
from lrtflite_firmware_sim.experiment.names import (
    RATE,
    Options,
    PlanOption,
    Value,
    find_option,
    known_options,
)

# Plans that come with the package are named `paper:NAME`.
PACKAGED = "paper:"
# Tables and keys of a plan that are not options.
FIXED, GRID, REPORT = "fixed", "grid", "report"
TEXTS = ("title", "about")
# Values of a flag on the command line.
_TRUTH = {"true": True, "false": False}
# Maximum size of a plan file, in bytes.
MAX_BYTES = 1 << 20


@dataclass(frozen=True)
class Grid:
    """Axes by name, of which every combination of values is a cell; and options with one value."""

    axes: Mapping[str, tuple[Value, ...]]
    fixed: Options

    @property
    def size(self) -> int:
        size = 1
        for values in self.axes.values():
            size *= len(values)
        return size

    def points(self) -> Iterator[dict[str, Value]]:
        """Yield the value of every axis; the last axis changes fastest."""
        for values in itertools.product(*self.axes.values()):
            yield dict(zip(self.axes, values))


@dataclass(frozen=True)
class PlanFile:
    """The content of a plan file: its grids, and the values for the report; `text` is the file."""

    grids: tuple[Grid, ...]
    title: str | None = None
    about: str | None = None
    report: Mapping[str, Any] = field(default_factory=dict)
    text: str = ""

    @property
    def axes(self) -> tuple[str, ...]:
        """Return the names of all axes, in order."""
        return tuple(dict.fromkeys(name for grid in self.grids for name in grid.axes))

    @property
    def size(self) -> int:
        return sum(grid.size for grid in self.grids)


def read_plan(spec: str | Path) -> PlanFile:
    """Read a plan file, or the plan of the package that `paper:NAME` names."""
    return parse_plan(_text_of(str(spec)), where=str(spec))


def packaged_plans() -> dict[str, str]:
    """Return the text of each plan of the package by its name."""
    folder = resources.files("lrtflite_firmware_sim.experiment") / "plans"
    if not folder.is_dir():
        return {}
    return {
        file.name.rpartition(".")[0]: file.read_text(encoding="utf-8")
        for file in sorted(folder.iterdir(), key=lambda file: file.name)
        if file.name.endswith(".toml")
    }


def with_settings(plan: PlanFile, words: Sequence[str]) -> PlanFile:
    """Return a plan in which NAME=VALUE replaces an option or an axis of every grid.

    A name that is given several times becomes an axis with these values.
    """
    settings = _settings(words)
    return replace(plan, grids=tuple(_replaced(grid, settings) for grid in plan.grids))


def parse_plan(text: str, *, where: str) -> PlanFile:
    """Return the plan in a text; raise InputError for an unknown key or a wrong value."""
    found = _parsed(text, where)
    known = known_options()
    try:
        return _plan(found, known, text)
    except InputError as error:
        raise InputError(f"{where}: {error.problem}", error.advice) from error


def _plan(found: dict[str, Any], known: Mapping[str, PlanOption], text: str) -> PlanFile:
    grids = found.pop(GRID, {})
    fixed, report = found.pop(FIXED, {}), found.pop(REPORT, {})
    texts = {name: found.pop(name, None) for name in TEXTS}
    for name, value in texts.items():
        if value is not None and not isinstance(value, str):
            raise InputError(f"Expected {name} as text, got {shown(value)}", "quote it")
    for name, value in ((FIXED, fixed), (REPORT, report)):
        if not isinstance(value, dict):
            raise InputError(f"Expected [{name}] as a table, got {shown(value)}", "correct it")
    grids = [grids] if isinstance(grids, dict) else grids
    if not isinstance(grids, list) or not all(isinstance(each, dict) for each in grids):
        raise InputError(
            f"Expected [grid] as a table, or several [[grid]], got {shown(grids)}", "correct it"
        )
    for name, value in found.items():
        near = get_close_matches(name, (FIXED, GRID, REPORT), n=1)
        if isinstance(value, dict) and name != RATE and near:
            raise InputError(f"Expected a table [{near[0]}], got [{name}]", "correct its name")
    both = {**found, **fixed}
    for name in found:
        if name in fixed:
            raise InputError(
                f"Expected {name} once, got it at the top and in [{FIXED}]", "leave one out"
            )
    values, axes = _split(both, known)
    if axes:
        name = next(iter(axes))
        raise InputError(f"Expected one value for {name}, got a list", f"move it to [{GRID}]")
    made = []
    for grid in grids:
        own, axes = _split(grid, known)
        made.append(Grid(axes, {**_without(values, axes), **own}))
    return PlanFile(tuple(made) or (Grid({}, values),), **texts, report=report, text=text)


def _without(values: Options, axes: Mapping[str, object]) -> dict[str, Value]:
    return {name: value for name, value in values.items() if name not in axes}


def _split(
    table: Mapping[str, Any], known: Mapping[str, PlanOption]
) -> tuple[dict[str, Value], dict[str, tuple[Value, ...]]]:
    """Return the options of a table with one value, and its axes."""
    values: dict[str, Value] = {}
    axes: dict[str, tuple[Value, ...]] = {}
    for name, value in _flat(table):
        option = find_option(name, known)
        if not isinstance(value, list):
            option.check(value)
            values[name] = value
            continue
        if not value:
            raise InputError(f"Expected at least one value for {name}, got none", "add one")
        for each in value:
            option.check(each)
        for index, each in enumerate(value):
            if each in value[:index]:
                raise InputError(
                    f"Expected each value of {name} once, got {shown(each)} twice", "leave one out"
                )
        axes[name] = tuple(value)
    return values, axes


def _flat(table: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield names and values, with `rate.NAME` for each number of the table `rate`."""
    for name, value in table.items():
        if name == RATE:
            if not isinstance(value, dict):
                raise InputError(
                    f"Expected rates as rate.NAME = VALUE, got {shown(value)}", "write it like that"
                )
            yield from ((f"{RATE}.{each}", number) for each, number in value.items())
        else:
            yield name, value


def _text_of(spec: str) -> str:
    if spec.startswith(PACKAGED):
        plans, name = packaged_plans(), spec[len(PACKAGED) :]
        if name in plans:
            return plans[name]
        near = get_close_matches(name, plans, n=1)
        advice = f"did you mean {PACKAGED}{near[0]}?" if near else "choose one of these"
        listed = ", ".join(f"{PACKAGED}{each}" for each in plans)
        raise InputError(f"Expected a plan of {listed or 'a file'}, got {spec}", advice)
    try:
        with Path(spec).open("rb") as file:
            content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise InputError(
                f"Expected a plan of at most {MAX_BYTES:,} bytes, got more in {spec}", "split it"
            )
        return content.decode()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "not UTF-8 text"
        raise InputError(
            f"Expected a plan file, got {spec}: {why}",
            "`lrtflite experiment --init PLAN.toml` writes one",
        ) from error


def _parsed(text: str, where: str) -> dict[str, Any]:
    try:
        import tomllib
    except ImportError:  # before Python 3.11
        try:
            import tomli as tomllib  # type: ignore[no-redef, import-not-found, unused-ignore]
        except ImportError as error:
            raise missing("tomli") from error
    try:
        found: dict[str, Any] = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f"Expected a plan in TOML, got {where}: {error}", "correct it") from error
    return found


def _settings(words: Sequence[str]) -> dict[str, tuple[Value, ...]]:
    known = known_options()
    found: dict[str, tuple[Value, ...]] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not (name and equals and text):
            raise InputError(f"Expected --set NAME=VALUE, got {shown(word)}", "write it like that")
        option = find_option(name, known)
        value = _value(option, text)
        if value in found.get(name, ()):
            raise InputError(
                f"Expected each value of {name} once, got {shown(text)} twice", "remove one"
            )
        found[name] = (*found.get(name, ()), value)
    return found


def _value(option: PlanOption, text: str) -> Value:
    """Return text as a value of the option; other text stays as it is, and `check` refuses it."""
    value: Value = text
    if option.kind == "bool":
        value = _TRUTH.get(text, text)
    elif option.kind in ("int", "float"):
        with suppress(ValueError):
            value = int(text) if option.kind == "int" else float(text)
    option.check(value)
    return value


def _replaced(grid: Grid, settings: Mapping[str, tuple[Value, ...]]) -> Grid:
    axes = {name: values for name, values in grid.axes.items() if name not in settings}
    several = {name: values for name, values in settings.items() if len(values) > 1}
    fixed = {name: value for name, value in grid.fixed.items() if name not in several}
    single = {name: values[0] for name, values in settings.items() if len(values) == 1}
    return Grid({**several, **axes}, {**fixed, **single})
