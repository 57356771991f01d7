"""Ship a taught bundle: a copy of the models, with a learner's state as the initial state."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from lrtflite.bundle.bundle import FILES, INITIAL_FILE, Bundle, write_manifest
from lrtflite.bundle.destination import Destination
from lrtflite.files.digest import digest
from lrtflite.state.reading import State, write_state


def ship(
    bundle: Bundle, state: State, out: str | Path | Destination, *, replace_bundle: bool = False
) -> Bundle:
    """Write the bundle `out`: the models of `bundle`, and `state` as the initial state.

    The models are the same bytes, so a state made with `bundle` opens with `out` too.
    """
    destination = Destination.at(out, replace=replace_bundle)
    with destination.making_bundle() as made:
        for name in FILES:
            bundle.file(name).copy_to(made / name)
        write_state(made / INITIAL_FILE, state)
        manifest = replace(
            bundle.manifest,
            labels=state.meta.labels,
            files={name: digest(made / name) for name in (*FILES, INITIAL_FILE)},
        )
        write_manifest(made, manifest)
    return Bundle.open(destination.path)
