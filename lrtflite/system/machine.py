"""The machine and the software versions that produced a measurement."""

from __future__ import annotations

import os
import platform
import resource
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from lrtflite.system.capacity import machine_bytes


@dataclass(frozen=True)
class Machine:
    cpu: str
    cores: int
    ram_gb: float | None
    system: str

    def __str__(self) -> str:
        ram = "" if self.ram_gb is None else f", {self.ram_gb:g} GB RAM"
        return f"{self.cpu}, {self.cores} core{'s' * (self.cores > 1)}{ram}, {self.system}"


def this_machine() -> Machine:
    ram = machine_bytes()
    return Machine(
        cpu=_cpu(),
        cores=os.cpu_count() or 1,
        ram_gb=None if ram is None else round(ram / 1e9, 1),
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
    )


def versions(runtime: str) -> dict[str, str]:
    """Return the versions of all software involved; `runtime` is from `describe_runtime`."""
    return {
        "lrtflite": metadata.version("lrtflite"),
        "runtime": runtime,
        "numpy": metadata.version("numpy"),
        "python": platform.python_version(),
    }


def filesystem_of(path: Path) -> str | None:
    """Return the type of the file system that holds `path`; None if it is unknown."""
    try:
        mounts = Path("/proc/mounts").read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    best, kind = -1, None
    here = path.resolve()
    for line in mounts:
        _, point, found, *_ = line.split()
        mount = Path(point.replace("\\040", " "))
        if (mount == here or mount in here.parents) and len(mount.parts) >= best:
            best, kind = len(mount.parts), found
    return kind


def _cpu() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        text = ""
    for key in ("model name", "Model", "Hardware"):
        for line in text.splitlines():
            name, _, value = line.partition(":")
            if name.strip() == key and value.strip():
                return value.strip()
    return platform.processor() or platform.machine() or "unknown"


_STATUS = Path("/proc/self/status")


def peak_ram_mb() -> float:
    """Return the peak resident memory so far, in MB of 10^6 bytes."""
    return peak_ram_bytes() / 1e6


def peak_ram_bytes() -> int:
    # On Linux a process inherits `ru_maxrss` from its parent, so a large parent would be counted
    # too. VmHWM starts at zero in each program.
    try:
        for line in _STATUS.read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return 1024 * int(line.split()[1])
    except OSError:
        pass
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak
