"""The only module that picks a TFLite runtime and runs a model's signatures.

Two runtimes are supported: `litert` (the `ai-edge-litert` package, preferred) and `tflite` (the
older `tflite-runtime` package, still the only one on some boards).
"""

from __future__ import annotations

import importlib
import importlib.util
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrtflite.arguments import whole_number
from lrtflite.errors import BundleError, RuntimeMissing
from lrtflite.files.bundle_file import BundleFile
from lrtflite.runtime.mapped_file import release_pages
from lrtflite.system.capacity import usable_cores
from lrtflite.system.extras import installed_version, pip_command
from lrtflite.tables.table import Table

# Name that stands for the first installed runtime.
AUTO = "auto"
LITERT = "litert"
# Runtime name -> (distribution, module with an `Interpreter`), in order of preference.
RUNTIMES: Table[tuple[str, str]] = Table(
    "runtime",
    {
        LITERT: ("ai-edge-litert", "ai_edge_litert.interpreter"),
        "tflite": ("tflite-runtime", "tflite_runtime.interpreter"),
    },
)
# Maximum number of threads per model. More threads than cores are slower, and a million crash a
# machine.
MAX_THREADS = 64
# Default maximum number of threads for a model that trains a trunk. At `conv5_4/dw`, two threads
# took 331 ms per step and one thread 623 ms on two idle cores; on busy cores two were no faster.
TRUNK_THREADS = 4


@dataclass(frozen=True)
class Tensor:
    """Shape and dtype of a signature's input or output; -1 is any number."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]


@dataclass(frozen=True)
class Signature:
    inputs: dict[str, Tensor]
    outputs: dict[str, Tensor]


def installed_runtimes() -> list[str]:
    """Return the names of the installed runtimes, in order of preference."""
    return [name for name, (_, module) in RUNTIMES.items() if _importable(module)]


def check_runtime(name: str) -> None:
    """Raise RuntimeMissing unless `name` is `auto` or in RUNTIMES, installed or not."""
    if name != AUTO and name not in RUNTIMES:
        names = ", ".join((AUTO, *RUNTIMES))
        raise RuntimeMissing(f"Expected a runtime of {names}, got {name!r}", "choose one of these")


def pick_runtime(name: str = "auto") -> str:
    """Return the installed runtime that `auto` or the name of a runtime stands for."""
    check_runtime(name)
    found = installed_runtimes()
    if name in found:
        return name
    if name == "auto" and found:
        return found[0]
    _, module = RUNTIMES[next(iter(RUNTIMES)) if name == "auto" else name]
    wanted = "No TFLite runtime is" if name == "auto" else f"The runtime {name!r} is not"
    raise RuntimeMissing(f"{wanted} installed", f"{pip_command(_package(module))}")


def describe_runtime(name: str) -> str:
    """Return the package and version of a runtime: `litert` -> `ai-edge-litert 2.3.0`."""
    distribution, _ = RUNTIMES[name]
    return f"{distribution} {installed_version(distribution)}"


def default_threads(*, trains_trunk: bool) -> int:
    """Return the default number of threads.

    One thread is enough for the small steps of a last layer. A trunk gets as many threads as this
    process has cores, up to TRUNK_THREADS.
    """
    if not trains_trunk:
        return 1
    return min(usable_cores(), TRUNK_THREADS)


class Model:
    """One `.tflite` file in its own interpreter, called by signature name.

    Calls from several threads take turns, because an interpreter is not re-entrant.
    """

    def __init__(
        self,
        file: Path | BundleFile,
        *,
        runtime: str = "auto",
        threads: int = 1,
        prepare: bool = False,
    ) -> None:
        """Load a file.

        With `prepare`, the first signature is made ready at once: its weights are packed while
        nothing else is in RAM.
        """
        threads = whole_number("threads", threads, least=1, most=MAX_THREADS)
        file = BundleFile.of(file)
        self.path = file.path
        self.runtime = pick_runtime(runtime)
        module = importlib.import_module(RUNTIMES[self.runtime][1])
        try:
            self._interpreter = module.Interpreter(**_contents(file), num_threads=threads)
            # tflite-runtime applies its XNNPACK delegate only here. LiteRT would only keep the
            # tensors of a signature that may never run: 9 MB of a head above `conv5_4/dw`.
            if prepare or self.runtime != LITERT:
                self._interpreter.allocate_tensors()
            names = self._interpreter.get_signature_list()
        except (ValueError, RuntimeError) as error:
            raise BundleError(
                f"{describe_runtime(self.runtime)} cannot load {file.path}: {_first_line(error)}",
                "convert the bundle again",
            ) from error
        self._runners = {name: self._interpreter.get_signature_runner(name) for name in names}
        self.signatures = {name: _signature(runner) for name, runner in self._runners.items()}
        self._lock = threading.Lock()
        # Signatures that have run. LiteRT packs the weights of a signature when it first runs.
        self.ran: set[str] = set()
        self.release()

    def release(self) -> None:
        """Give back the RAM of weights that were read to load, pack or start the model."""
        release_pages(self.path)

    def buffer(self, signature: str, name: str) -> NDArray[Any]:
        """Return an array to fill and pass to `run` repeatedly, for an input of fixed shape.

        It is the interpreter's own memory, so that a large input does not exist twice. For a
        runtime that hides its memory, it is an ordinary array.
        """
        tensor, runner = self.signatures[signature].inputs[name], self._runners[signature]
        try:
            wrapper, subgraph = runner._interpreter_wrapper, runner._subgraph_index
            with self._lock:
                wrapper.AllocateTensors(subgraph)
                own = wrapper.tensor(self._interpreter, runner._inputs[name], subgraph)
        except (AttributeError, LookupError, TypeError, ValueError):
            return np.empty(tensor.shape, tensor.dtype)
        return np.asarray(own)

    def run(self, signature: str, **inputs: NDArray[Any]) -> dict[str, NDArray[Any]]:
        """Call one signature; the outputs are copies that stay valid after the next call."""
        with self._lock:
            outputs = self._runners[signature](**inputs)
            if signature not in self.ran:
                self.ran.add(signature)
                self.release()
        return {name: np.asarray(value) for name, value in outputs.items()}


def _importable(module: str) -> bool:
    return importlib.util.find_spec(_package(module)) is not None


def _package(module: str) -> str:
    return module.partition(".")[0]


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _signature(runner: Any) -> Signature:
    def tensors(details: dict[str, Any]) -> dict[str, Tensor]:
        return {
            name: Tensor(
                tuple(int(n) for n in detail.get("shape_signature", detail["shape"])),
                np.dtype(detail["dtype"]),
            )
            for name, detail in sorted(details.items())
        }

    return Signature(tensors(runner.get_input_details()), tensors(runner.get_output_details()))


def _contents(file: BundleFile) -> dict[str, str | bytes]:
    """Return the option of an interpreter that has it use this file."""
    if file.checked is None:
        return {"model_path": str(file.path)}
    return {"model_content": file.checked}
