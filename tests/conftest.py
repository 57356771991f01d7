"""Fixtures that every test may use."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from fake_bundle import make_bundle, open_fake
from lrtflite import Learner
from lrtflite.runtime.model import installed_runtimes
from made_bundles import made_by

ROOT = Path(__file__).resolve().parent.parent
# Fixtures that convert bundles or start a process for each call, and folders of tests that convert,
# simulate or start many processes. Other slow files say so themselves.
SLOW_FIXTURES = frozenset({"lda", "strategy_bundles", "closed_form_bundles", "run_cli"})
SLOW_FOLDERS = frozenset(
    {"arm", "examples", "export", "firmware_sim", "page", "plugins", "torture"}
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests that `make quick` leaves out."""
    for item in items:
        fixtures = SLOW_FIXTURES.intersection(getattr(item, "fixturenames", ()))
        if fixtures or SLOW_FOLDERS.intersection(item.path.parts):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(autouse=True)
def signals_as_before() -> Iterator[None]:
    """Restore the handlers of signals, which a command in this process ignores at its end.

    Processes that a later test starts would ignore them too.
    """
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture(scope="session")
def shared() -> Path:
    """Return the folder with ImageNet weights, photographs and NICv2 lists; many clones lack it."""
    folder = Path(os.environ.get("LRTFLITE_SHARED", ROOT.parent / "shared"))
    if not folder.is_dir():
        pytest.skip(f"needs the reference weights and photographs in {folder} (LRTFLITE_SHARED)")
    return folder


@pytest.fixture(scope="session")
def demo() -> Path:
    """Return the bundle that comes with the package."""
    return ROOT / "lrtflite" / "demo_bundle"


@pytest.fixture(scope="session")
def lda(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle of the strategy lda with six slots, from the demo weights."""
    if find_spec("tensorflow") is None:
        pytest.skip("needs the extra host, to convert a bundle")
    out = tmp_path_factory.mktemp("bundles") / "lda"
    # TensorFlow and a TFLite runtime in one process can crash.
    words = ["convert", "--strategy", "lda", "--classes", "6", "--replay-size", "100"]
    subprocess.run(
        [sys.executable, "-m", "lrtflite_cli.main", *words, "--out", str(out)],
        check=True,
        capture_output=True,
    )
    return out


@pytest.fixture(scope="session")
def strategy_bundles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a small bundle of each strategy."""
    return made_by("strategy_bundles.py", tmp_path_factory.mktemp("strategies"))


@pytest.fixture(scope="session")
def closed_form_bundles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a small bundle of each closed form."""
    return made_by("closed_form_bundles.py", tmp_path_factory.mktemp("closed_forms"))


@pytest.fixture
def opened(closed_form_bundles: Path) -> Iterator[Callable[..., Learner]]:
    """`opened(state, strategy="lda", **options)`, with the bundles of the closed forms."""
    found: list[Learner] = []

    def make(state: Path | None = None, *, strategy: str = "lda", **options: Any) -> Learner:
        found.append(Learner.open(closed_form_bundles / strategy, state, **options))
        return found[-1]

    yield make
    for learner in found:
        learner.close()


@pytest.fixture(params=["litert", "tflite"])
def runtime(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    if name not in installed_runtimes():
        pytest.skip(f"the runtime {name} is not installed")
    return name


@pytest.fixture
def open_learner(demo: Path) -> Iterator[Callable[..., Learner]]:
    opened = []

    def make(state: Path | None = None, **options: Any) -> Learner:
        opened.append(Learner.open(demo, state, **{"replay_size": 200, **options}))
        return opened[-1]

    yield make
    for learner in opened:
        learner.close()


@pytest.fixture
def open_deep(tmp_path: Path) -> Iterator[Callable[..., Learner]]:
    """Return `open_deep(state, layer, **changes of the manifest)`, with fake models."""
    opened = []

    def make(
        state: Path | None = None, layer: str = "conv5_4/dw", /, seed: int = 0, **changes: Any
    ) -> Learner:
        folder = tmp_path / layer.replace("/", "-")
        if not folder.exists():
            make_bundle(folder, replay_layer=layer, **changes)
        opened.append(open_fake(folder, state, seed=seed))
        return opened[-1]

    yield make
    for learner in opened:
        learner.close()


# Background jobs of a shell ignore Ctrl-C, and so do their children. Some tests interrupt those.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A busy machine misses any deadline now and then.
settings.register_profile("lrtflite", deadline=None)
settings.load_profile("lrtflite")
