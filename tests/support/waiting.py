"""Wait for something that another thread or process does."""

from __future__ import annotations

import time
from typing import Any

# Seconds until something must have happened, on a machine that is busy.
PATIENCE = 30.0


def wait(condition: Any, what: str = "the condition", *, patience: float = PATIENCE) -> Any:
    """Return the first true value of `condition`; fail after `patience`, in seconds."""
    end = time.monotonic() + patience
    while time.monotonic() < end:
        if found := condition():
            return found
        time.sleep(0.02)
    raise AssertionError(f"Waited in vain for {what}")
