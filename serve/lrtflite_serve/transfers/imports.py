"""Replace the state of a running service by an uploaded one; nothing is lost on failure."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from lrtflite import Learner, quiet_stderr
from lrtflite.errors import StateError
from lrtflite_serve.service.disk import disk_errors
from lrtflite_serve.service.service import Service
from lrtflite_serve.transfers.swapping import free_name, swap, swap_back, unpacked


def import_state(service: Service, archive: Path) -> dict[str, Any]:
    """Open an uploaded state in the place of the current one, which is set aside.

    Answers come from the old state until the new one is open. The name of the old one, next to the
    state, is in the result.
    """
    state = Path(service.settings.state).absolute()

    def opened(folder: Path, read_only: bool) -> Learner:
        options = replace(service.settings.options, read_only=read_only)
        with quiet_stderr():
            return Learner.open_with(service.learner.bundle, folder, options)

    with service.turns.change("take another state"), unpacked(archive, state, opened) as folder:
        old = service.learner
        old.close()
        try:
            aside = swap(folder, state)
        except BaseException:
            service.learner = opened(state, False)
            raise
        try:
            service.learner = opened(state, False)
        except BaseException:
            swap_back(aside, state)
            service.learner = opened(state, False)
            raise
        pictures = _set_pictures_aside(service)
        service.tray.clear()
        # An undo would take back the last change of the new state, not the replacement.
        classes = service.changed("took another state", can_take_back=False)
    return {"old_state": aside.name, "old_pictures": pictures, "classes": classes}


def _set_pictures_aside(service: Service) -> str | None:
    """Move the pictures of the old state aside and begin without any; return their new name."""
    if service.album is None:
        service.thumbnails.clear()
        return None
    folder = service.album.folder
    aside: Path | None = free_name(folder)
    with suppress(StateError), disk_errors("set pictures aside"):
        assert aside is not None
        folder.rename(aside)
    if folder.exists():
        aside = None
    service.open_pictures()
    return None if aside is None else aside.name
