"""The values of a state that are not arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrtflite.bundle.bundle import Bundle
from lrtflite.state.history import History


@dataclass(frozen=True)
class StateMeta:
    """The values of a state that fit in JSON, in the order of their keys there.

    `bundle` is the identity of the bundle. `labels` has the label of each slot, `learned` is true
    for slots that have learned. `rng` is a state for numpy, or None for that of another client's
    generator. `history` has the newest sessions and `folded` the labels of all before them, as JSON
    objects; `sessions` counts both. These and the next two are None where they are not known.
    `background` is the slot of the background, None if it was not taught.
    """

    bundle: str
    replay_layer: str
    replay_size: int
    policy: str
    codec: str
    labels: tuple[str | None, ...]
    learned: tuple[bool, ...]
    rng: Mapping[str, Any] | None
    sessions: int
    history: tuple[dict[str, Any], ...]
    folded: Mapping[str, Any] | None = None
    device: str | None = None
    bundle_version: str | None = None
    background: int | None = None

    @classmethod
    def of(
        cls,
        bundle: Bundle,
        history: History,
        *,
        replay_size: int,
        policy: str,
        labels: Sequence[str | None],
        learned: NDArray[np.bool_],
        rng: Mapping[str, Any],
        device: str | None = None,
        background: int | None = None,
    ) -> StateMeta:
        """Return the values of a state of `bundle`; `learned` (C,) is true for slots that have."""
        manifest = bundle.manifest
        made = cls(
            bundle=bundle.identity,
            replay_layer=manifest.replay_layer,
            replay_size=replay_size,
            policy=policy,
            codec=manifest.codec,
            labels=tuple(labels),
            learned=tuple(learned.tolist()),
            rng=rng,
            sessions=0,
            history=(),
            device=device,
            bundle_version=manifest.version,
            background=background,
        )
        return made.with_history(history)

    def with_history(self, history: History) -> StateMeta:
        """Return a copy with these sessions."""
        return replace(
            self,
            sessions=history.sessions,
            history=tuple(entry.to_json() for entry in history.recent),
            folded=history.folded.to_json() if len(history.folded) else None,
        )


# The values of no state, which the first generation of a folder is written after.
NO_STATE = StateMeta("", "", 0, "", "", (), (), None, 0, ())
