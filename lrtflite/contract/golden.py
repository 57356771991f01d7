"""The golden session: calls that test whether a bundle works on a client's runtime.

TensorFlow runs them when a bundle is made, and `golden.npz` keeps their inputs and outputs. A
client runs them again and compares. docs/bundle.md lists them step by step.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from lrtflite.arguments import printable
from lrtflite.contract.signatures import REPLAYED, ZERO
from lrtflite.errors import BundleError, LrtfliteError, problem_of
from lrtflite.evenly import evenly
from lrtflite.files.bundle_file import BundleFile
from lrtflite.files.npz import read_npz
from lrtflite.files.zip import MALFORMED
from lrtflite.runtime.model import Signature

Arrays = dict[str, NDArray[Any]]
# Maximum number of values kept per tensor, evenly spread, so that a bundle does not hold every
# weight twice.
SAMPLED = 1000
SCALARS = "scalars/"
CHANGE, MOVED = "change/", "moved/"
# Difference of latents that is allowed, relative to their size; only if the features are quantised.
ROUNDING = "rounding"


class Runner(Protocol):
    """A model that runs signatures by name: a TFLite interpreter, or TensorFlow itself."""

    @property
    def signatures(self) -> Mapping[str, Signature]: ...

    def run(self, signature: str, **inputs: NDArray[Any]) -> Mapping[str, NDArray[Any]]: ...


def run_golden(features: Runner, head: Runner, given: Mapping[str, NDArray[Any]]) -> Arrays:
    """Return the outputs of both models for the inputs `given`, all by their names in the file.

    If `given` contains latents, the head gets those, so that an error of the features does not
    spread to the head.
    """
    latents = np.concatenate(
        [features.run("extract", frames=frame[np.newaxis])["latents"] for frame in given["frames"]]
    )
    found: Arrays = {"latents": latents}
    latents = given.get("latents", latents)
    found["probabilities_before"] = head.run("infer", latents=latents)["probabilities"]
    before = head.run("save", zero=ZERO)
    sessions = [_session(head, given, latents, number) for number in range(len(given["counts"]))]
    found["trains"] = np.stack([trains for trains, _, _ in sessions])
    found["losses"] = np.stack([losses for _, losses, _ in sessions])
    found["learned"] = np.stack([learned for _, _, learned in sessions])
    found["probabilities_after"] = head.run("infer", latents=latents)["probabilities"]
    found.update(_changes(CHANGE, before, head.run("save", zero=ZERO)))
    found["learned_forgotten"] = head.run("forget", mask=given["forgotten"])["learned"]
    found["probabilities_forgotten"] = head.run("infer", latents=latents)["probabilities"]
    # Every commit serves through `restore`, so it is checked too.
    found["learned_restored"] = head.run("restore", **before)["learned"]
    found["probabilities_restored"] = head.run("infer", latents=latents)["probabilities"]
    if "adapt" in features.signatures:
        moments = features.run("save", zero=ZERO)
        rates = _scalars(features, "adapt", given, session=-1)
        features.run("adapt", frames=given["frames"][given["group"]], **rates)
        found.update(_changes(MOVED, moments, features.run("save", zero=ZERO)))
    return found


@contextmanager
def fitting(where: object) -> Iterator[None]:
    """Turn the errors of a golden session whose arrays do not fit the models into BundleError."""
    try:
        yield
    except (KeyError, IndexError, TypeError, ValueError, RuntimeError, AttributeError) as error:
        problem = (str(error).splitlines() or [""])[0]
        if isinstance(error, RuntimeError) and not problem:
            raise  # LiteRT's error for a failed allocation has no text
        raise BundleError(
            f"Expected golden vectors that fit the models of {where}, got an error: {problem}",
            "copy the bundle again",
        ) from error


def sample(values: NDArray[Any]) -> NDArray[Any]:
    """Return up to SAMPLED values of an array, evenly spread."""
    flat = values.reshape(-1)
    chosen: NDArray[Any] = flat[list(evenly(len(flat), SAMPLED, place="ends"))]
    return chosen


def _session(
    head: Runner, given: Mapping[str, NDArray[Any]], latents: NDArray[Any], number: int
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Run one session; return `trains` of `begin`, the losses, and `learned` of `consolidate`."""
    counts = given["counts"][number]

    def run(signature: str, **inputs: NDArray[Any]) -> Mapping[str, NDArray[Any]]:
        return head.run(signature, **inputs, **_scalars(head, signature, given, number))

    def batch(rows: NDArray[Any]) -> dict[str, NDArray[Any]]:
        """Return the mini-batch of these rows; row -1 is an empty place."""
        targets = np.zeros((len(rows), len(counts)), np.float32)
        places = np.flatnonzero(rows >= 0)
        targets[places, given["classes"][rows[places]]] = 1
        chosen = latents[rows]
        chosen[rows < 0] = 0
        return {"latents": chosen, "targets": targets}

    trains = run("begin", counts=counts)["trains"]
    cheaper = "train_last" in head.signatures and not trains[0]
    losses = []
    if "train" in head.signatures:
        step = "train_last" if cheaper else "train"
        losses = [run(step, **batch(rows))["loss"][0] for rows in given["rows"][number]]
    if "gather" in head.signatures:
        told = REPLAYED in head.signatures["gather"].inputs
        for rows in given["gathered"][number]:
            run("gather", **batch(rows), **({REPLAYED: ZERO} if told else {}))
        # A head that is told gets the patterns of the session before as those of the memory.
        for rows in given["gathered"][number - 1] if told and number else ():
            run("gather", **batch(rows), **{REPLAYED: ZERO + 1})
    learned = run("consolidate", counts=counts)["learned"]
    return trains, np.array(losses, np.float32), learned


def _scalars(
    model: Runner, signature: str, given: Mapping[str, NDArray[Any]], session: int
) -> dict[str, NDArray[Any]]:
    """Return the rates that a signature takes in one session, each (1,)."""
    inputs = model.signatures[signature].inputs
    names = {name[len(SCALARS) :] for name in given if name.startswith(SCALARS)}
    return {name: given[SCALARS + name][session].reshape(1) for name in names.intersection(inputs)}


def _changes(
    prefix: str, before: Mapping[str, NDArray[Any]], after: Mapping[str, NDArray[Any]]
) -> Arrays:
    return {prefix + name: sample(after[name] - before[name]) for name in before}


# Maximum number of bytes in the file, and of all its arrays together.
MAX_BYTES = 1 << 28


def read_golden(file: Path | BundleFile) -> Arrays:
    """Read `golden.npz`, or raise BundleError."""
    file = BundleFile.of(file)
    try:
        return read_npz(file.read(most=MAX_BYTES), most=MAX_BYTES)
    except (*MALFORMED, LrtfliteError) as error:
        problem = printable(problem_of(error))[:200]
        raise BundleError(
            f"Cannot read the golden vectors {file.path}: {problem}", "copy the bundle again"
        ) from error
