"""Fixtures that make a training small enough for a test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import tensorflow as tf

from lrtflite.host import mobilenet


@pytest.fixture
def shallow(monkeypatch: pytest.MonkeyPatch) -> None:
    """MobileNet's first two blocks, where the training is tested and not the network."""
    monkeypatch.setattr(mobilenet, "BLOCKS", mobilenet.BLOCKS[:2])


@pytest.fixture
def eager() -> Iterator[None]:
    """For trainings of a few steps, which take less time than tracing one."""
    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)
