"""The token of a server that others on the network reach: made once, kept beside the state."""

from __future__ import annotations

import re
import secrets
from pathlib import Path

from lrtflite_serve.kept_text import kept_text

_TOKEN = re.compile(r"[A-Za-z0-9_-]{16,128}", re.ASCII)
BYTES = 18


def kept_token(path: Path) -> str:
    """Return the token in a file that only this user can read; make it if it is missing."""
    what = "a token of 16 to 128 letters and digits"
    return kept_text(path, _TOKEN, lambda: secrets.token_urlsafe(BYTES), what=what, private=True)
