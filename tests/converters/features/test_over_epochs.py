"""One pass with the rate of several epochs, exact in float32 at any rate."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from lrtflite_converters.features.features import over_epochs
from lrtflite_converters.tflite.convert import to_tflite

CASES = [(rate, epochs) for rate in (0, 1e-7, 5e-5, 0.1, 1) for epochs in (1, 4, 100_000)]


def expected(rate: float, epochs: int) -> float:
    """Return 1 - (1 - rate)^epochs, computed in float64."""
    with np.errstate(divide="ignore"):
        return float(-np.expm1(epochs * np.log1p(-float(rate))))


@tf.function(
    input_signature=[tf.TensorSpec([1], tf.float32, name) for name in ("rate", "epochs")],
    autograph=False,
)
def traced(rate: Any, epochs: Any) -> dict[str, Any]:
    return {"share": over_epochs(rate, epochs)}


@pytest.mark.parametrize(("rate", "epochs"), CASES)
@pytest.mark.parametrize("as_graph", [False, True])
def test_a_rate_of_several_epochs(rate: float, epochs: int, as_graph: bool) -> None:
    given = np.array([rate], np.float32), np.array([epochs], np.float32)
    found = traced(*given)["share"] if as_graph else over_epochs(*map(tf.constant, given))
    assert float(found[0]) == pytest.approx(expected(rate, epochs), rel=1e-5, abs=0)


DEVICE = """
import sys
from pathlib import Path
import numpy as np
from lrtflite.runtime.model import Model
path, runtime, inputs, outputs = sys.argv[1:]
model = Model(Path(path), runtime=runtime)
np.save(outputs, [
    model.run("share", rate=rate.reshape(1), epochs=epochs.reshape(1))["share"].item()
    for rate, epochs in np.load(inputs)
])
"""


def test_a_rate_of_several_epochs_in_tflite(runtime: str, tmp_path: Path) -> None:
    path = tmp_path / "share.tflite"
    path.write_bytes(to_tflite(tf.Module(), {"share": traced}, variables=False))
    np.save(tmp_path / "cases.npy", np.array(CASES, np.float32))
    words = [sys.executable, "-c", DEVICE, path, runtime, tmp_path / "cases.npy"]
    command = [str(word) for word in (*words, tmp_path / "found.npy")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = np.load(tmp_path / "found.npy")
    np.testing.assert_allclose(found, [expected(*case) for case in CASES], rtol=1e-5, atol=0)
