"""The options of one cell, for `simulate` and `convert`; checked without TensorFlow."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lrtflite.bundle.bundle import Bundle, demo_bundle
from lrtflite.bundle.training import Training
from lrtflite.errors import InputError
from lrtflite.networks.architecture import NETWORKS
from lrtflite.options import LearnerOptions
from lrtflite_firmware_sim.experiment.names import (
    BUNDLE,
    CONVERT,
    OWN_RATES,
    QUANTISE,
    RATE,
    Options,
    Value,
    find_option,
    known_options,
)
from lrtflite_firmware_sim.plan import SimulateOptions

if TYPE_CHECKING:
    from lrtflite_converters.request.options import ConvertOptions
    from lrtflite_converters.request.source import Source

DEMO = "demo"


@dataclass(frozen=True)
class Request:
    """The options of `convert` that a plan sets for a cell, by name."""

    options: tuple[tuple[str, Value], ...]

    def read(self) -> tuple[Source, ConvertOptions]:
        """Return the options for `convert`; raise LrtfliteError for an invalid one."""
        from lrtflite_converters.quantise.options import quantise_options
        from lrtflite_converters.request.options import ConvertOptions
        from lrtflite_converters.request.source import Source, read_labels

        known = known_options()
        given = {known[name].field: value for name, value in self.options}
        mode, *others = (given.pop(name, None) for name in QUANTISE)
        calibrate, frames, epochs = others
        network = {each.name for each in fields(Source)}
        source: Any = {name: given.pop(name) for name in list(given) if name in network}
        rest: Any = given
        rest["labels"] = read_labels(rest.pop("labels", None))
        made: Any = quantise_options
        rest["quantise"] = made(mode, calibrate=calibrate, frames=frames, epochs=epochs)
        return Source(**source), ConvertOptions(**rest)


@dataclass(frozen=True)
class CellOptions:
    """The simulation of a cell, and its bundle: a conversion, a folder or the demo bundle."""

    simulate: SimulateOptions
    request: Request | None
    bundle: Path | None

    @classmethod
    def of(cls, options: Options) -> CellOptions:
        """Return the options of a cell; raise LrtfliteError for one that does not exist."""
        known = known_options()
        convert: dict[str, Value] = {}
        simulate: dict[str, Any] = {}
        for name, value in options.items():
            option = find_option(name, known)
            (convert if option.command == CONVERT else simulate)[name] = value
        bundle = simulate.pop(BUNDLE, None)
        if bundle is not None and convert:
            raise InputError(
                f"Expected {BUNDLE}, or options of convert, got {BUNDLE} and {next(iter(convert))}",
                "leave one out",
            )
        path = None if bundle in (None, DEMO) else Path(bundle)
        request = Request(tuple(convert.items())) if convert else None
        return cls(_simulate_options(simulate), request, path)

    def check(self) -> None:
        """Raise LrtfliteError for a bundle or options of `convert` that are invalid."""
        if self.request is None:
            with ExitStack() as stack:
                path = self.bundle or stack.enter_context(demo_bundle())
                self._check_rates(Bundle.open(path).manifest.training)
            return
        from lrtflite_converters.request.defaults import MEASURED_FEATURES

        source, options = self.request.read()
        # The layers of a user's own model are known once it is read.
        if source.model is None and source.features is None:
            conversion = options.at(NETWORKS.choose(source.network))
            self._check_rates(conversion.training(MEASURED_FEATURES))

    def _check_rates(self, training: Training) -> None:
        if self.simulate.rival is None:
            training.with_options(**self.simulate.rates)


def _simulate_options(given: Mapping[str, Any]) -> SimulateOptions:
    rates: dict[str, float] = {}
    learner: dict[str, Any] = {"threads": 1}
    rest: dict[str, Any] = {}
    of_learner = {each.name for each in fields(LearnerOptions)}
    for name, value in given.items():
        field = name.replace("-", "_")
        if name in OWN_RATES or name.startswith(f"{RATE}."):
            rate = name if name in OWN_RATES else name.partition(".")[2]
            if rate in rates:
                raise InputError(
                    f"Expected {rate} once, got {rate} and {RATE}.{rate}", "leave one out"
                )
            rates[rate] = value
        elif field in of_learner:
            learner[field] = value
        else:
            rest[field] = value
    return SimulateOptions(**rest, learner=LearnerOptions(**learner), rates=rates)
