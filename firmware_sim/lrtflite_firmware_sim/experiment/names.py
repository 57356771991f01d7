"""The options that a plan may set: those of `simulate` and `convert`, under their names there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, dataclass, fields
from difflib import get_close_matches
from typing import Any, Union

from lrtflite.arguments import shown
from lrtflite.errors import InputError
from lrtflite.options import LearnerOptions
from lrtflite_firmware_sim.plan import SimulateOptions

Value = Union[bool, int, float, str]
# An option's value by its name in a plan.
Options = Mapping[str, Value]

SIMULATE, CONVERT = "simulate", "convert"
BUNDLE = "bundle"
RATE = "rate"
# Rates that have an option of their own.
OWN_RATES = {"epochs": "int", "lr": "float"}
# Fields that are several options, or that no experiment sets.
_APART = {"learner", "rates", "quantise", "read_only", "unknown", "require_signature", "device"}
# Name of an option -> field of `QuantiseOptions`.
QUANTISE = {
    "quantize": "mode",
    "calibrate": "calibrate",
    "calibration-frames": "frames",
    "qat-epochs": "epochs",
}
# Fields named differently from their option, whose name is a keyword of Python.
_OTHERWISE = {"and_layer": "and"}
_WORDS = {"int": "a whole number", "float": "a number", "bool": "true or false", "str": "text"}


@dataclass(frozen=True)
class PlanOption:
    """An option: its name in a plan, the command that takes it, its field and the kind of value."""

    name: str
    command: str
    field: str
    kind: str  # int, float, bool or str

    def check(self, value: object) -> None:
        """Raise InputError for a value of another kind."""
        kinds: dict[str, tuple[type, ...]] = {
            "int": (int,),
            "float": (int, float),
            "bool": (bool,),
            "str": (str,),
        }
        fits = isinstance(value, kinds[self.kind])
        if not fits or (self.kind != "bool" and isinstance(value, bool)):
            raise InputError(
                f"Expected {self.name} as {_WORDS[self.kind]}, got {shown(value)}",
                "correct it in the plan",
            )


def known_options() -> dict[str, PlanOption]:
    """Return every option by its name, except for `rate.NAME`.

    Options of both commands, such as the size of the memory, go to `simulate`, so that more cells
    share a bundle.
    """
    from lrtflite_converters.quantise.options import QuantiseOptions
    from lrtflite_converters.request.options import ConvertOptions
    from lrtflite_converters.request.source import Source

    found: dict[str, PlanOption] = {}
    for command, owners in (
        (SIMULATE, (SimulateOptions, LearnerOptions)),
        (CONVERT, (Source, ConvertOptions)),
    ):
        for owner in owners:
            for each in fields(owner):
                name = _OTHERWISE.get(each.name, each.name.replace("_", "-"))
                if each.name not in _APART and name not in found:
                    found[name] = PlanOption(name, command, each.name, _kind(each))
    for name, kind in OWN_RATES.items():
        found[name] = PlanOption(name, SIMULATE, name, kind)
    quantise = {each.name: each for each in fields(QuantiseOptions)}
    for name, field in QUANTISE.items():
        found[name] = PlanOption(name, CONVERT, name, _kind(quantise[field]))
    found[BUNDLE] = PlanOption(BUNDLE, SIMULATE, BUNDLE, "str")
    return found


def find_option(name: str, known: Mapping[str, PlanOption]) -> PlanOption:
    """Return the option called `name`, or raise InputError with the nearest name."""
    rate = name.partition(".")
    if rate[0] == RATE and rate[2]:
        return PlanOption(name, SIMULATE, rate[2], "float")
    if name in known:
        return known[name]
    near = get_close_matches(name.replace("_", "-"), [*known, RATE], n=1)
    raise InputError(
        f"Expected an option of simulate or convert, got {shown(name)}",
        f"did you mean {near[0]!r}?" if near else "`lrtflite simulate --help` lists them",
    )


def _kind(each: Field[Any]) -> str:
    """Return the kind of a field's value from its annotation; labels are text such as a,b,c."""
    kind = str(each.type).partition(" ")[0]
    return kind if kind in _WORDS else "str"
