"""Simulate a device that learns: sessions, a test after each, timings and RAM."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from lrtflite.bundle.bundle import Bundle, demo_bundle
from lrtflite.session.run import without_effect
from lrtflite.state.initial import shipped_labels
from lrtflite_firmware_sim.device.process import DeviceProcess
from lrtflite_firmware_sim.plan import SimulateOptions, make_plan
from lrtflite_firmware_sim.reporting.results import Simulation
from lrtflite_firmware_sim.run import Run
from lrtflite_firmware_sim.stored_latents import StoredLatents
from lrtflite_firmware_sim.watcher import Watcher


def simulate(
    bundle: str | Path | None = None,
    options: SimulateOptions | None = None,
    *,
    watcher: Watcher | None = None,
    stored: Path | None = None,
    on_stopped: Callable[[Simulation], None] | None = None,
) -> Simulation:
    """Run a stream of sessions on a device in its own process; see `SimulateOptions`.

    With `stored`, a folder of `StoredLatents`, no frame is extracted in a session. The default
    `bundle` is the demo bundle that comes with the package. TensorFlow is not needed.
    If an error or Ctrl-C ends the run after its first session, `on_stopped` is called with the
    results so far, marked as incomplete, before the error is raised.
    """
    mapped = None
    options, watcher = options or SimulateOptions(), watcher or Watcher()
    run: Run | None = None
    try:
        with ExitStack() as stack:
            path = stack.enter_context(demo_bundle()) if bundle is None else Path(bundle)
            opened = Bundle.open(path)
            if stored is not None:
                mapped = StoredLatents.open(stored, opened.manifest)
            with watcher.looking() as on_progress:
                plan = make_plan(
                    opened.manifest, options, known=shipped_labels(opened), on_progress=on_progress
                )
            if options.rival is None:
                idle = without_effect(opened, options.rates)
                plan = replace(plan, notes=(*plan.notes, *idle))
            process = DeviceProcess(opened.path, plan.learner, rival=options.rival)
            device = stack.enter_context(process)
            run = Run(opened, device, plan, options, watcher, demo=bundle is None, stored=mapped)
            run.all_sessions()
            result = run.result()
    except BaseException as error:
        if on_stopped is not None and run is not None and run.judged:
            on_stopped(run.result(stopped_by=error))
        raise
    return result
