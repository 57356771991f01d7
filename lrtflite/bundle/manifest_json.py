"""Read `manifest.json`; check every field that is known, and raise for a missing one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from lrtflite.arguments import LARGEST_FLOAT32, printable, real_number, shown
from lrtflite.bundle.costs import Costs
from lrtflite.bundle.feeding import EXTRA, Feeding
from lrtflite.bundle.manifest import (
    ABOUT,
    BUNDLE_FORMATS,
    LATENT_DTYPES,
    MERGING,
    OPTIONAL,
    REQUIRED,
    Manifest,
)
from lrtflite.bundle.quantisation import Quantisation
from lrtflite.bundle.training import NUMBERS, Rate
from lrtflite.errors import BundleError, InputError, problem_of
from lrtflite.files.compatibility import fields_of, is_line, unknown_requirements
from lrtflite.files.digest import File
from lrtflite.files.strict_json import strict_json
from lrtflite.labels import stored_label
from lrtflite.replay.codecs import MAX_PATTERNS

# Maximum number of characters in a manifest, of axes of a latent, and of values in one.
MAX_MANIFEST, MAX_AXES, MAX_VALUES = 1 << 22, 8, 1 << 28

# Fields of the feeding that only some bundles have. A field without which patterns would reach the
# head in another way also needs a line in `REQUIRED`.
_LATER = ("most_steps", *EXTRA)
# Fields of each plain type.
_COUNTS = ("input_size", "replay_size")
_TEXTS = ("network", "replay_layer", "strategy", "policy", "codec", "backbone")
_FLAGS = ("adapt_moments", "pooled", "train_depthwise", "trains_trunk")
_DTYPES = ("latent_dtype", "train_dtype")


def read_manifest(text: str, *, where: str) -> Manifest:
    """Parse a manifest, or raise BundleError; `where` names the file in errors."""
    if len(text) > MAX_MANIFEST:
        raise BundleError(
            f"Expected at most {MAX_MANIFEST:,} characters in {where}, got {len(text):,}",
            "copy the bundle again",
        )
    try:
        found = strict_json(text)
    except (ValueError, RecursionError, MemoryError) as error:
        problem = printable(problem_of(error))
        raise BundleError(
            f"Expected JSON in {where}, got: {problem}", "copy the bundle again"
        ) from error
    if not isinstance(found, dict) or "format" not in found:
        raise BundleError(
            f"Expected a bundle manifest in {where}, got something else", "copy the bundle again"
        )
    if type(found["format"]) is not int or found["format"] not in BUNDLE_FORMATS:
        raise BundleError(
            f"Expected a bundle of format {' or '.join(map(str, BUNDLE_FORMATS))}, got format "
            f"{shown(found['format'])} in {where}",
            "convert it again with this version, or install the version that made it",
        )
    try:
        unknown = unknown_requirements(found, REQUIRED)
        if not unknown:
            return Manifest(**_values(found))
    except (
        TypeError,
        ValueError,
        KeyError,
        AttributeError,
        OverflowError,
        RecursionError,
        InputError,
    ) as error:
        # The advice for a number that a user passed does not apply to a damaged file.
        problem = printable(problem_of(error))[:200]
        raise BundleError(
            f"Damaged field in {where}: {problem}", "copy the bundle again"
        ) from error
    raise BundleError(
        f"Expected a bundle that this version can use, got {where}, which requires "
        f"{shown(', '.join(unknown))}",
        "install a newer version of lrtflite",
    )


def _values(read: dict[str, Any]) -> dict[str, Any]:
    found = fields_of(read, Manifest, "the manifest", optional=OPTIONAL)
    checks: tuple[tuple[tuple[str, ...], Any], ...] = (
        (_COUNTS, lambda value: type(value) is int and 0 <= value <= MAX_PATTERNS),
        (_TEXTS, lambda value: isinstance(value, str)),
        (_FLAGS, lambda value: isinstance(value, bool)),
        (_DTYPES, lambda value: value in LATENT_DTYPES),
        ((*ABOUT, "second_layer"), is_line),
    )
    for names, is_fine in checks:
        for name in names:
            if name in found and not is_fine(found[name]):
                raise ValueError(f"{name} is {found[name]!r}")
    for name, kind in (("labels", list), ("latent_shape", list), ("latent_range", list)):
        if not isinstance(found[name], kind):
            raise ValueError(f"{name} is {found[name]!r}")
    for name in ("rates", "merging", "files", "ops", "tools"):
        if not isinstance(found[name], dict):
            raise ValueError(f"{name} is {found[name]!r}")
    if not found["labels"] or not all(isinstance(x, (str, type(None))) for x in found["labels"]):
        raise ValueError(f"labels are {found['labels']!r}")
    for name, is_fine in (("ops", _is_texts), ("tools", lambda value: isinstance(value, str))):
        if not all(is_fine(value) for value in found[name].values()):
            raise ValueError(f"{name} is {found[name]!r}")
    return {
        **found,
        "latent_shape": _shape(found["latent_shape"]),
        "latent_range": _range(found["latent_range"]),
        "labels": tuple(x if x is None else stored_label(x) for x in found["labels"]),
        "feeding": _feeding(found["feeding"]),
        "rates": {name: _rate(name, rate) for name, rate in found["rates"].items()},
        "merging": {str(name): _merging(name, rule) for name, rule in found["merging"].items()},
        "files": {name: _file(name, value) for name, value in found["files"].items()},
        "measured": None if found["measured"] is None else Costs.from_json(found["measured"]),
        "quantisation": _quantisation(found),
        "unknown": _share("unknown", found),
        "crop": _share("crop", found),
    }


def _quantisation(found: Mapping[str, Any]) -> Quantisation | None:
    quantised = found.get("quantisation")
    read = None if quantised is None else Quantisation.from_json(quantised)
    if (read is not None) != (found["latent_dtype"] == "int8"):
        has = "has no" if read is None else "has a"
        raise ValueError(
            f"latent_dtype is {found['latent_dtype']!r} in a bundle that {has} quantisation"
        )
    return read


def _share(name: str, found: Mapping[str, Any]) -> float | None:
    value = found.get(name)
    return None if value is None else real_number(name, value, most=1.0)


def _feeding(found: Any) -> Feeding:
    read = fields_of(found, Feeding, "feeding", optional=_LATER)
    missing = [name for name in EXTRA if name not in read]
    if len(missing) == 1:
        raise ValueError(f"feeding lacks {missing[0]}")
    return Feeding(**read)


def _rate(name: str, found: Any) -> Rate:
    rate = Rate(**fields_of(found, Rate, f"rate {name}"))
    if name in NUMBERS:
        raise ValueError(f"rate {name} is a number of the feeding")
    least, most = (
        real_number(name, limit, least=-LARGEST_FLOAT32) for limit in (rate.least, rate.most)
    )
    if not isinstance(rate.meaning, str) or not least <= most:
        raise ValueError(f"rate {name} is {found!r}")
    return rate.with_value(name, rate.value)


def _file(name: str, found: Any) -> File:
    file = File(**fields_of(found, File, f"file {name}"))
    if not isinstance(file.sha256, str) or type(file.bytes) is not int or file.bytes < 0:
        raise ValueError(f"file {name} is {found!r}")
    return file


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _shape(found: list[Any]) -> tuple[int, ...]:
    sizes = all(type(size) is int and 0 < size <= MAX_VALUES for size in found)
    if not sizes or not 0 < len(found) <= MAX_AXES or math.prod(found) > MAX_VALUES:
        raise ValueError(f"latent_shape is {found!r}")
    return tuple(found)


def _merging(name: str, rule: object) -> object:
    if rule not in MERGING:
        raise ValueError(f"merging of {name} is {rule!r}")
    return rule


def _range(found: Any) -> tuple[float, float]:
    low, high = (real_number("latent_range", limit, least=-LARGEST_FLOAT32) for limit in found)
    if not -math.inf < low < high < math.inf:
        raise ValueError(f"latent_range is {found!r}")
    return low, high
