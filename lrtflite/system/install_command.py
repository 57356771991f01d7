"""The command that adds an extra to this installation, from where it was installed.

No package index is assumed: a clone and a wheel are installed again with the extra. pip writes the
file `direct_url.json` for everything that does not come from an index; it names the wheel.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from urllib.parse import unquote, urlsplit

NAME = "lrtflite"
CLONE = Path(__file__).resolve().parents[2]


def install_command(extra: str, *, clone: Path = CLONE, origin: str | None = None) -> str:
    """Return a command for a shell; `origin` replaces the text of the installed direct_url.json."""
    if (clone / "pyproject.toml").is_file():
        return f"pip install -e {shlex.quote(f'{clone}[{extra}]')}"
    url = _url(_origin() if origin is None else origin)
    if url is None:
        return f"pip install {shlex.quote(f'{NAME}[{extra}]')}"
    if not url.startswith("file:"):
        return f"pip install {shlex.quote(f'{NAME}[{extra}] @ {url}')}"
    path = Path(unquote(urlsplit(url).path))
    if path.exists():
        return f"pip install {shlex.quote(f'{path}[{extra}]')}"
    return f'pip install "$(ls {NAME}-*.whl)[{extra}]" (in the folder of its wheel)'


def _url(origin: str) -> str | None:
    """Return the URL in a direct_url.json; None if it is missing or says something else."""
    try:
        found = json.loads(origin)
        url, vcs = found["url"], found.get("vcs_info", {}).get("vcs")
        return f"{vcs}+{url}" if vcs else str(url)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _origin() -> str:
    from importlib import metadata

    try:
        return metadata.distribution(NAME).read_text("direct_url.json") or ""
    except metadata.PackageNotFoundError:
        return ""
