"""The device process: its imports, its sessions, its errors and its end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from lrtflite.bundle.bundle import Bundle, demo_bundle
from lrtflite.bundle.training import Training
from lrtflite.errors import BundleError, InputError, LrtfliteError, NoFreeSlot
from lrtflite.options import LearnerOptions
from lrtflite.system.machine import peak_ram_bytes
from lrtflite_firmware_sim.device.process import DeviceProcess


@pytest.fixture(scope="module")
def bundle() -> Iterator[Path]:
    with demo_bundle() as path:
        yield path


@pytest.fixture
def device(bundle: Path) -> Iterator[DeviceProcess]:
    with DeviceProcess(bundle, LearnerOptions(replay_size=50)) as process:
        yield process


@pytest.fixture(scope="module")
def training(bundle: Path) -> Training:
    return Bundle.open(bundle).manifest.training.with_options(epochs=1)


def noise(bundle: Path, count: int) -> NDArray[np.uint8]:
    size = Bundle.open(bundle).manifest.input_size
    return np.random.default_rng(0).integers(0, 256, (count, size, size, 3), np.uint8)


def test_it_imports_numpy_and_a_runtime_and_no_more(
    device: DeviceProcess, bundle: Path, training: Training
) -> None:
    device.learn(noise(bundle, 3), ["a"] * 3, training=training)
    modules = device.vitals().modules
    assert {"numpy", "lrtflite"} <= modules
    assert modules & {"ai_edge_litert", "tflite_runtime"}
    strangers = {"tensorflow", "keras", "tf_keras", "click", "rich", "matplotlib", "PIL", "pytest"}
    assert not modules & strangers


def test_its_ram_is_not_that_of_its_parent(bundle: Path) -> None:
    ballast = np.ones(200_000_000, np.uint8)
    with DeviceProcess(bundle) as device:
        assert device.vitals().peak_ram_mb < 150
    assert peak_ram_bytes() > ballast.nbytes


def test_frames_are_taken_while_they_arrive(
    device: DeviceProcess, bundle: Path, training: Training
) -> None:
    frames = noise(bundle, 100)
    taken: list[int] = []

    def camera() -> Iterator[NDArray[np.uint8]]:
        for number, frame in enumerate(frames):
            # All earlier frames were acknowledged, so none waits for the end of the recording.
            assert len(taken) == number
            yield frame

    steps = []
    report = device.learn(
        camera(),
        ["a"] * 100,
        training=training,
        on_frame=taken.append,
        on_progress=lambda progress: steps.append((progress.phase, progress.done)),
    )
    assert report.frames == 100
    assert taken == list(range(1, 101))
    trained = [("train", n + 1) for n in range(report.steps)]
    assert steps == [*trained, ("gather", 1), ("checkpoint", 1)]
    assert len(report.timings["extract"]) == 100


def test_its_errors_arrive_as_what_they_are(
    device: DeviceProcess, bundle: Path, training: Training
) -> None:
    frames = noise(bundle, 3)
    with pytest.raises(InputError, match="Expected frames of shape"):
        device.learn([frames[0], frames[1][:9]], ["a", "a"], training=training)
    with pytest.raises(InputError, match="one label per frame, got 2 for 3"):
        device.learn(frames, ["a", "a"], training=training)
    with pytest.raises(InputError, match="empty session"):
        device.learn([], [], training=training)
    slots = Bundle.open(bundle).manifest.slots
    with pytest.raises(NoFreeSlot):
        device.learn(
            np.repeat(frames[:1], slots + 1, axis=0),
            [f"class {n}" for n in range(slots + 1)],
            training=training,
        )
    # The device then works as before.
    report = device.learn(frames, ["a"] * 3, training=training)
    assert report.session == 1
    assert device.predict(frames[0]).top[0].label == "a"


def test_a_frame_is_answered_as_its_latent_is(
    device: DeviceProcess, bundle: Path, training: Training
) -> None:
    frames = noise(bundle, 6)
    device.learn(frames, ["a", "b"] * 3, training=training)
    rows = device.recognise(frames[0]).probabilities
    assert rows.shape == (1, Bundle.open(bundle).manifest.slots)
    assert rows.sum() == pytest.approx(1, abs=1e-5)
    again = device.answers(device.extract(frames[0])).probabilities
    np.testing.assert_array_equal(rows, again)


def test_a_bundle_that_it_cannot_open(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="Expected a bundle folder"):
        DeviceProcess(tmp_path)


def test_a_device_that_dies_is_one_line(device: DeviceProcess, bundle: Path) -> None:
    device.process.kill()
    with pytest.raises(LrtfliteError) as caught:
        device.extract(noise(bundle, 1)[0])
    assert str(caught.value).startswith("The device process was killed by SIGKILL (out of memory?)")
    assert "\n" not in str(caught.value)


def test_a_bug_of_the_device_is_one_line_with_its_trace(device: DeviceProcess) -> None:
    with pytest.raises(LrtfliteError, match="The device process failed: TypeError: Expected a re"):
        device.ask("what?")
    with pytest.raises(LrtfliteError) as caught:
        device.ask("what?")
    assert "Traceback" in str(caught.value.__cause__)


def test_its_state_is_on_the_disk_and_goes_with_it(bundle: Path, training: Training) -> None:
    with DeviceProcess(bundle) as device:
        device.learn(noise(bundle, 2), ["a"] * 2, training=training)
        folder = device.state
        assert list(folder.glob("state-*.safetensors"))
    assert not folder.exists()
    assert device.process.returncode == 0


# Opens a device, prints its pid and folder, and waits.
SIMULATOR = """
import sys, time; from pathlib import Path
from lrtflite.bundle.training import Training
from lrtflite_firmware_sim.device.process import DeviceProcess
device = DeviceProcess(Path(sys.argv[1]))
print(device.process.pid, device.state, flush=True); time.sleep(60)
"""


def killed_simulator(bundle: Path, temporary: Path, *, with_device: bool) -> tuple[int, Path]:
    """Kill a simulator, and optionally its device first; return the device's pid and folder."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(sys.path),
        "TMPDIR": str(temporary),
    }
    with subprocess.Popen(
        [sys.executable, "-c", SIMULATOR, str(bundle)],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    ) as simulator:
        assert simulator.stdout is not None
        pid, state = simulator.stdout.readline().split()
        assert Path(state).exists()
        if with_device:
            os.kill(int(pid), signal.SIGKILL)
        simulator.kill()
    return int(pid), Path(state).parent


