"""Make the parts of the bundle `photos` that come with the package, or check them.

python tools/make_photos.py PHOTOGRAPHS [--check]

PHOTOGRAPHS is a folder of pictures, one folder per class, on which the int8 ranges are measured.
Needs the extras `host` and `photos`. The parts are the golden vectors, the manifest, and the graphs
of both models, in which zeros are in the places of all kernels.
"""

from __future__ import annotations

import dataclasses
import io
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "converters")]

from lrtflite.bundle.bundle import FEATURES_FILE, GOLDEN_FILE, HEAD_FILE, MANIFEST_FILE  # noqa: E402
from lrtflite.bundle.manifest_json import read_manifest  # noqa: E402
from lrtflite.photos.packaged import GRAPHS_FILE, PARTS  # noqa: E402
from lrtflite.photos.weightless import KernelPlace  # noqa: E402
from lrtflite.photos.weights import units  # noqa: E402

NETWORK, SIZE, SLOTS, STRATEGY = "efficientnet_lite0", 224, 100, "lda"
# Its own threshold of unknown (docs/studies/closed-form.md).
UNKNOWN = 0.52
# Name of the data set in the manifest, where `convert` writes the path.
PICTURES = "photographs of 50 classes of Caltech-101"


def convert_photos(photographs: str, out: Path) -> None:
    """Convert the bundle, as `lrtflite convert` does."""
    from lrtflite.bundle.destination import Destination
    from lrtflite_converters.conversion.making import make
    from lrtflite_converters.quantise.calibration import read_calibration
    from lrtflite_converters.quantise.options import QuantiseOptions
    from lrtflite_converters.request.options import ConvertOptions
    from lrtflite_converters.request.source import Source

    quantised = QuantiseOptions(mode="int8", calibrate=f"folder:{photographs}")
    options = ConvertOptions(strategy=STRATEGY, classes=SLOTS, quantise=quantised)
    calibration = dataclasses.replace(read_calibration(quantised, size=SIZE), name=PICTURES)
    source = Source(NETWORK, weights="imagenet", input_size=SIZE)
    make(Destination.at(out), source, options, calibration=calibration, stage=lambda text: None)


def without_kernels(content: bytes) -> tuple[bytearray, list[KernelPlace]]:
    """Return an int8 model with zeros in the places of its kernels, and these places."""
    from tensorflow.lite.python import schema_py_generated as schema

    model = schema.Model.GetRootAs(content, 0)
    graph, emptied, places = model.Subgraphs(0), bytearray(content), []
    for unit, operator in zip((unit for unit, _, _ in units()), _convolutions(model, graph)):
        kernel = graph.Tensors(operator.Inputs(1))
        buffer, quantised = model.Buffers(kernel.Buffer()), kernel.Quantization()
        start, scales = _place(buffer, field=0), _place(quantised, field=2)
        emptied[start : start + buffer.DataLength()] = bytes(buffer.DataLength())
        places.append(KernelPlace(unit, start, scales))
    return emptied, places


def _convolutions(model: Any, graph: Any) -> list[Any]:
    from tensorflow.lite.python import schema_py_generated as schema

    kinds = (schema.BuiltinOperator.CONV_2D, schema.BuiltinOperator.DEPTHWISE_CONV_2D)
    operators = [graph.Operators(place) for place in range(graph.OperatorsLength())]
    return [
        each for each in operators if model.OperatorCodes(each.OpcodeIndex()).BuiltinCode() in kinds
    ]


def _place(table: Any, *, field: int) -> int:
    """Return the first byte of a vector, by the number of its field in TensorFlow Lite's schema."""
    return int(table._tab.Vector(table._tab.Offset(4 + 2 * field)))


def parts_of(bundle: Path) -> dict[str, bytes]:
    """Return the files of the package for a bundle."""
    features, places = without_kernels((bundle / FEATURES_FILE).read_bytes())
    graphs = io.BytesIO()
    np.savez_compressed(
        graphs,
        features=np.frombuffer(features, np.uint8),
        head=np.frombuffer((bundle / HEAD_FILE).read_bytes(), np.uint8),
        units=np.array([place.unit for place in places]),
        values=np.array([place.values for place in places]),
        scales=np.array([place.scales for place in places]),
    )
    manifest = read_manifest((bundle / MANIFEST_FILE).read_text(), where=str(bundle))
    # Costs are those of a user's machine, not of this one.
    manifest = dataclasses.replace(manifest, measured=None, unknown=UNKNOWN)
    return {
        MANIFEST_FILE: manifest.to_json().encode(),
        GOLDEN_FILE: (bundle / GOLDEN_FILE).read_bytes(),
        GRAPHS_FILE: graphs.getvalue(),
    }


def main(photographs: str, *words: str) -> int:
    """Write the parts; with `--check`, compare the digests of the models and return 1 or 0."""
    folder = ROOT / "lrtflite" / PARTS
    with tempfile.TemporaryDirectory() as temporary:
        bundle = Path(temporary) / "photos"
        convert_photos(photographs, bundle)
        if words == ("--check",):
            texts = [(place / MANIFEST_FILE).read_text() for place in (folder, bundle)]
            made, found = (read_manifest(text, where=PARTS).files for text in texts)
            print("\n".join(f"{name}: {made[name] == found[name]}" for name in made))
            return 0 if made == found else 1
        folder.mkdir(exist_ok=True)
        for name, content in parts_of(bundle).items():
            (folder / name).write_bytes(content)
            print(f"{name}: {len(content):,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
