"""A rival in the place of a bundle's head: the device drives it like a learner."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrtflite.answers.prediction import Answers, Prediction, top_predictions
from lrtflite.bundle.bundle import Bundle
from lrtflite.bundle.training import Training
from lrtflite.errors import InputError
from lrtflite.files.tensors import Outgoing
from lrtflite.frames.checks import check_frames
from lrtflite.options import LearnerOptions
from lrtflite.progress import OnProgress, Phase
from lrtflite.runtime.model import Model
from lrtflite.session.latents import check_latents
from lrtflite.session.recording import record
from lrtflite.session.session import Session, SessionReport
from lrtflite.state.initial import learned_labels
from lrtflite.state.reading import write_atomic
from lrtflite.state.slots import Slots, broadcast_slots
from lrtflite.verification.trial import try_models
from lrtflite_firmware_sim.rivals import RIVALS
from lrtflite_firmware_sim.rivals.rival import Floats, Rival


class RivalLearner:
    """A rival that learns from the latents of a bundle; it has what `Device` needs of a learner.

    INVARIANT: `memory`, the rival, changes only at the end of a session that succeeded. The state
    is written so that its cost is measured, but never read.
    """

    def __init__(
        self, bundle: str | Bundle, state: str, options: LearnerOptions, *, rival: str
    ) -> None:
        """Open the features of a bundle; `options` contains no None."""
        assert options.replay_size is not None
        assert options.threads is not None
        self.bundle = bundle if isinstance(bundle, Bundle) else Bundle.open(bundle)
        manifest = self.bundle.manifest
        [features] = manifest.latent_shape
        self.memory: Rival = RIVALS.choose(rival).start(
            classes=manifest.slots, features=features, capacity=options.replay_size
        )
        try_models(self.bundle, options.runtime)
        self._features = Model(
            self.bundle.features, runtime=options.runtime, threads=options.threads
        )
        self.runtime = self._features.runtime
        self.sessions = 0
        self._name = rival
        self._slots = Slots(manifest.labels)
        self._rng = np.random.Generator(np.random.PCG64(options.seed))
        folder = Path(state)
        folder.mkdir(parents=True, exist_ok=True)
        self._state = folder / "rival.safetensors"

    @property
    def labels(self) -> tuple[str | None, ...]:
        """Return the label of each slot; None for a free one."""
        return self._slots.labels

    @property
    def learned(self) -> tuple[str, ...]:
        """Return the labels that `predict` can answer with."""
        return learned_labels(self.labels, self.memory.learned)

    def extract(self, frames: NDArray[np.uint8]) -> NDArray[Any]:
        """Return latents (n, F) of one frame (H, W, 3) or several (n, H, W, 3), uint8 RGB."""
        checked = check_frames(frames, self.bundle.manifest.input_size)
        return np.stack([self._extract_one(frame) for frame in checked])

    def probabilities(self, latents: NDArray[Any]) -> Floats:
        """Return probabilities (n, slots) float32; 0 for slots that have not learned."""
        checked = check_latents(latents, self.bundle.manifest)
        return self.memory.probabilities(self.bundle.manifest.real(checked))

    def answers(self, latents: NDArray[Any]) -> Answers:
        """Return probabilities; a rival does not report familiarity."""
        return Answers(self.probabilities(latents))

    def predict(self, frames: NDArray[np.uint8], *, top: int = 3) -> list[list[Prediction]]:
        """Return the `top` labels for each frame, most likely first; fewer if few are learned."""
        return top_predictions(self.answers(self.extract(frames)), self.labels, top=top)

    def learn(
        self,
        frames: Iterable[NDArray[np.uint8]],
        labels: Sequence[str],
        *,
        training: Training | None = None,
        diagnose: bool = False,
        on_progress: OnProgress | None = None,
    ) -> SessionReport:
        """Run one session with one label per frame; a second thread extracts meanwhile."""
        assert not diagnose  # `check_rival_options` refuses it
        session = Session(on_progress, None)
        places = self._slots.place_all(labels)
        latents, _ = record(
            frames, session, extract=self._extract_one, manifest=self.bundle.manifest
        )
        if not latents:
            raise InputError(
                "Expected at least one frame to learn from, got an empty session", "give it frames"
            )
        return self._learn(np.stack(latents), places, training, session)

    def learn_latents(
        self,
        latents: NDArray[Any],
        labels: Sequence[str],
        *,
        training: Training | None = None,
        diagnose: bool = False,
        on_progress: OnProgress | None = None,
    ) -> SessionReport:
        """Like `learn`, but from latents."""
        assert not diagnose  # `check_rival_options` refuses it
        checked = check_latents(latents, self.bundle.manifest)
        places = self._slots.place_all(labels)
        return self._learn(checked, places, training, Session(on_progress, None))

    def _learn(
        self,
        latents: NDArray[Any],
        places: tuple[NDArray[np.int32], Slots],
        training: Training | None,
        session: Session,
    ) -> SessionReport:
        started = session.now()
        placed, slots = broadcast_slots(places[0], len(latents)), places[1]
        rival, outcome = self.memory.learn(
            self.bundle.manifest.real(latents),
            placed,
            training,
            rng=self._rng,
            session=session,
        )
        with session.clock(Phase.CHECKPOINT):
            meta = {"rival": self._name, "labels": json.dumps(slots.labels)}
            arrays = {name: Outgoing.of(values) for name, values in rival.arrays.items()}
            write_atomic(self._state, meta, arrays)
        self.memory, self._slots = rival, slots
        self.sessions += 1
        session.report(Phase.CHECKPOINT, 1, 1)
        return SessionReport(
            session=self.sessions,
            frames=len(latents),
            labels=tuple(str(slots.labels[slot]) for slot in np.unique(placed)),
            steps=outcome.steps,
            loss=outcome.loss,
            accuracy=outcome.accuracy,
            replay_patterns=len(rival),
            ready_to_committed_ms=session.since(started),
            timings=session.timings,
        )

    def close(self) -> None:
        """Do nothing: there is nothing to release."""

    def _extract_one(self, frame: NDArray[np.uint8]) -> NDArray[Any]:
        extracted = self._features.run("extract", frames=frame[np.newaxis])
        latent: NDArray[Any] = extracted["latents"][0]
        return latent
