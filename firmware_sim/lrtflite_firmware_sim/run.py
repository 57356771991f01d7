"""A running simulation: its sessions, the test after each, and the results."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrtflite.advice import confusions
from lrtflite.advice.actions import for_confused
from lrtflite.bundle.bundle import Bundle
from lrtflite.data import Batch
from lrtflite.progress import Phase, Progress
from lrtflite.session.diagnosis import NOT_JUDGED
from lrtflite.session.session import SessionReport
from lrtflite.system.machine import filesystem_of, this_machine, versions
from lrtflite.workbench import metrics
from lrtflite_firmware_sim.device.messages import Vitals
from lrtflite_firmware_sim.device.process import DeviceProcess
from lrtflite_firmware_sim.held_out import HeldOut
from lrtflite_firmware_sim.plan import APP_FPS, Plan, SimulateOptions
from lrtflite_firmware_sim.reporting.results import (
    BundleFacts,
    ClassResult,
    SessionResult,
    Simulation,
    Spread,
    StartResult,
)
from lrtflite_firmware_sim.reporting.summary import diagnosis_notes
from lrtflite_firmware_sim.stored_latents import StoredLatents
from lrtflite_firmware_sim.strangers import Strangers
from lrtflite_firmware_sim.watcher import Watcher

# Timed rounds of predictions on the sample frames, after a warm-up round.
_INFER_ROUNDS = 3
# File systems that keep their files in RAM.
_IN_RAM = ("tmpfs", "ramfs")
TEST_NOTE = (
    "The device extracts the test set again after each session, because its latents change or are "
    "too many to keep. This takes longer, but is not part of any figure."
)


@dataclass(frozen=True)
class _Judged:
    """A finished session: result, accuracy of each class, answers, timings, state of the device."""

    result: SessionResult
    by_class: NDArray[np.float64]
    guess: NDArray[np.int64]
    timings: dict[str, list[float]]
    vitals: Vitals


@dataclass(frozen=True)
class _Start:
    """The test before the first session of a bundle that knows some of the classes."""

    result: StartResult
    by_class: NDArray[np.float64]


class Run:
    """One running simulation.

    INVARIANT: `judged` has the measurements of all sessions and grows by one session at a time, so
    a run can be stopped anywhere.
    """

    def __init__(
        self,
        bundle: Bundle,
        device: DeviceProcess,
        plan: Plan,
        options: SimulateOptions,
        watcher: Watcher,
        *,
        demo: bool,
        stored: StoredLatents | None = None,
    ) -> None:
        self.judged: list[_Judged] = []
        self._bundle, self._device, self._plan, self._watcher = bundle, device, plan, watcher
        self._options, self._demo, self._stored = options, demo, stored
        self._classes = plan.source.classes
        # Forgetting is shown for the classes that the bundle shipped with, else for the first ones.
        known = frozenset(device.opened.learned)
        self._known = [label for label, name in enumerate(self._classes) if name in known]
        self._newest = frozenset(plan.batches[0].classes)
        self._first = frozenset(self._known) or self._newest
        self._start: _Start | None = None
        self._predictions: list[float] = []
        # Note of the last diagnosis on what it could not see.
        self._unseen: str | None = None
        self._notes = [*self._opening_notes()]
        for note in self._notes:
            watcher.note(note)

    def _opening_notes(self) -> Iterator[str]:
        if self._demo:
            yield "No bundle was given: this is the packaged demo bundle."
        yield from self._plan.notes
        kind = filesystem_of(self._device.state)
        if kind in _IN_RAM:
            yield (
                f"The state was saved to a {kind}, which is in RAM. On a disk, `checkpoint` would "
                "take longer: set TMPDIR to a folder on a disk to measure it."
            )

    def all_sessions(self) -> None:
        """Run all sessions of the plan, with a test after each."""
        with self._watcher.running(len(self._plan.batches)):
            self._held_out = HeldOut.read(
                self._plan.source,
                self._device,
                self._bundle.manifest,
                stored=self._stored,
                on_progress=self._watcher.testing,
            )
            self._strangers = Strangers(self._held_out.truth, default=self._bundle.manifest.unknown)
            if not self._held_out.is_extracted:
                self._notes.append(TEST_NOTE)
                self._watcher.note(TEST_NOTE)
            if self._known:
                self._start = self._judge_start()
                self._watcher.starting(self._start.result)
            for batch in self._plan.batches:
                judged = self._judge(batch, self._learn(batch))
                self.judged.append(judged)
                self._watcher.learned(judged.result)
            self._predictions = self._time_predictions()

    def _learn(self, batch: Batch) -> SessionReport:
        names = [self._classes[label] for label in batch.classes]
        self._watcher.learning(names)
        labels = [self._classes[label] for label in batch.labels]
        given: dict[str, Any] = {
            "training": self._plan.training,
            "diagnose": self._options.diagnose,
            "on_progress": self._watcher.step,
        }
        if self._stored is not None:
            rows = self._stored.of_parts(batch.parts)
            report = self._device.learn_stored(self._stored.file, rows, labels, **given)
        else:
            report = self._device.learn(
                batch.frames(),
                labels,
                on_frame=lambda n: self._watcher.step(Progress(Phase.EXTRACT, n, len(batch))),
                **given,
            )
        for note in report.notes:
            self._notes.append(f"Session {len(self.judged) + 1}: {note}.")
            self._watcher.note(self._notes[-1])
        return report

    def _guess(
        self, vitals: Vitals, *, seen: Collection[int]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the predicted class of each test frame, and the accuracy of each class."""
        tested = self._held_out.predicted(
            self._device, vitals.labels, on_progress=self._watcher.step
        )
        self._strangers.tested(tested.familiarity, seen=seen)
        # The last class stands for answers that are not in the data set.
        classes = len(self._classes)
        by_class = metrics.class_accuracy(tested.guess, self._held_out.truth, classes=classes + 1)
        return tested.guess, by_class[:classes]

    def _judge_start(self) -> _Start:
        guess, by_class = self._guess(self._device.opened, seen=self._known)
        truth = self._held_out.truth
        result = StartResult(
            classes=tuple(self._classes[label] for label in self._known),
            accuracy=metrics.accuracy(guess, truth),
            accuracy_known=metrics.accuracy(guess, truth, classes=self._known),
        )
        return _Start(result, by_class)

    def _judge(self, batch: Batch, report: SessionReport) -> _Judged:
        before = self._first_rows()
        new = frozenset(label for label in batch.classes if before[label] is None)
        self._unseen = None if report.diagnosis is None else report.diagnosis.note
        self._newest = new or self._newest
        seen = [label for label, row in enumerate(before) if row is not None or label in new]
        truth, vitals = self._held_out.truth, self._device.vitals()
        guess, by_class = self._guess(vitals, seen=seen)
        result = SessionResult(
            # The learner's own number also counts the sessions before it shipped.
            session=len(self.judged) + 1,
            accuracy=metrics.accuracy(guess, truth),
            classes_seen=len(seen),
            accuracy_seen=metrics.accuracy(guess, truth, classes=seen),
            accuracy_new=metrics.accuracy(guess, truth, classes=self._newest),
            accuracy_first=metrics.accuracy(guess, truth, classes=self._first),
            classes=tuple(self._classes[label] for label in batch.classes),
            new_classes=tuple(self._classes[label] for label in sorted(new)),
            frames=report.frames,
            steps=report.steps,
            loss=report.loss,
            replay_patterns=report.replay_patterns,
            session_ms=report.ready_to_committed_ms,
            diagnosis=() if report.diagnosis is None else report.diagnosis.lines,
        )
        return _Judged(result, by_class, guess, report.timings, vitals)

    def _first_rows(self) -> list[int | None]:
        """Return, for each class, the first row of the history in which it is known."""
        rows = {
            name: row
            for row, judged in enumerate(self.judged, start=self._rows_before)
            for name in judged.result.new_classes
        }
        known = {self._classes[label]: 0 for label in self._known}
        return [{**rows, **known}.get(name) for name in self._classes]

    @property
    def _rows_before(self) -> int:
        """Return the number of rows of the history before the first session."""
        return 0 if self._start is None else 1

    def _time_predictions(self) -> list[float]:
        """Return milliseconds per prediction, without the warm-up round."""
        rounds = [
            [self._device.predict(frame).milliseconds for frame in self._held_out.samples]
            for _ in range(1 + _INFER_ROUNDS)
        ]
        return [milliseconds for times in rounds[1:] for milliseconds in times]

    def _closing_notes(self, done: Sequence[SessionResult], extraction: Spread) -> Iterator[str]:
        if self._options.protocol == "app":
            yield _camera_note(extraction)
        if self._options.diagnose:
            yield from diagnosis_notes(done, self._unseen)

    def result(self, *, stopped_by: BaseException | None = None) -> Simulation:
        """Return the results so far; if `stopped_by` an error, send no request to the device."""
        done = tuple(judged.result for judged in self.judged)
        vitals = self._device.vitals() if stopped_by is None else self.judged[-1].vitals
        session_ms = Spread.of([session.session_ms for session in done])
        latency = self._latency()
        start = [] if self._start is None else [self._start.by_class]
        history = np.array([*start, *(judged.by_class for judged in self.judged)])
        first_rows = self._first_rows()
        return Simulation(
            final_accuracy=done[-1].accuracy,
            forgetting=metrics.forgetting(history, first_rows),
            per_session=done,
            per_class=tuple(self._class_results(history, first_rows)),
            latency_ms=latency,
            session_ms_p50=session_ms.p50,
            session_ms=session_ms,
            peak_ram_mb=vitals.peak_ram_mb,
            replay_bytes=vitals.replay_bytes,
            parameter_bytes=vitals.parameter_bytes,
            replay_patterns=vitals.replay_patterns,
            replay_size=vitals.replay_capacity,
            policy=vitals.policy,
            runtime=vitals.runtime,
            threads=self._plan.learner.threads or 1,
            machine=this_machine(),
            versions=versions(vitals.runtime_version),
            seed=self._options.learner.seed,
            bundle=BundleFacts.of(self._bundle, demo=self._demo),
            dataset=self._options.dataset,
            protocol=str(self._plan.stream["protocol"]),
            stream=self._plan.stream,
            training=self._plan.rates,
            sessions=len(done),
            sessions_in_stream=self._plan.of_batches,
            test_frames=len(self._held_out.truth),
            notes=(*self._notes, *self._closing_notes(done, latency[Phase.EXTRACT])),
            start=None if self._start is None else self._start.result,
            rival=self._options.rival,
            unknown=self._strangers.answers(),
            improve=self._improve(first_rows),
            class_accuracy=tuple(tuple(map(float, row)) for row in history),
            phase_ms={phase: sum(values) for phase, values in self._timings().items()},
            incomplete=None if stopped_by is None else self._how_it_ended(stopped_by),
        )

    def _class_results(
        self, history: NDArray[np.float64], first_rows: Sequence[int | None]
    ) -> Iterator[ClassResult]:
        for label, (name, row) in enumerate(zip(self._classes, first_rows)):
            yield ClassResult(
                name=name,
                first_session=None if row is None else row + 1 - self._rows_before,
                final_accuracy=float(history[-1, label]),
                best_accuracy=float(history[:, label].max()),
            )

    def _improve(self, first_rows: Sequence[int | None]) -> tuple[str, ...]:
        """Return what to do about the confusions of the last test, among the classes taught."""
        taught = [label for label, row in enumerate(first_rows) if row is not None]
        tested = np.isin(self._held_out.truth, taught)
        guess, truth = self.judged[-1].guess[tested], self._held_out.truth[tested]
        answers = np.where(np.isin(guess, taught), guess, NOT_JUDGED)
        found = confusions(answers, truth, self._classes)
        return tuple(action.text for action in for_confused(found, what="test frame"))

    def _latency(self) -> dict[str, Spread]:
        # A run that was stopped has not timed any prediction.
        timings = {**self._timings(), Phase.INFER: self._predictions}
        spread = {phase: Spread.of(values) for phase, values in timings.items() if values}
        stored = {} if self._stored is None else {Phase.EXTRACT: self._stored.extract_ms}
        return {**stored, **spread}

    def _timings(self) -> dict[str, list[float]]:
        """Return the milliseconds of each run of each phase of the sessions."""
        timings: defaultdict[str, list[float]] = defaultdict(list)
        for judged in self.judged:
            for phase, values in judged.timings.items():
                timings[phase] += values
        return dict(timings)

    def _how_it_ended(self, error: BaseException) -> str:
        where = f"after {len(self.judged)} of {len(self._plan.batches)} sessions"
        if isinstance(error, KeyboardInterrupt):
            return f"Interrupted {where}"
        return f"Stopped {where}: {error or type(error).__name__}"


def _camera_note(extract: Spread) -> str:
    between = 1000 / APP_FPS
    keeps_up = "keeps up" if extract.p95 <= between else "does not keep up"
    return (
        f"At {APP_FPS} fps the camera leaves {between:.0f} ms for each frame; extraction "
        f"{keeps_up} with it here ({extract.p95:.1f} ms at p95). The simulator does not wait for "
        "the camera's clock."
    )
