"""The browser of these tests: headless Chromium whose camera plays a film."""

from __future__ import annotations

import os
from pathlib import Path

CHROMIUM = os.environ.get("LRTFLITE_CHROMIUM", "/usr/bin/chromium")
QUIET = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def flags(film: Path | None) -> list[str]:
    """Return Chromium's flags; without a film it has no camera at all."""
    if film is None:
        return QUIET
    fake = ["--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"]
    return [*QUIET, *fake, f"--use-file-for-fake-video-capture={film}"]
