"""Fixtures that make a training run small enough for a test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import tensorflow as tf

from lrtflite.host import mobilenet


@pytest.fixture
def shallow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Build MobileNet's first two blocks only, for tests of training and not of the network."""
    monkeypatch.setattr(mobilenet, "BLOCKS", mobilenet.BLOCKS[:2])


@pytest.fixture
def eager() -> Iterator[None]:
    """Run without tracing, which takes longer than the few steps of a test."""
    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)
