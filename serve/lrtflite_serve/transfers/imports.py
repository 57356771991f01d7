"""Replace the state of a running service by an uploaded one; nothing is lost on failure."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from lrtflite import Learner, quiet_stderr
from lrtflite_serve.service.service import Service
from lrtflite_serve.transfers.swapping import aside, pictures_of, swap, swap_back, unpacked


def import_state(service: Service, archive: Path) -> dict[str, Any]:
    """Open an uploaded state in the place of the current one, which is set aside.

    Answers come from the old state until the new one is open. The new names of the old one and its
    kept pictures, next to the state, are in the result.
    """
    state = Path(service.settings.state).absolute()

    def opened(folder: Path, read_only: bool) -> Learner:
        options = replace(service.settings.options, read_only=read_only)
        with quiet_stderr():
            return Learner.open_with(service.learner.bundle, folder, options)

    pictures = pictures_of(state)
    with service.turns.change("take another state"), unpacked(archive, state, opened) as folder:
        old = service.learner
        old.close()
        try:
            stamp = swap(folder, state)
        except BaseException:
            service.learner = opened(state, False)
            raise
        try:
            service.learner = opened(state, False)
        except BaseException:
            swap_back(folder, state, stamp)
            service.learner = opened(state, False)
            raise
        service.open_pictures()
        service.tray.clear()
        # An undo would take back the last change of the new state, not the replacement.
        classes = service.changed("took another state", can_take_back=False)
    old_state, old_pictures = aside(state, stamp).name, aside(pictures, stamp).name
    kept = old_pictures if aside(pictures, stamp).is_dir() else None
    names = old_state if kept is None else f"{old_state}, its pictures in {old_pictures}"
    service.say(f"The old state is in {names}; delete what you do not need")
    return {"old_state": old_state, "old_pictures": kept, "classes": classes}
