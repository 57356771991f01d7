"""Picking a runtime."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from lrtflite.bundle.bundle import Bundle
from lrtflite.contract.signatures import ZERO
from lrtflite.errors import InputError, RuntimeMissing
from lrtflite.runtime.model import (
    RUNTIMES,
    Model,
    default_threads,
    describe_runtime,
    installed_runtimes,
    pick_runtime,
)


def test_what_is_installed_is_picked() -> None:
    assert pick_runtime() == installed_runtimes()[0]
    for name in installed_runtimes():
        assert pick_runtime(name) == name
        assert describe_runtime(name)[0].isalpha()


def test_missing_runtimes_name_the_pip_command(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {"ai_edge_litert"}
    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: real(name) if name in found else None
    )
    assert pick_runtime() == "litert"
    with pytest.raises(RuntimeMissing, match=r"pip install .*\[device-tflite\]'"):
        pick_runtime("tflite")
    found.clear()
    with pytest.raises(RuntimeMissing, match=r"pip install .*\[device\]'"):
        pick_runtime()
    with pytest.raises(RuntimeMissing, match="litert, tflite, got 'torch'"):
        pick_runtime("torch")


def test_threads_are_checked(demo: Path) -> None:
    for threads in (0, 65, 10**6, 10**12, "2", True, 1.0, None):
        with pytest.raises(InputError, match="threads as a whole number from 1 to 64, got"):
            Model(demo / "head.tflite", threads=threads)  # type: ignore[arg-type]
    assert Model(demo / "head.tflite", threads=np.int64(2)).signatures  # type: ignore[arg-type]


@pytest.mark.parametrize("name", installed_runtimes())
def test_outputs_outlive_the_next_call(demo: Path, name: str) -> None:
    head = Model(demo / "head.tflite", runtime=name)
    first = head.run("save", zero=ZERO)
    kept = {tensor: values.copy() for tensor, values in first.items()}
    head.run("restore", **{tensor: np.ones_like(values) for tensor, values in first.items()})
    head.run("save", zero=ZERO)
    for tensor, values in first.items():
        np.testing.assert_array_equal(values, kept[tensor])


@pytest.mark.parametrize("name", installed_runtimes())
def test_a_buffer_is_the_input_itself_and_stays_valid(demo: Path, name: str) -> None:
    head, other = (Model(demo / "head.tflite", runtime=name) for _ in range(2))
    buffer = head.buffer("train", "latents")
    assert not buffer.flags.owndata, "the interpreter's own memory"
    rng = np.random.default_rng(0)
    training = Bundle.open(demo).manifest.training
    rates = training.scalars(head.signatures["train"].inputs)
    start = training.scalars(head.signatures["begin"].inputs)
    shape = head.signatures["train"].inputs["targets"].shape
    targets = np.eye(shape[1], dtype=np.float32)[np.arange(shape[0]) % 3]
    for model in (head, other):
        model.run("begin", counts=targets.sum(axis=0), **start)
    for count in (1, 7, 3):
        latents = rng.random(buffer.shape, dtype=np.float32)
        buffer[:] = latents
        # Calls of other signatures, with other sizes, must not move the buffer.
        head.run("infer", latents=latents[:count])
        found = head.run("train", latents=buffer, targets=targets, **rates)
        expected = other.run("train", latents=latents, targets=targets, **rates)
        assert found["loss"] == expected["loss"]
        assert np.shares_memory(buffer, head.buffer("train", "latents")), "it has moved"


def test_a_runtime_that_hides_its_memory_gets_an_array(
    demo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A runner with nothing but the public interface gets an ordinary array."""
    name = installed_runtimes()[0]
    real = importlib.import_module(RUNTIMES[name][1])

    class Runner:
        def __init__(self, runner: Any) -> None:
            self.get_input_details = runner.get_input_details
            self.get_output_details = runner.get_output_details

    class Interpreter:
        def __init__(self, *args: Any, **options: Any) -> None:
            interpreter = real.Interpreter(*args, **options)
            self.allocate_tensors = interpreter.allocate_tensors
            self.get_signature_list = interpreter.get_signature_list
            self.runner = interpreter.get_signature_runner

        def get_signature_runner(self, name: str) -> Runner:
            return Runner(self.runner(name))

    hiding = SimpleNamespace(Interpreter=Interpreter)
    monkeypatch.setitem(sys.modules, RUNTIMES[name][1], hiding)
    head = Model(demo / "head.tflite", runtime=name)
    buffer = head.buffer("train", "latents")
    assert buffer.flags.owndata
    assert buffer.shape == head.signatures["train"].inputs["latents"].shape


def test_a_trunk_shares_its_steps_out(monkeypatch: pytest.MonkeyPatch) -> None:
    assert default_threads(trains_trunk=False) == 1
    for cores, threads in ((1, 1), (2, 2), (4, 4), (32, 4)):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _, n=cores: set(range(n)), False)
        assert default_threads(trains_trunk=True) == threads
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    assert default_threads(trains_trunk=True) == 3
