"""A codec written for these tests, in a memory and in a learner with a state on disk."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from fake_bundle import SIZE, fake, frames
from lrtflite import Learner
from lrtflite.errors import InputError, StateError
from lrtflite.replay.codecs import CODECS, LatentForm
from lrtflite.replay.memory import ReplayMemory
from lrtflite.replay.policies import Indices
from lrtflite.state.folder import read_state

FLOAT = np.dtype(np.float32)
# Range of 255 steps of 0.2 each.
FIFTHS = LatentForm((2,), FLOAT, FLOAT, (0.0, 51.0))


class Bytes:
    """One byte per value: 255 equal steps over the range."""

    def __init__(self, form: LatentForm) -> None:
        self.shape, self.dtype = form.shape, np.dtype(np.uint8)
        self.low, high = form.range
        self.step = (high - self.low) / 255

    def encode(self, latent: np.ndarray) -> np.ndarray:
        return np.round((latent - self.low) / self.step).astype(np.uint8)

    def decode(self, codes: np.ndarray, rows: Indices, out: np.ndarray) -> None:
        out[:] = codes[rows] * self.step + self.low


@pytest.fixture(autouse=True)
def bytes_codec() -> Iterator[None]:
    with CODECS.registered("bytes", Bytes):
        yield


def filled() -> ReplayMemory:
    """Return a memory with three patterns of the classes 1, 2, 1, in any order."""
    memory, rng = ReplayMemory(4, FIFTHS, codec="bytes"), np.random.default_rng(0)
    latents = np.array([[1.0, 1.09], [20.0, 51.0], [3.0, 0.0]], np.float32)
    memory.update(latents, np.array([1, 2, 1], np.int32), session=1, rng=rng)
    return memory


def content(memory: ReplayMemory) -> list[tuple[int, list[int]]]:
    return sorted(zip(memory.slots.tolist(), memory.codes.tolist()))


WHOLE = [(1, [5, 5]), (1, [15, 0]), (2, [100, 255])]


def test_the_memory_holds_codes_and_reads_latents() -> None:
    memory = filled()
    assert memory.codes.dtype == np.uint8
    assert content(memory) == WHOLE
    # Two bytes per pattern, four for its slot and four for its mark.
    assert memory.nbytes == 3 * (2 + 8)
    out = np.empty((3, 2), np.float32)
    memory.read(np.argsort(memory.codes[:, 0]), out)
    expected = np.array([[1.0, 1.0], [3.0, 0.0], [20.0, 51.0]])
    np.testing.assert_allclose(out, expected, rtol=1e-6)
    found = memory.latents(np.argsort(memory.codes[:, 0])[:1])
    assert (found.dtype, found.shape) == (FLOAT, (1, 2))
    np.testing.assert_allclose(found, expected[:1], rtol=1e-6)


@pytest.mark.parametrize("change", ["update", "forget"])
def test_codes_are_taken_back(change: str) -> None:
    memory = filled()
    before = memory.content
    if change == "update":
        new = np.full((4, 2), 2.0, np.float32)
        rng = np.random.default_rng(1)
        memory.update(new, np.full(4, 3, np.int32), session=1, rng=rng)
        assert content(memory) == [(3, [10, 10])] * 4
    else:
        memory.forget(1)
        assert content(memory) == WHOLE[2:]
    memory.content = before
    assert content(memory) == WHOLE


def test_a_learner_keeps_codes_in_ram_and_on_disk(
    open_deep: Callable[..., Learner], tmp_path: Path
) -> None:
    """A step from -255 to 255 is 2: 11 is stored as 133, and 10 (132.5) as 132, which is 9."""
    options = {"codec": "bytes", "adapt_moments": False}
    learner = open_deep(tmp_path / "state", **options)
    learner.learn(frames(10, 11), "a")
    assert sorted(learner.memory.codes[:, 0, 0, 0].tolist()) == [132, 133]
    assert learner.memory.nbytes == 2 * (SIZE * SIZE * 3 + 8)
    state = read_state(tmp_path / "state")
    assert state.memory.rows.all().dtype == np.uint8
    np.testing.assert_array_equal(state.memory.rows.all(), learner.memory.codes)
    assert state.meta.codec == "bytes"
    learner.close()
    again = open_deep(tmp_path / "state", **options)
    np.testing.assert_array_equal(again.memory.codes, state.memory.rows.all())
    again.learn(frames(200), "b")
    for inputs in fake(again.committed.working).inputs_of("train"):
        assert inputs["latents"].dtype == np.float32
        replayed = inputs["latents"][inputs["targets"][:, 0] == 1]
        assert set(replayed[:, 0, 0, 0].tolist()) == {9.0, 11.0}
        # New patterns are trained as extracted; a stored 200 would be 201 or 199.
        new = inputs["latents"][inputs["targets"][:, 1] == 1]
        assert set(new[:, 0, 0, 0].tolist()) == {200.0}


def test_a_state_of_another_codec_is_refused(
    open_deep: Callable[..., Learner], tmp_path: Path
) -> None:
    learner = open_deep(tmp_path / "state", codec="bytes", adapt_moments=False)
    learner.learn(frames(10, 11), "a")
    learner.close()
    # The same models in another bundle: only its manifest tells them apart.
    manifest = learner.bundle.path / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"codec": "bytes"', '"codec": "raw"'))
    with pytest.raises(StateError, match="a state with codec raw, got bytes; open its own bundle"):
        open_deep(tmp_path / "state")


def test_an_unknown_codec() -> None:
    with pytest.raises(InputError, match=r"^Expected a codec of raw, bytes, got 'byte'; did you"):
        ReplayMemory(4, FIFTHS, codec="byte")
