"""The report of a simulation: one HTML file that contains its plots and styles."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lrtflite.counted import classes_text
from lrtflite_firmware_sim.reporting import plot
from lrtflite_firmware_sim.reporting.document import document, section, text
from lrtflite_firmware_sim.reporting.results import Simulation
from lrtflite_firmware_sim.reporting.summary import (
    FORGETTING,
    NOT_OVERWRITTEN,
    PHASES,
    memory_text,
    overwrites_nothing,
    sessions_text,
    threads_text,
)

# Maximum number of confusions in the report.
IMPROVE = 10


def html_report(result: Simulation) -> str:
    """Return the complete page. Needs matplotlib."""
    last = result.per_session[-1]
    title = f"{last.accuracy:.1%} after {sessions_text(result)}"
    title += f" with {result.rival}" * (result.rival is not None)
    title += ", incomplete" * (result.incomplete is not None)
    body = [
        f"<h1>{text(title)}</h1>",
        f'<p class="lead">{text(_lead(result))}</p>',
        *([f'<p class="incomplete">{text(result.incomplete)}.</p>'] if result.incomplete else []),
        _tiles(result),
        section(
            "Learning curve",
            "Accuracy on held-out frames after each session. The whole test set includes classes "
            "that have not been taught yet, so its curve starts low.",
            plot.learning_curve_svg(result),
        ),
        section(
            "Class by class",
            "In the order in which they were learned. The pale part above a bar is the drop from "
            "the best accuracy of the class.",
            plot.classes_svg(result),
        ),
        section(
            "Latency",
            f"Measured in the device process, {result.versions['runtime']}, "
            f"{threads_text(result)}. Other programs on the machine affect these figures.",
            plot.latency_svg(result, tuple(PHASES)) + _latency_table(result),
        ),
        *_improve(result),
        section("Memory", "1 MB is a million bytes.", _facts([_memory(result)])),
        section("Options", "Everything that determines this run.", _facts(_options(result))),
        section("Machine and versions", "", _facts(_machine(result))),
    ]
    if result.notes:
        items = "".join(f"<li>{text(note)}</li>" for note in result.notes)
        body.append(section("Notes", "", f"<ul>{items}</ul>"))
    return document(f"lrtflite simulate: {title}", body)


def _lead(result: Simulation) -> str:
    bundle = "the demo bundle" if result.bundle.demo else f"the bundle {result.bundle.path}"
    classes = f"{result.per_session[-1].classes_seen} of {classes_text(len(result.per_class))}"
    how = "without the old frames"
    if result.rival is not None:
        how = f"with the rival {result.rival} of the paper instead of the bundle's head"
    return (
        f"A simulated device with {bundle} learned {classes} of {result.dataset} "
        f"at {result.bundle.replay_layer}, session by session, {how}."
    )


def _improve(result: Simulation) -> Iterable[str]:
    """Yield the section on confusions, if there are any to act on."""
    if not result.improve:
        return
    items = "".join(f"<li>{text(line)}</li>" for line in result.improve[:IMPROVE])
    more = len(result.improve) - IMPROVE
    if more > 0:
        items += f"<li>and {more} rarer confusions, see --json</li>"
    yield section(
        "What to improve",
        "From the answers for the test frames after the last session, the most frequent first. "
        "`lrtflite diagnose` names the pictures.",
        f"<ul>{items}</ul>",
    )


def _tiles(result: Simulation) -> str:
    last = result.per_session[-1]
    drop = FORGETTING + f"; {NOT_OVERWRITTEN}" * overwrites_nothing(result)
    tiles = (
        (f"{last.accuracy:.1%}", "final accuracy, whole test set"),
        (f"{last.accuracy_seen:.1%}", f"on the {classes_text(last.classes_seen)} seen"),
        (f"{result.forgetting:.1%}", f"forgetting: {drop}"),
        (f"{result.session_ms_p50:.0f} ms", "a session, last latent ready to state saved (median)"),
        (f"{result.peak_ram_mb:.0f} MB", "peak RAM of the device process"),
        (f"{result.replay_bytes / 1e6:.1f} MB", f"replay memory, {result.replay_patterns} latents"),
    )
    cells = "".join(
        f'<div class="tile{" main" * (number == 0)}"><b>{text(value)}</b>'
        f"<span>{text(name)}</span></div>"
        for number, (value, name) in enumerate(tiles)
    )
    return f'<div class="tiles">{cells}</div>'


def _latency_table(result: Simulation) -> str:
    rows = [
        (phase, said, result.latency_ms[phase])
        for phase, said in PHASES.items()
        if phase in result.latency_ms
    ]
    rows.append(("session", "last latent ready to state committed", result.session_ms))
    head = '<tr><th>phase</th><th></th><th class="number">p50 ms</th>'
    head += '<th class="number">p95 ms</th><th class="number">n</th></tr>'
    cells = "".join(
        f"<tr><td>{phase}</td><td>{said}</td>"
        f'<td class="number">{spread.p50:.2f}</td><td class="number">{spread.p95:.2f}</td>'
        f'<td class="number">{spread.n:,}</td></tr>'
        for phase, said, spread in rows
    )
    return f'<div class="scroll"><table>{head}{cells}</table></div>'


Facts = Sequence[tuple[str, object]]


def _memory(result: Simulation) -> Facts:
    bundle = result.bundle
    return (
        ("peak RAM of the device", f"{result.peak_ram_mb:.1f} MB"),
        ("replay memory", f"{result.replay_bytes / 1e6:.2f} MB: {memory_text(result)}"),
        ("one latent", f"{' x '.join(map(str, bundle.latent_shape))} {bundle.latent_dtype}"),
        ("features.tflite", f"{bundle.features_bytes / 1e6:.2f} MB"),
        ("head.tflite", f"{bundle.head_bytes / 1e6:.2f} MB"),
    )


def _options(result: Simulation) -> Iterable[Facts]:
    bundle = result.bundle
    yield (
        ("bundle", bundle.path),
        ("backbone", bundle.backbone),
        ("replay layer", bundle.replay_layer),
        ("input", f"{bundle.input_size} x {bundle.input_size} RGB"),
        ("class slots", bundle.slots),
        *_learning(result),
        *((name.replace("_", " "), value) for name, value in result.training.items()),
    )
    stream = [(name.replace("_", " "), value) for name, value in result.stream.items()]
    yield (
        *((name, "all" if value is None else value) for name, value in stream if name != "seed"),
        ("seed", result.seed),
        ("sessions", sessions_text(result)),
        ("test frames", f"{result.test_frames:,}"),
        ("replay size", result.replay_size),
        ("policy", result.policy),
        ("threads", result.threads),
    )


def _learning(result: Simulation) -> Iterable[tuple[str, object]]:
    """Yield the strategy and, unless a rival learned, how the bundle's head is fed."""
    bundle = result.bundle
    if result.rival is not None:
        yield "rival", f"{result.rival}, in the simulator only"
        return
    new = bundle.new_per_batch
    yield "mini-batch", f"{new} new + {bundle.batch_size - new}"
    yield "strategy", bundle.strategy
    if bundle.trains_trunk or bundle.adapt_moments:
        yield "moments below the replay layer", "adapt" if bundle.adapt_moments else "frozen"


def _machine(result: Simulation) -> Iterable[Facts]:
    machine = result.machine
    yield (
        ("processor", f"{machine.cpu}, {machine.cores} cores"),
        ("RAM", "unknown" if machine.ram_gb is None else f"{machine.ram_gb:g} GB"),
        ("system", machine.system),
    )
    yield tuple(result.versions.items())


def _facts(columns: Iterable[Facts]) -> str:
    tables = "".join(
        "<table>"
        + "".join(f"<tr><td>{text(k)}</td><td>{text(str(v))}</td></tr>" for k, v in facts)
        + "</table>"
        for facts in columns
    )
    return f'<div class="columns">{tables}</div>'
