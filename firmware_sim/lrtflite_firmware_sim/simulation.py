"""Simulate a device that learns: sessions, test after each, timing and RAM."""

from __future__ import annotations

from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from lrtflite import metrics
from lrtflite.bundle import FEATURES, HEAD, Bundle, demo_bundle
from lrtflite.data import Batch
from lrtflite.machine import filesystem_of, this_machine, versions
from lrtflite.session import Progress, SessionReport
from lrtflite_firmware_sim.device_process import DeviceProcess
from lrtflite_firmware_sim.plan import APP_FPS, Plan, SimulateOptions, make_plan
from lrtflite_firmware_sim.results import (
    BundleFacts,
    ClassResult,
    SessionResult,
    Simulation,
    Spread,
)
from lrtflite_firmware_sim.test_set import TestSet
from lrtflite_firmware_sim.watcher import Watcher

_INFER_ROUNDS = 3  # over the sample frames, after one that warms up
_IN_RAM = ("tmpfs", "ramfs")
TEST_NOTE = (
    "The device extracts the test set anew after each session, because its latents change or are "
    "too many to keep: that takes longer, and counts in no figure."
)


def simulate(
    bundle: str | Path | None = None,
    options: SimulateOptions | None = None,
    *,
    watcher: Watcher | None = None,
) -> Simulation:
    """Let a device learn a stream of sessions, in a process of its own; see `SimulateOptions`.

    Without `bundle` it is the demo bundle that comes with the package. No TensorFlow is needed.
    """
    options, watcher = options or SimulateOptions(), watcher or Watcher()
    with ExitStack() as stack:
        path = stack.enter_context(demo_bundle()) if bundle is None else Path(bundle)
        opened = Bundle.open(path)
        plan = make_plan(opened.manifest, options)
        device = stack.enter_context(
            DeviceProcess(
                path,
                runtime=options.runtime,
                threads=options.threads,
                replay_size=plan.replay_size,
                policy=plan.policy,
                seed=options.seed,
            )
        )
        run = _Run(opened, device, plan, watcher)
        run.watch_notes(demo=bundle is None)
        run.all_sessions()
        return run.result(options, demo=bundle is None)


