"""The name of a device among others, made once and kept beside its state."""

from __future__ import annotations

import re
import secrets
from pathlib import Path

from lrtflite_serve.kept_text import kept_text

_IDENTITY = re.compile(r"lrtflite_[0-9a-f]{8}", re.ASCII)


def kept_identity(path: Path) -> str:
    """Return the identity in a file; make it if it is missing.

    It is random: two devices with copies of one state must not answer to one name.
    """
    what = "lrtflite_ and 8 hexadecimal digits"
    return kept_text(path, _IDENTITY, lambda: f"lrtflite_{secrets.token_hex(4)}", what=what)
