"""The signatures of a `.tflite` file, read from the flatbuffer, so `inspect` needs no runtime.

Field numbers are those of TensorFlow Lite's `schema.fbs`: Model.signature_defs = 7;
SignatureDef.inputs = 0, outputs = 1, signature_key = 2; TensorMap.name = 0.
"""

from __future__ import annotations

from pathlib import Path

from lrtflite.contract import signatures_of
from lrtflite.runtime.flatbuffer import FlatTable, read_model


def read_signatures(path: Path) -> dict[str, tuple[str, ...]]:
    """Return the input names of each signature; signatures are sorted by name."""
    return read_model(path, lambda model: dict(sorted(map(_signature, model.tables(7)))))


def describe_signatures(model: str, path: Path) -> str:
    """List the signatures of "features" or "head" in the contract's order, with their rates."""
    found = read_signatures(path)
    words = []
    for name, spec in signatures_of(model).items():
        if name in found:
            rates = [] if spec.tensors else [i for i in found[name] if i not in spec.inputs]
            words.append(f"{name} ({', '.join(rates)})" if rates else name)
    return ", ".join(words)


def _signature(table: FlatTable) -> tuple[str, tuple[str, ...]]:
    return table.string(2), tuple(sorted(each.string(0) for each in table.tables(0)))
