"""Options for opening a learner, in one value."""

from __future__ import annotations

from dataclasses import dataclass, replace

from lrtflite.arguments import real_number, whole_number
from lrtflite.bundle.manifest import Manifest
from lrtflite.labels import check_label
from lrtflite.replay.memory import check_memory
from lrtflite.replay.policies import POLICIES
from lrtflite.runtime.model import AUTO, MAX_THREADS, check_runtime, default_threads


@dataclass(frozen=True)
class LearnerOptions:
    """Options of `Learner.open`; None stands for the default of the state or the bundle."""

    runtime: str = AUTO
    threads: int | None = None
    replay_size: int | None = None
    policy: str | None = None
    seed: int = 0
    read_only: bool = False
    unknown: float | None = None
    require_signature: str | None = None
    device: str | None = None

    def __post_init__(self) -> None:
        whole_number("seed", self.seed)
        check_runtime(self.runtime)
        if self.policy is not None:
            POLICIES.check(self.policy)
        if self.replay_size is not None:
            check_memory(self.replay_size, self.policy or next(iter(POLICIES)))
        if self.unknown is not None:
            real_number("unknown", self.unknown, most=1.0)
        if self.threads is not None:
            whole_number("threads", self.threads, least=1, most=MAX_THREADS)
        if self.device is not None:
            object.__setattr__(self, "device", check_label(self.device))

    def or_else(
        self, *, replay_size: int, policy: str, device: str | None = None
    ) -> LearnerOptions:
        """Return a copy with these in place of None."""
        return replace(
            self,
            replay_size=replay_size if self.replay_size is None else self.replay_size,
            policy=self.policy or policy,
            device=self.device or device,
        )

    def settled(self, manifest: Manifest) -> LearnerOptions:
        """Return a copy with the defaults of the bundle, and a number of threads."""
        threads = self.threads or default_threads(trains_trunk=manifest.trains_trunk)
        settled = self.or_else(replay_size=manifest.replay_size, policy=manifest.policy)
        return replace(settled, threads=threads)
