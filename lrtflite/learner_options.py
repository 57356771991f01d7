"""How a learner is opened, as one value that is handed through whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from lrtflite.arguments import whole_number
from lrtflite.manifest import Manifest
from lrtflite.runtime import default_threads


@dataclass(frozen=True)
class LearnerOptions:
    """Options of `Learner.open`; None stands for a default of the bundle or of the state."""

    runtime: str = "auto"
    threads: int | None = None
    replay_size: int | None = None
    policy: str | None = None
    seed: int = 0
    read_only: bool = False

    def __post_init__(self) -> None:
        whole_number("seed", self.seed)

    def settled(self, manifest: Manifest, meta: Mapping[str, Any] | None) -> LearnerOptions:
        """Return a copy without None: `meta` of a state counts more than the bundle's manifest."""
        usual = vars(manifest) if meta is None else meta
        default = default_threads(trains_trunk=manifest.trains_trunk)
        return replace(
            self,
            threads=default if self.threads is None else self.threads,
            replay_size=usual["replay_size"] if self.replay_size is None else self.replay_size,
            policy=self.policy or usual["policy"],
        )
