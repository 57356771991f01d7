"""Fixtures that make a training run small enough for a test."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
import tensorflow as tf

from lrtflite.host import mobilenet
from lrtflite.host.family import FAMILIES, MOBILENET_V1_FAMILY


@pytest.fixture
def shallow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Build MobileNet's first two blocks only, for tests of training and not of the network."""
    monkeypatch.setattr(mobilenet, "BLOCKS", mobilenet.BLOCKS[:2])
    # The width is that of the last convolution.
    shallow = replace(
        MOBILENET_V1_FAMILY, find_alpha=lambda arrays: arrays["conv_pw_2/kernel"].shape[-1] / 128
    )
    monkeypatch.setitem(FAMILIES, "mobilenet_v1", shallow)


@pytest.fixture
def eager() -> Iterator[None]:
    """Run without tracing, which takes longer than the few steps of a test."""
    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)
