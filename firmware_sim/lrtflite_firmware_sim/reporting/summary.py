"""A simulation's figures as a few lines of text."""

from __future__ import annotations

from collections.abc import Sequence

from lrtflite.arguments import printable
from lrtflite.counted import classes_text, counted
from lrtflite.progress import Phase
from lrtflite.workbench.unknown import unknown_line
from lrtflite_firmware_sim.reporting.results import SessionResult, Simulation, Spread

# Phases in the order of a session, with the unit that each measurement covers.
PHASES = {
    Phase.EXTRACT: "per frame, while the camera records",
    Phase.BEGIN: "per session",
    Phase.PREPARE: "per step: put a mini-batch together",
    Phase.TRAIN: "per step",
    Phase.GATHER: "per mini-batch, after the last step: collect sums over its patterns",
    Phase.CONSOLIDATE: "per session",
    Phase.ADAPT: "per group of new frames: move the moments below the replay layer",
    Phase.MEMORY: "per session: update the replay memory",
    Phase.CHECKPOINT: "per session: save the state, flushed to the disk",
    Phase.INFER: "per frame, extraction included",
}

FORGETTING = "mean drop of a class from its best"
# Meaning of that drop for a head that solves its last layer from sums.
NOT_OVERWRITTEN = "no session overwrote another; more classes are harder to tell apart"
# Number of sessions whose diagnosis is shown.
DIAGNOSED = 2


def summary(result: Simulation) -> str:
    """Return about twenty lines for a terminal of 80 columns."""
    last = result.per_session[-1]
    bundle = result.bundle
    name = "demo bundle" if bundle.demo else bundle.path
    parts = [
        *([f"INCOMPLETE: {result.incomplete}"] if result.incomplete else []),
        f"{name}: {bundle.backbone}, replay layer {bundle.replay_layer}",
        *(
            [f"learned by the rival {result.rival}, not by the bundle's head"]
            if result.rival
            else []
        ),
        f"{result.dataset}, protocol {result.protocol}: {sessions_text(result)}, "
        f"{last.classes_seen} of {classes_text(len(result.per_class))}, {_seeds(result)}",
        "",
        _row("accuracy, whole test set", f"{last.accuracy:7.1%}", held_out_text(result)),
        _row("  classes seen so far", f"{last.accuracy_seen:7.1%}", ""),
        _row(f"  {_newest_text(result)}", f"{last.accuracy_new:7.1%}", ""),
        _row(f"  {first_text(result)}", f"{last.accuracy_first:7.1%}", _start_text(result)),
        _row("forgetting", f"{result.forgetting:7.1%}", FORGETTING),
        *([f"  {NOT_OVERWRITTEN}"] if overwrites_nothing(result) else []),
        "",
        f"{'latency, ms':<26}{'p50':>9}{'p95':>9}{'n':>7}",
    ]
    parts += [
        f"  {phase:<24}{_spread(result.latency_ms[phase])}"
        for phase in PHASES
        if phase in result.latency_ms
    ]
    parts += [
        f"  {'session':<24}{_spread(result.session_ms)}",
        "  session: from the last latent ready to the state committed on the disk",
        "",
        _row("peak RAM of the device", f"{result.peak_ram_mb:6.1f} MB", "its whole process"),
        _row("replay memory", f"{result.replay_bytes / 1e6:6.2f} MB", memory_text(result)),
        "",
        f"{result.versions['runtime']}, {threads_text(result)}, on {result.machine}",
    ]
    if result.unknown is not None:
        parts.append(unknown_line(result.unknown))
    parts += [f"note: {note}" for note in result.notes]
    parts += diagnosis_lines(result)
    return "\n".join(printable(line.rstrip()) for line in parts)


def diagnosis_lines(result: Simulation) -> list[str]:
    """Return the most serious line of each of the last sessions with a diagnosis."""
    found = [session for session in result.per_session if session.diagnosis][-DIAGNOSED:]
    return [f"after session {each.session}: {each.diagnosis[0]}" for each in found]


def diagnosis_notes(sessions: Sequence[SessionResult], unseen: str | None) -> list[str]:
    """Return notes on sessions that were all diagnosed: nothing found, and what was not seen."""
    found = [session for session in sessions if session.diagnosis]
    notes = [] if found else ["Diagnosis: nothing found in the frames of any session."]
    return notes + ([] if unseen is None else [f"Diagnosis: {unseen}."])


def sessions_text(result: Simulation) -> str:
    if result.sessions < result.sessions_in_stream:
        return f"{result.sessions} of {counted(result.sessions_in_stream, 'session')}"
    return counted(result.sessions, "session")


def held_out_text(result: Simulation) -> str:
    return f"{counted(result.test_frames, 'frame')}, {classes_text(len(result.per_class))}"


def overwrites_nothing(result: Simulation) -> bool:
    """Return whether the bundle's head learned without a training step."""
    return result.rival is None and all(session.steps == 0 for session in result.per_session)


def first_text(result: Simulation) -> str:
    """Name the classes whose curve shows forgetting."""
    return "first classes" if result.start is None else "classes it shipped with"


def _seeds(result: Simulation) -> str:
    split = result.stream.get("split_seed")
    return f"seed {result.seed}" + ("" if split is None else f", split seed {split}")


def _newest_text(result: Simulation) -> str:
    newest = [len(s.new_classes) for s in result.per_session if s.new_classes]
    return f"newest {newest[-1]} classes" if newest and newest[-1] > 1 else "newest class"


def _start_text(result: Simulation) -> str:
    return "" if result.start is None else f"{result.start.accuracy_known:.1%} at the start"


def threads_text(result: Simulation) -> str:
    return counted(result.threads, "thread")


def memory_text(result: Simulation) -> str:
    return f"{result.replay_patterns} of {result.replay_size} latents, {result.policy}"


def _row(name: str, value: str, remark: str) -> str:
    return f"{name:<26}{value:>9}  {remark}"


def _spread(spread: Spread) -> str:
    return f"{spread.p50:>9.2f}{spread.p95:>9.2f}{spread.n:>7}"