class _Run:
    """One simulation under way: what was measured so far."""

    def __init__(self, bundle: Bundle, device: DeviceProcess, plan: Plan, watcher: Watcher) -> None:
        self._bundle, self._device, self._plan, self._watcher = bundle, device, plan, watcher
        self._classes = plan.source.classes
        self._timings: defaultdict[str, list[float]] = defaultdict(list)
        self._sessions: list[SessionResult] = []
        self._history: list[np.ndarray[tuple[int, ...], np.dtype[np.float64]]] = []
        # The row of `_history` that first taught a class; what a bundle knows when it is opened
        # was learned before row 0.
        known = set(device.opened.learned)
        self._learned = [-1 if name in known else None for name in self._classes]
        self._newest = self._first = frozenset(plan.batches[0].classes)
        self._notes = list(plan.notes)

    def watch_notes(self, *, demo: bool) -> None:
        if demo:
            self._notes.insert(0, "No bundle was given: this is the packaged demo bundle.")
        kind = filesystem_of(self._device.state)
        if kind in _IN_RAM:
            self._notes.append(
                f"The state was saved to a {kind}, which is RAM: `checkpoint` would take longer on "
                "a disk. Set TMPDIR to a folder on one."
            )
        for note in self._notes:
            self._watcher.note(note)

    def all_sessions(self) -> None:
        with self._watcher.running(len(self._plan.batches)):
            self._test = TestSet.read(
                self._plan.source,
                self._device,
                self._bundle.manifest,
                on_frame=self._watcher.testing,
            )
            if not self._test.is_extracted:
                self._notes.append(TEST_NOTE)
                self._watcher.note(TEST_NOTE)
            for batch in self._plan.batches:
                report = self._learn(batch)
                result = self._judge(batch, report)
                self._sessions.append(result)
                self._watcher.learned(result)
            self._time_predictions()

    def _learn(self, batch: Batch) -> SessionReport:
        names = [self._classes[label] for label in batch.classes]
        self._watcher.learning(names)

        def on_progress(progress: Progress) -> None:
            self._watcher.step(progress.phase, progress.done, progress.total)

        report = self._device.learn(
            batch.frames(),
            [self._classes[label] for label in batch.labels],
            training=self._plan.training,
            on_frame=lambda count: self._watcher.step("extract", count, len(batch)),
            on_progress=on_progress,
        )
        for phase, values in report.timings.items():
            self._timings[phase] += values
        return report

    def _judge(self, batch: Batch, report: SessionReport) -> SessionResult:
        row = len(self._history)
        new = frozenset(label for label in batch.classes if self._learned[label] is None)
        for label in new:
            self._learned[label] = row
        self._newest = new or self._newest
        seen = [label for label, first in enumerate(self._learned) if first is not None]
        truth = self._test.truth
        guess = self._test.predicted(
            self._device,
            self._device.vitals().labels,
            on_frame=lambda done, total: self._watcher.step("test", done, total),
        )
        # The last class of these is "none of the data set's".
        by_class = metrics.class_accuracy(guess, truth, classes=len(self._classes) + 1)
        self._history.append(by_class[: len(self._classes)])
        return SessionResult(
            session=report.session,
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
        )

    def _time_predictions(self) -> None:
        for number in range(1 + _INFER_ROUNDS):
            times = [self._device.predict(frame).milliseconds for frame in self._test.samples]
            if number:
                self._timings["infer"] += times

    def result(self, options: SimulateOptions, *, demo: bool) -> Simulation:
        vitals = self._device.vitals()
        latency = {phase: _spread(values) for phase, values in self._timings.items()}
        session_ms = _spread([session.session_ms for session in self._sessions])
        if options.protocol == "app":
            self._notes.append(_camera_note(latency["extract"]))
        history = np.array(self._history)
        return Simulation(
            final_accuracy=self._sessions[-1].accuracy,
            forgetting=metrics.forgetting(history, self._learned),
            accuracy=tuple(self._sessions),
            per_class=tuple(
                ClassResult(
                    name=name,
                    first_session=None if first is None else first + 1,
                    final_accuracy=float(history[-1, label]),
                    best_accuracy=float(history[:, label].max()),
                )
                for label, (name, first) in enumerate(zip(self._classes, self._learned))
            ),
            latency_ms=latency,
            session_ms_p50=session_ms.p50,
            session_ms=session_ms,
            peak_ram_mb=vitals.peak_ram_mb,
            replay_bytes=vitals.replay_bytes,
            replay_patterns=vitals.replay_patterns,
            replay_size=vitals.replay_capacity,
            policy=vitals.policy,
            runtime=vitals.runtime,
            threads=options.threads,
            machine=this_machine(),
            versions=versions(vitals.runtime_version),
            seed=options.seed,
            bundle=_facts(self._bundle, demo=demo),
            dataset=options.dataset,
            protocol=str(self._plan.stream["protocol"]),
            stream=self._plan.stream,
            training=self._plan.training,
            sessions=len(self._sessions),
            sessions_in_stream=self._plan.of_batches,
            test_frames=len(self._test.truth),
            notes=tuple(self._notes),
        )


def _spread(values: list[float]) -> Spread:
    found = metrics.percentiles(values)
    return Spread(p50=float(found["p50"]), p95=float(found["p95"]), n=int(found["n"]))


def _camera_note(extract: Spread) -> str:
    between = 1000 / APP_FPS
    keeps_up = "keeps up" if extract.p95 <= between else "does not keep up"
    return (
        f"At {APP_FPS} fps the camera leaves {between:.0f} ms for each frame; extraction "
        f"{keeps_up} with it here ({extract.p95:.1f} ms at p95). The simulator does not wait for "
        "the camera's clock."
    )


def _facts(bundle: Bundle, *, demo: bool) -> BundleFacts:
    manifest = bundle.manifest
    return BundleFacts(
        path="demo" if demo else str(bundle.path),
        demo=demo,
        backbone=manifest.backbone,
        replay_layer=manifest.replay_layer,
        input_size=manifest.input_size,
        latent_shape=manifest.latent_shape,
        slots=manifest.slots,
        batch_size=manifest.batch_size,
        new_per_batch=manifest.new_per_batch,
        features_bytes=manifest.files[FEATURES].bytes,
        head_bytes=manifest.files[HEAD].bytes,
        latent_dtype=manifest.latent_dtype,
        trains_trunk=manifest.trains_trunk,
        adapt_moments=manifest.adapt_moments,
    )
