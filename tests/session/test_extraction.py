"""Extraction in a second thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from lrtflite.session.recording import extract_while_arriving


def frame(value: int) -> Any:
    return np.full(1, value, np.uint8)


def as_floats(image: Any) -> Any:
    return image.astype(np.float32)


def nothing(_: int) -> None:
    """Ignore progress."""


def test_frames_are_extracted_before_the_last_one_arrives() -> None:
    extracted = threading.Event()

    def camera() -> Iterator[Any]:
        yield frame(1)
        # This camera records its second frame only after the first one is extracted.
        assert extracted.wait(10)
        yield frame(2)

    def extract(image: Any) -> Any:
        extracted.set()
        return image.astype(np.float32)

    latents = extract_while_arriving(camera(), extract, on_frame=nothing)
    np.testing.assert_array_equal(np.concatenate(latents), [1, 2])


def test_order_is_kept() -> None:
    latents = extract_while_arriving(map(frame, range(200)), as_floats, on_frame=nothing)
    np.testing.assert_array_equal(np.concatenate(latents), np.arange(200))


def test_an_error_in_the_network_ends_it() -> None:
    def extract(_: Any) -> Any:
        raise ZeroDivisionError("network")

    endless = iter(lambda: frame(0), None)
    with pytest.raises(ZeroDivisionError, match="network"):
        extract_while_arriving(endless, extract, on_frame=nothing)


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_an_error_in_the_camera_ends_it(error: type[BaseException]) -> None:
    def camera() -> Iterator[Any]:
        yield frame(0)
        raise error

    before = threading.active_count()
    with pytest.raises(error):
        extract_while_arriving(camera(), as_floats, on_frame=nothing)
    assert threading.active_count() == before


def test_a_camera_that_reuses_its_buffer() -> None:
    buffer = frame(0)

    def camera() -> Iterator[Any]:
        for value in range(20):
            buffer[:] = value
            yield buffer

    latents = extract_while_arriving(camera(), as_floats, on_frame=nothing)
    np.testing.assert_array_equal(np.concatenate(latents), np.arange(20))
