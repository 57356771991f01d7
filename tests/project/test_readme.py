"""Snippets and commands of the README run; links, tables and figures of all pages are right."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from dataclasses import fields
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from fleet_learning import teach
from lrtflite.bundle.bundle import Bundle
from lrtflite.bundle.manifest import Manifest
from lrtflite.bundle.signing import make_keys, sign_bundle
from lrtflite.photos.weights import PACKAGE
from lrtflite.state.folder import read_state

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
HOST_COMMANDS = ("layers", "train", "convert")
OF_STATES = (
    "learn",
    "predict",
    "evaluate",
    "unknown",
    "diagnose",
    "rename",
    "forget",
    "undo",
)
# Options that make a command quick; the last of two equal options counts.
SMALL = {
    "simulate": ["--sessions", "2", "--dataset", "synthetic?frames=4&test_frames=1"],
    # ImageNet weights come from the internet.
    "train": ["--epochs", "1", "--batch-size", "4", "--weights", "demo"],
}


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.M | re.S)


def commands() -> list[list[str]]:
    """Return the words of every `lrtflite ...` line of the README, without comments."""
    lines = "".join(blocks("sh")).replace("\\\n", " ").splitlines()
    words = (shlex.split(line, comments=True) for line in lines)
    return [found[1:] for found in words if found[:1] == ["lrtflite"]]


def small(command: list[str]) -> list[str]:
    extra = SMALL.get(command[0], [])
    # The published weights are a download.
    command = ["demo" if word == "imagenet" else word for word in command]
    if "--dataset" in command:
        extra = [word for word in extra if not word.startswith(("--dataset", "synthetic"))]
    return [*command, *extra]


@pytest.fixture
def desk(tmp_path: Path, demo: Path) -> Path:
    """Return a folder with what a reader has: pictures, and the bundles of earlier commands."""
    for name in ("bundle", "plain"):
        shutil.copytree(demo, tmp_path / name)
    rng = np.random.default_rng(0)
    colours = {"mug": (200, 40, 40), "stapler": (40, 60, 200)}
    for name, colour in colours.items():
        (tmp_path / "things" / name).mkdir(parents=True)
        for k in range(6):
            pixels = rng.normal(colour, 20, (60, 80, 3)).clip(0, 255).astype(np.uint8)
            Image.fromarray(pixels).save(tmp_path / "things" / name / f"{k}.jpg")
    shutil.copy(tmp_path / "things" / "mug" / "0.jpg", tmp_path / "new.jpg")
    shutil.copytree(tmp_path / "things", tmp_path / "all-things")
    return tmp_path


def test_python(desk: Path) -> None:
    [snippet] = blocks("python")
    assert len(snippet.splitlines()) <= 25
    for _ in range(2):  # readers run it again
        done = subprocess.run(
            [sys.executable, "-c", snippet], cwd=desk, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stderr
        lines = done.stdout.splitlines()
        assert re.fullmatch(r"mug: 6 frames, \d+ ms", lines[0])
        assert re.fullmatch(r"stapler: 6 frames, \d+ ms", lines[1])
        assert re.fullmatch(r"mug \d+%", lines[2])
        # The other name was undone, and the stapler is forgotten.
        labels = read_state(desk / "state").meta.labels
        assert [label for label in labels if label] == ["mug"]


def test_the_page(desk: Path) -> None:
    [command] = [command for command in commands() if command[0] == "serve"]
    if find_spec("starlette") is None or find_spec(PACKAGE) is None:
        pytest.skip("needs the extras serve and photos")
    words = [sys.executable, "-m", "lrtflite_cli.main", *command, "--port", "0"]
    environment = {**os.environ, "XDG_CACHE_HOME": str(desk / "cache")}
    with subprocess.Popen(
        words, cwd=desk, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        said = child.stdout.readline()
        child.send_signal(signal.SIGINT)
        _, errors = child.communicate(timeout=60)
    assert re.match(r"Open http://127\.0\.0\.1:\d+/$", said), errors
    assert child.returncode == 130, errors


@pytest.mark.parametrize(
    "command",
    [command for command in commands() if command[0] not in (*HOST_COMMANDS, "serve")],
    ids=" ".join,
)
def test_device_commands(
    desk: Path, demo: Path, command: list[str], request: pytest.FixtureRequest
) -> None:
    if command[:2] == ["simulate", "things-bundle"]:
        shutil.copytree(demo, desk / "things-bundle")
    if command[0] == "export" and find_spec("tensorflow") is None:
        pytest.skip("needs the extra host")
    if "photos" in command and find_spec(PACKAGE) is None:
        pytest.skip("needs the extra photos")
    if command[0] in (*OF_STATES, "state", "export"):
        teach(desk / "plain", desk / "state", ("mug", 0, 1), ("stapler", 1, 1))
    if command[0] == "sign" or "--require-signature" in command:
        make_keys(desk / "key", desk / "key.pub")
        sign_bundle(desk / "bundle", desk / "key")
    if command[0] == "merge":
        shutil.rmtree(desk / "plain")
        shutil.copytree(request.getfixturevalue("lda"), desk / "plain")
        teach(desk / "plain", desk / "kitchen", ("mug", 0, 1), ("pan", 1, 1))
        teach(desk / "plain", desk / "office", ("mug", 0, 2), ("pen", 2, 2))
    done = subprocess.run(
        [sys.executable, "-m", "lrtflite_cli.main", *small(command)],
        cwd=desk,
        env={**os.environ, "XDG_CACHE_HOME": str(desk / "cache")},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    if "--json" in command:
        found = json.loads((desk / command[command.index("--json") + 1]).read_text())
        assert 0 <= found["final_accuracy"] <= 1
    if "--report" in command:
        page = (desk / command[command.index("--report") + 1]).read_text(encoding="utf-8")
        assert "<svg" in page


@pytest.mark.skipif(find_spec("tensorflow") is None, reason="needs the extra host")
def test_host_commands(desk: Path) -> None:
    """Run all in one process, because TensorFlow takes long to start."""
    for name in ("bundle", "plain"):
        shutil.rmtree(desk / name)
    wanted = [small(command) for command in commands() if command[0] in HOST_COMMANDS]
    assert {command[0] for command in wanted} == set(HOST_COMMANDS)
    script = (
        "import json, sys; from lrtflite_cli.main import main\n"
        "for command in json.load(sys.stdin): main(command)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=desk,
        input=json.dumps(wanted),
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    assert "187,090,994" in done.stdout  # the paper's network, from `layers`
    assert Bundle.open(desk / "bundle").manifest.labels == (None,) * 50
    trained = Bundle.open(desk / "trained-bundle").manifest
    # "five slots stay free"
    assert trained.labels == ("mug", "stapler", *[None] * 5)
    assert trained.replay_layer == "pool6"


def test_make_targets_exist() -> None:
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.M)
    for page in PAGES:
        for target in re.findall(r"`make (?:\w+=\S+ )?(\w+)`", page.read_text(encoding="utf-8")):
            assert target in targets
    assert {"demo", "test"} <= set(targets)


@pytest.mark.parametrize(
    "page",
    [*PAGES, *sorted((ROOT / "examples").glob("*.md"))],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if target.startswith("http"):
            continue
        name, _, anchor = target.partition("#")
        there = (page.parent / name) if name else page
        assert there.exists(), target
        if anchor:
            titles = re.findall(r"^#+ (.*)$", there.read_text(encoding="utf-8"), re.M)
            slugs = [re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles]
            assert anchor in slugs, target


def test_the_index_has_every_page_once() -> None:
    docs = ROOT / "docs"
    index = (docs / "README.md").read_text(encoding="utf-8")
    for page in sorted(docs.rglob("*.md")):
        if page != docs / "README.md":
            assert index.count(f"({page.relative_to(docs).as_posix()})") == 1, page


def test_pages_that_texts_mention_exist() -> None:
    folders = ("lrtflite", "converters", "firmware_sim", "cli", "tests", "benchmarks", "examples")
    sources = [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]
    for path in [*sources, *PAGES]:
        for name in re.findall(r"\bdocs/[\w/-]+\.md\b", path.read_text(encoding="utf-8")):
            assert (ROOT / name).exists(), f"{path.relative_to(ROOT)}: {name}"


def test_extras_are_the_projects() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    section = project.split("[project.optional-dependencies]")[1].split("\n[")[0]
    extras = set(re.findall(r"^([\w-]+) = \[", section, re.M))
    install = README.split("## Install")[1].split("## ")[0]
    assert set(re.findall(r"^\| `([\w-]+)` \|", install, re.M)) == extras


def table(page: str, title: str) -> list[list[str]]:
    """Return the cells of all tables below a title."""
    below = page.split(f"\n## {title}\n")[1].split("\n#")[0]
    found = re.findall(r"^((?:\|.*\|\n)+)", below, re.M)
    rows = [row for each in found for row in each.splitlines()[2:]]
    return [[cell.strip() for cell in row.split("|")[1:-1]] for row in rows]


def test_figures_are_those_of_the_linked_page() -> None:
    rows = table(README, "Measured")
    assert len(rows) >= 5
    for _, figures, link in rows:
        [target] = re.findall(r"\]\(([^)#]+)", link)
        page = (ROOT / target).read_text(encoding="utf-8")
        numbers = re.findall(r"(?<![\w/])\d+(?:\.\d+)?", figures)
        assert [number for number in numbers if not re.search(rf"\b{number}\b", page)] == []


def test_the_documented_format_is_the_real_one(demo: Path) -> None:
    page = (ROOT / "docs" / "bundle.md").read_text(encoding="utf-8")
    bundle = Bundle.open(demo)
    first = " ".join(name for name, *_ in table(page, "`manifest.json`"))
    documented = re.findall(r"`(\w+)`", first)
    assert sorted(documented) == sorted([*(each.name for each in fields(Manifest)), "requires"])

    # NAME stands for a rate or a tensor. Only bundles whose moments adapt have moved/NAME, and only
    # those on a quantised feature model from elsewhere have `rounding`.
    with np.load(bundle.golden.path) as golden:
        cells = " ".join(name for name, *_ in table(page, "`golden.npz`"))
        named = {re.sub(r"/.*", "/NAME", name) for name in re.findall(r"`([\w/]+)`", cells)}
        assert named - {"moved/NAME", "rounding"} == {
            re.sub(r"/.*", "/NAME", name) for name in golden.files
        }
