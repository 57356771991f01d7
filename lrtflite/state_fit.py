"""Check that a state belongs to a bundle."""

from __future__ import annotations

from lrtflite.bundle import Bundle
from lrtflite.errors import StateError
from lrtflite.state_file import State


def check_fits(state: State, bundle: Bundle) -> None:
    """Raise StateError for a state from other models, or with latents stored in another form."""
    layer, codec = bundle.manifest.replay_layer, bundle.manifest.codec
    meta = state.meta
    if meta["bundle"] != bundle.identity:
        same = layer == meta["replay_layer"]
        other = "from other weights or another conversion" if same else meta["replay_layer"]
        raise StateError(
            f"Expected a state for the bundle {bundle.path} ({layer}), got one for another "
            f"bundle ({other}); open its own bundle, or a new state path"
        )
    if meta["codec"] != codec:
        raise StateError(
            f"Expected a state with codec {codec}, got {meta['codec']}; open its own bundle"
        )
