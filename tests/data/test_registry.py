"""Opening a data set by its name, and registering a new one."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from coloured_source import ColouredSource
from lrtflite.data import FrameSource, SourceEntry, SourceRequest, open_source
from lrtflite.data.choice import ClassChoice
from lrtflite.data.registry import SOURCES
from lrtflite.errors import DataError, InputError

requests: list[SourceRequest] = []


def open_coloured(request: SourceRequest) -> FrameSource:
    requests.append(request)
    return ColouredSource(size=request.size)


@pytest.mark.parametrize(
    ("takes", "argument"), [("", ""), ("PLACE", "desk: left")], ids=["bare", "with argument"]
)
def test_a_new_source_is_one_line_in_the_table(takes: str, argument: str) -> None:
    entry = SourceEntry(f"{__name__}:open_coloured", takes=takes, summary="plain colours")
    with SOURCES.registered("coloured", entry):
        requests.clear()
        name = f"coloured:{argument}" if argument else "coloured"
        source = open_source(f"{name}?shade=dark&classes=2", size=8, seed=3, skip_unreadable=True)
        assert source.classes == ("red", "green", "blue", "grey")
        assert next(source.train_clips()[0].read()).shape == (8, 8, 3)
        assert requests == [
            SourceRequest(
                name="coloured",
                argument=argument,
                settings={"shade": "dark"},
                size=8,
                seed=3,
                choice=ClassChoice(2),
                skip_unreadable=True,
            )
        ]
        usage = f"coloured:{takes}" if takes else "coloured"
        with pytest.raises(
            DataError, match=rf"openloris:PATH, {usage} as the .* did you mean '{usage}'\?"
        ):
            open_source("cloured")


@pytest.mark.parametrize("name", SOURCES)
def test_every_opener_exists(name: str) -> None:
    module, _, function = SOURCES[name].opener.partition(":")
    assert callable(getattr(import_module(module), function))
    assert SOURCES[name].summary


@pytest.mark.parametrize(
    ("spec", "meant"),
    [
        ("cifar", None),
        ("", None),
        ("x:y", None),
        ("folder", "folder:PATH"),
        ("folder:", "folder:PATH"),
        ("core50:", "core50:PATH"),
        ("synthetic:x", "synthetic"),
        ("sythetic?frames=3", "synthetic?frames=3"),
        ("synthetic-backbon", "synthetic-backbone"),
        ("foldr:pics", "folder:pics"),
        ("Folder:pics?test=0.5", "folder:pics?test=0.5"),
        ("core-50:pics", "core50:pics"),
        ("things", "folder:things"),
        ("./things?classes=2", "folder:./things?classes=2"),
        ("dir:things", "folder:things"),
        ("~/no such pics", "folder:~/no such pics"),
        ("pics/today", "folder:pics/today"),
        ("project.tm", "tm:project.tm"),
        ("desk/things.ZIP?classes=2", "tm:desk/things.ZIP?classes=2"),
        ("~nobody-of-this-name", "folder:~nobody-of-this-name"),
        ("a\0b", None),
    ],
)
def test_an_unknown_source_lists_the_known_ones_and_the_likeliest(
    spec: str, meant: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "things").mkdir()
    with pytest.raises(DataError) as caught:
        open_source(spec)
    assert str(caught.value) == (
        "Expected one of synthetic, synthetic-backbone, folder:PATH, tm:PATH, core50:PATH, "
        f"openloris:PATH as the data set, got {spec!r}; "
        + (f"did you mean {meant!r}?" if meant else "give one of these")
    )


def test_size_and_seed_are_checked() -> None:
    with pytest.raises(InputError, match="frame size of at least 1, got 0"):
        open_source("synthetic", size=0)
    with pytest.raises(InputError, match="seed of at least 0, got -1"):
        open_source("synthetic", seed=-1)


def test_importing_the_sources_imports_neither_pillow_nor_pyav() -> None:
    code = (
        "import sys, lrtflite.data, lrtflite.data.folders.source, lrtflite.data.core50\n"
        "print(sorted({'PIL', 'av', 'tensorflow'} & set(sys.modules)))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert ran.stdout.strip() == "[]"
