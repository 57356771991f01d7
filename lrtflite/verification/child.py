"""Run a function of a module in a child process, within limits; a crash becomes an error here.

This isolates crashes, and bounds time and RAM. It is not a sandbox: the child may do all that this
process may do.

The child calls `in_child(stream, *words)` of the module, where `stream` has the bytes `given`. It
answers with a line of JSON and the bytes that the function returned. Whatever ends it without that
answer is a failure.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from lrtflite import errors
from lrtflite.arguments import printable
from lrtflite.errors import BundleError, LrtfliteError
from lrtflite.verification.limits import MEGABYTES, SECONDS, Limits

if TYPE_CHECKING:
    import subprocess

# Seconds between two checks of the child's RAM. A process can fill some 5 GB in a second.
PAUSE = 0.02
# Number of `prctl` that has the child killed when its parent ends, on Linux.
_PR_SET_PDEATHSIG = 1
# Kinds of answers; any other kind is the name of an error.
_DONE, _PROBLEM, _MEMORY = "done", "problem", "memory"
# Not `python -m`, which warns about a module that its package has imported already.
_START = "import sys; from lrtflite.verification.child import main; sys.exit(main(*sys.argv[1:]))"


def run_child(
    module: str,
    *words: str,
    what: str,
    limits: Limits,
    fix: str = "convert the bundle again, or use a bundle that you trust",
    given: bytes = b"",
) -> bytes:
    """Return what `in_child` of a module returns in a child process.

    `what` names the run in errors. Raise the LrtfliteError that the child raises, and BundleError
    if it crashes, fails, exceeds a limit, or ends without an answer.
    """
    import subprocess  # only here, because most openings need no child

    command = [sys.executable, "-c", _START, str(limits.bytes), module, *words]
    pipe = subprocess.PIPE
    try:
        process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=pipe, env=_environment()
        )
    except OSError as error:
        raise BundleError(
            f"Cannot start {what} in a child process: {error.strerror}", "try again"
        ) from error
    with process:
        try:
            output, notes = _communicate(process, given, what, limits, fix)
        except BaseException:
            process.kill()
            raise
    header, _, body = output.partition(b"\n")
    reply = _reply(header)
    if reply.get("kind") == _DONE and process.returncode == 0:
        return body
    if reply.get("kind") == _MEMORY or _is_out_of_memory(process.returncode, notes):
        raise _too_large(what, limits)
    if process.returncode < 0:
        raise BundleError(
            f"Cannot finish {what}: a crash ({_signal(-process.returncode)})",
            fix,
        )
    if reply.get("kind") == _PROBLEM:
        raise BundleError(f"Cannot finish {what}: {reply['text']}", fix)
    kind = getattr(errors, str(reply.get("kind")), None)
    if isinstance(kind, type) and issubclass(kind, LrtfliteError):
        raise kind(reply["text"])
    said = notes.decode(errors="replace").strip().splitlines()
    why = f": {printable(said[-1])[:160]}" if said and process.returncode else ""
    raise BundleError(
        f"Cannot finish {what}: exit code {process.returncode} without an answer{why}", fix
    )


def _communicate(
    process: subprocess.Popen[bytes], given: bytes, what: str, limits: Limits, fix: str
) -> tuple[bytes, bytes]:
    """Return the child's output and notes; raise BundleError once it exceeds a limit."""
    import subprocess

    end = time.monotonic() + limits.seconds
    # A thread, because a second `communicate` after a timeout does not send the rest.
    requests, process.stdin = process.stdin, None
    threading.Thread(target=_send, args=(requests, given), daemon=True).start()
    while True:
        with suppress(subprocess.TimeoutExpired):
            return process.communicate(timeout=PAUSE)
        if _ram_of(process.pid) > limits.bytes:
            raise _too_large(what, limits)
        if time.monotonic() > end:
            raise BundleError(
                f"Cannot finish {what} within {limits.seconds:g} s",
                f"{fix}; on a slow machine, set {SECONDS} to more seconds",
            )


def _send(stream: IO[bytes] | None, given: bytes) -> None:
    assert stream is not None
    with suppress(OSError), stream:  # the child may have ended
        stream.write(given)


def _too_large(what: str, limits: Limits) -> BundleError:
    return BundleError(
        f"Cannot finish {what} within {limits.megabytes:,.0f} MB of RAM",
        f"use a bundle that you trust, and set {MEGABYTES} to what it needs",
    )


def _is_out_of_memory(code: int, notes: bytes) -> bool:
    """Return whether a child without an answer probably ran out of memory."""
    killed_by_the_system = code == -signal.SIGKILL
    return killed_by_the_system or b"std::bad_alloc" in notes or b"MemoryError" in notes


def _ram_of(process: int) -> int:
    """Return the bytes of RAM that a process has now; 0 if the system does not report it."""
    try:
        statm = Path(f"/proc/{process}/statm").read_bytes()
        return int(statm.split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def _environment() -> dict[str, str]:
    """Return an environment with the same packages, and one thread for numpy."""
    package = str(Path(__file__).resolve().parents[2])
    paths = [*filter(None, [os.environ.get("PYTHONPATH")]), package]
    paths += [entry or os.getcwd() for entry in sys.path]
    # The stacks of threads count as memory, and a machine may have hundreds of cores.
    own = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    # PYTHONSAFEPATH: do not import a file called numpy.py from the current folder.
    own.update(PYTHONPATH=os.pathsep.join(paths), PYTHONSAFEPATH="1")
    return {**os.environ, **own}


def _reply(header: bytes) -> Mapping[str, Any]:
    """Return the child's answer; an empty one if there is none."""
    try:
        found = json.loads(header)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _limit_this_process(most_bytes: int) -> None:
    """Bound the memory of this process, and end it with its parent, where the system can."""
    import resource

    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    # RLIMIT_DATA counts what is written to. RLIMIT_AS would count mapped files and room that
    # threads reserve. The emulator qemu ignores both, and the parent looks at the RAM.
    for limit, most in ((resource.RLIMIT_DATA, most_bytes), (resource.RLIMIT_CORE, 0)):
        with suppress(OSError, ValueError):
            resource.setrlimit(limit, (most, most))


def _answer(module: str, words: list[str]) -> tuple[dict[str, str], bytes]:
    """Return the answer of this child: a header, and the bytes of the function."""
    try:
        return {"kind": _DONE}, importlib.import_module(module).in_child(sys.stdin.buffer, *words)
    except LrtfliteError as error:
        return {"kind": type(error).__name__, "text": str(error)}, b""
    except MemoryError:
        return {"kind": _MEMORY}, b""
    except (ValueError, RuntimeError) as error:  # from the runtime
        lines = str(error).split("\n")
        # LiteRT's error for a failed allocation has no text.
        if not lines[0] and isinstance(error, RuntimeError):
            return {"kind": _MEMORY}, b""
        return {"kind": _PROBLEM, "text": f"an error ({printable(lines[0])[:160]})"}, b""


def main(most_bytes: str, module: str, *words: str) -> int:
    """Call `in_child` of a module and write its answer to stdout."""
    # A runtime that prints to stdout must not print into the answer.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    _limit_this_process(int(most_bytes))
    header, body = _answer(module, list(words))
    with answers:
        answers.write(json.dumps(header).encode() + b"\n" + body)
    return 0