def test_a_simulator_that_is_killed_leaves_nothing(bundle: Path, tmp_path: Path) -> None:
    pid, folder = killed_simulator(bundle, tmp_path, with_device=False)
    deadline = time.monotonic() + 10
    while folder.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert list(tmp_path.iterdir()) == []
    assert not _alive(pid)


def test_the_next_run_removes_what_a_killed_device_left(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid, folder = killed_simulator(bundle, tmp_path, with_device=True)
    assert not _alive(pid)
    assert (folder / "state").is_dir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with DeviceProcess(bundle) as device:
        assert [path.name for path in tmp_path.iterdir()] == [device.state.parent.name]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_is_the_simulators_to_handle(
    device: DeviceProcess, bundle: Path, number: signal.Signals
) -> None:
    os.kill(device.process.pid, number)
    assert device.extract(noise(bundle, 1)[0]).shape[0] == 1
    # Ctrl-C goes to the foreground group of the terminal, and the device is in another.
    assert os.getpgid(device.process.pid) != os.getpgrp()


def _alive(pid: int) -> bool:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        # The new parent of an orphan may be slow to reap it, but a zombie has ended.
        status = Path(f"/proc/{pid}/stat")
        if status.exists() and status.read_text().rpartition(")")[2].split()[0] == "Z":
            return False
        time.sleep(0.05)
    return True
