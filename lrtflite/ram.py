"""The peak RAM of this process."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

_STATUS = Path("/proc/self/status")


def peak_ram_mb() -> float:
    """The most that was resident so far, in MB of 10^6 bytes."""
    return peak_ram_bytes() / 1e6


def peak_ram_bytes() -> int:
    # Linux hands `ru_maxrss` down from the process that started this one, so it would report the
    # RAM of a large parent; VmHWM begins anew with each program.
    try:
        for line in _STATUS.read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return 1024 * int(line.split()[1])
    except OSError:
        pass
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak
