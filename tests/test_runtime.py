"""Picking a runtime."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import lrtflite.runtime as runtime_module
from lrtflite.errors import InputError, RuntimeMissing
from lrtflite.runtime import Model, describe_runtime, installed_runtimes, pick_runtime


def test_what_is_installed_is_picked() -> None:
    assert pick_runtime() == installed_runtimes()[0]
    for name in installed_runtimes():
        assert pick_runtime(name) == name
        assert describe_runtime(name)[0].isalpha()


def test_missing_runtimes_name_the_pip_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime_module, "_importable", lambda module: "litert" in module)
    assert pick_runtime() == "litert"
    with pytest.raises(RuntimeMissing, match=r"pip install 'lrtflite\[device-tflite\]'"):
        pick_runtime("tflite")
    monkeypatch.setattr(runtime_module, "_importable", lambda module: False)
    with pytest.raises(RuntimeMissing, match=r"pip install 'lrtflite\[device\]'"):
        pick_runtime()
    with pytest.raises(RuntimeMissing, match="litert, tflite, got 'torch'"):
        pick_runtime("torch")


def test_threads_are_checked(demo: Path) -> None:
    with pytest.raises(InputError, match="at least 1 thread"):
        Model(demo / "head.tflite", threads=0)


@pytest.mark.parametrize("name", installed_runtimes())
def test_outputs_outlive_the_next_call(demo: Path, name: str) -> None:
    head = Model(demo / "head.tflite", runtime=name)
    first = head.run("save")["cw"]
    kept = first.copy()
    head.run("restore", cw=np.ones_like(first), past=np.ones(len(first), np.float32))
    head.run("save")
    np.testing.assert_array_equal(first, kept)
