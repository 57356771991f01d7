"""Results as JSON, as text, as HTML and as a picture."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

from lrtflite.errors import DataError, MissingExtra
from lrtflite_firmware_sim import Simulation, load_simulation
from lrtflite_firmware_sim.reporting.plot import latency_svg, learning_curve
from lrtflite_firmware_sim.reporting.report import html_report
from lrtflite_firmware_sim.reporting.results import Spread
from lrtflite_firmware_sim.reporting.summary import summary

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def page(simulated: Simulation) -> str:
    return html_report(simulated)


def test_json_can_be_read_again(simulated: Simulation, tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text(simulated.to_json())
    assert load_simulation(tmp_path / "r.json") == simulated


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "Expected the JSON of"),
        ("{}", "Expected the JSON of"),
        ('{"format": 99}', "format 2, got 99"),
    ],
)
def test_other_json_is_refused(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text(text)
    with pytest.raises(DataError, match=said):
        load_simulation(tmp_path / "r.json")
    with pytest.raises(DataError, match="Expected a readable file"):
        load_simulation(tmp_path / "none.json")


def test_summary_has_the_figures(simulated: Simulation) -> None:
    last = replace(
        simulated.per_session[-1],
        accuracy=0.8125,
        accuracy_seen=0.9,
        accuracy_new=0.25,
        accuracy_first=1.0,
    )
    lines = summary(
        replace(
            simulated,
            per_session=(*simulated.per_session[:-1], last),
            final_accuracy=0.8125,
            forgetting=0.034,
            latency_ms={**simulated.latency_ms, "train": Spread(1.234, 5.678, 42)},
            session_ms=Spread(66.1, 72.4, 7),
            peak_ram_mb=87.65,
            replay_bytes=1_234_567,
            replay_patterns=20,
            replay_size=30,
        )
    ).splitlines()
    for line in (
        "accuracy, whole test set      81.2%  16 frames, 4 classes",
        "  classes seen so far         90.0%",
        "  newest class                25.0%",
        "  first classes              100.0%",
        "forgetting                     3.4%  mean drop of a class from its best",
        "  train                        1.23     5.68     42",
        "  session                     66.10    72.40      7",
        "peak RAM of the device      87.7 MB  its whole process",
        "replay memory               1.23 MB  20 of 30 latents, algorithm1",
        "note: No bundle was given: this is the packaged demo bundle.",
    ):
        assert line in lines


def test_summary_says_when_the_stream_was_cut(simulated: Simulation) -> None:
    assert "7 sessions" in summary(simulated)
    assert "7 of 91 sessions" in summary(replace(simulated, sessions_in_stream=91))


def test_report_needs_no_other_file(page: str) -> None:
    assert page.startswith("<!doctype html>")
    assert page.count("<svg") == page.count("</svg>") == 3
    assert not re.search(r"<(script|link|img|iframe|object)\b|@import|url\((?!#)", page)
    # Links inside a plot go to its own parts, and the namespaces of SVG are not links.
    assert all(link.startswith("#") for link in re.findall(r'href="([^"]*)"', page))


def test_report_has_every_section_and_option(simulated: Simulation, page: str) -> None:
    for title in ("Learning curve", "Class by class", "Latency", "Memory", "Options", "Machine"):
        assert f"<h2>{title}" in page
    for figure in (f"{simulated.final_accuracy:.1%}", f"{simulated.peak_ram_mb:.0f} MB"):
        assert figure in page
    assert {"epochs", "least_steps", "lr", "momentum"} <= set(simulated.training)
    for name, value in simulated.training.items():
        assert f"<td>{name.replace('_', ' ')}</td><td>{value}</td>" in page
    for name in simulated.stream:
        assert f"<td>{name.replace('_', ' ')}</td>" in page
    for version in simulated.versions.values():
        assert version in page


def test_report_of_a_deeper_bundle(simulated: Simulation, page: str) -> None:
    assert "trunk" not in page
    assert "moments" not in page
    bundle = replace(
        simulated.bundle,
        replay_layer="images",
        latent_shape=(128, 128, 3),
        latent_dtype="uint8",
        trains_trunk=True,
    )
    training = {**simulated.training, "trunk_lr": 0.0625}
    deep = replace(simulated, bundle=bundle, training=training)
    page = html_report(Simulation.from_json(deep.to_json()))
    assert "<td>128 x 128 x 3 uint8</td>" in page
    assert "<td>trunk lr</td><td>0.0625</td>" in page
    assert "<td>moments below the replay layer</td><td>frozen</td>" in page
    adapting = replace(simulated, bundle=replace(simulated.bundle, adapt_moments=True))
    assert "<td>moments below the replay layer</td><td>adapt</td>" in html_report(adapting)


def test_ids_of_the_pictures_do_not_clash(page: str) -> None:
    ids = re.findall(r'\bid="([^"]*)"', page)
    assert len(ids) == len(set(ids))
    used = re.findall(r'href="#([^"]*)"|url\(#([^)]*)\)', page)
    assert {a or b for a, b in used} <= set(ids)


def test_report_escapes_what_users_name(simulated: Simulation) -> None:
    page = html_report(replace(simulated, dataset="folder:<script>", notes=("a < b",)))
    assert "<script>" not in page
    assert "a &lt; b" in page


def test_report_is_the_same_for_the_same_result(simulated: Simulation, page: str) -> None:
    assert html_report(Simulation.from_json(simulated.to_json())) == page


def test_learning_curve_is_drawn(simulated: Simulation, tmp_path: Path) -> None:
    results, picture = tmp_path / "r.json", tmp_path / "curve.png"
    results.write_text(simulated.to_json())
    script = ROOT / "benchmarks" / "learning_curve.py"
    subprocess.run([sys.executable, script, results, picture], check=True, timeout=60)
    with Image.open(picture) as image:
        assert (image.format, image.size) == ("PNG", (1440, 704))


def test_long_streams_and_untaught_classes_are_drawn(simulated: Simulation) -> None:
    session = simulated.per_session[-1]
    many = tuple(replace(session, session=number + 1) for number in range(60))
    classes = (*simulated.per_class, replace(simulated.per_class[0], first_session=None))
    page = html_report(replace(simulated, per_session=many, per_class=classes, sessions=60))
    assert "60 sessions" in page


def test_the_report_says_what_to_improve(simulated: Simulation) -> None:
    lines = tuple(f"add pictures of <{number}>" for number in range(12))
    page = html_report(replace(simulated, improve=lines))
    section = page.partition("<h2>What to improve</h2>")[2].partition("</section>")[0]
    assert "<li>add pictures of &lt;0&gt;</li>" in section
    assert section.count("<li>add") == 10
    assert "and 2 rarer confusions" in section
    assert "What to improve" not in html_report(replace(simulated, improve=()))


def test_actions_are_the_confusions_of_the_last_test(simulated: Simulation) -> None:
    """A class that is mostly wrong at the end must be among the confusions of its test frames."""
    names = {each.name for each in simulated.per_class if each.first_session is not None}
    for line in simulated.improve:
        label, other = (
            line.removeprefix("add pictures of ")
            .partition(":")[0]
            .split(" that show how it differs from ")
        )
        assert {label, other} <= names
        wrong, of = map(int, re.findall(r"(\d+) of (\d+) test frames?", line)[0])
        [found] = [each for each in simulated.per_class if each.name == label]
        assert wrong <= round((1 - found.final_accuracy) * of)


def test_results_without_actions_are_read(simulated: Simulation) -> None:
    record = json.loads(simulated.to_json())
    del record["improve"]
    assert Simulation.from_json(json.dumps(record)).improve == ()


def test_without_matplotlib(simulated: Simulation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtra, match=r"pip install .*\[report\]'"):
        html_report(simulated)


def test_json_has_no_nan(simulated: Simulation) -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        replace(simulated, forgetting=float("nan")).to_json()
    json.loads(simulated.to_json(), parse_constant=lambda text: pytest.fail(text))


ODD_NAMES = ("$\\frac{$", "$x_1$", "--><script>alert(1)</script>", "a very long name " * 11)


def test_names_are_drawn_as_text(simulated: Simulation, tmp_path: Path) -> None:
    """A $ begins a formula for matplotlib, and the name may not be one."""
    taught = [each for each in simulated.per_class if each.first_session is not None]
    named = tuple(replace(each, name=name) for each, name in zip(taught, ODD_NAMES))
    assert len(named) == len(ODD_NAMES)
    odd = replace(simulated, per_class=named, dataset="folder:$\\frac{$", rival="$\\frac{$")
    page = html_report(odd)
    assert all(f"<!-- {name} -->" in page for name in ODD_NAMES[:2])
    assert "<script" not in page
    assert "a very long name a very l..." in page
    assert "mathdefault" not in page
    learning_curve(odd, tmp_path / "curve.png", odd)


def test_no_control_character_is_in_a_report_or_a_summary(simulated: Simulation) -> None:
    facts = replace(simulated.bundle, backbone="\u202e\x1b[2J", path="\x9b1m")
    odd = replace(simulated, bundle=facts, dataset="\u200b\x07", notes=("\x1b]0;a\x07",))
    for text in (html_report(odd), summary(odd)):
        assert not set(text) & set("\u202e\u200b\x1b\x9b\x07")
        assert "\\u202e\\x1b[2J" in text


def test_an_axis_of_less_than_a_decade_has_numbers(simulated: Simulation) -> None:
    narrow = {"train": Spread(2.0, 4.0, 5), "begin": Spread(2.3, 4.3, 5)}
    drawn = latency_svg(replace(simulated, latency_ms=narrow), tuple(narrow))
    assert [f"<!-- {tick} -->" in drawn for tick in (2, 3, 4)] == [True] * 3
