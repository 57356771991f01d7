"""TFLite metadata: what the tensors mean, and a zip of files at the end of the model.

Field numbers are those of version 1.0.0 of `metadata_schema.fbs`. Task libraries, Android Studio
and MediaPipe read it. A runtime ignores both the metadata and the bytes after the model.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any

import flatbuffers

IDENTIFIER = b"M001"
PARSER_VERSION = "1.0.0"
# Numbers of the schema's enumerations and unions.
_AXIS_LABELS, _RGB = 2, 1
_FEATURE, _IMAGE = 1, 2
# Time in the zip, so that one model gives one file.
_TIME = (1980, 1, 1, 0, 0, 0)


def model_metadata(*, name: str, description: str, labels_file: str) -> bytes:
    """Return the flatbuffer for a model of one image and one list of probabilities."""
    builder = flatbuffers.Builder(1024)
    labels = _table(
        builder,
        4,
        {0: builder.CreateString(labels_file), 1: builder.CreateString("label of each output")},
        numbers={2: _AXIS_LABELS},
    )
    files = _vector(builder, [labels])
    image = _table(builder, 2, {}, numbers={0: _RGB})
    frames = _tensor(builder, "frames", "camera frame, RGB", _IMAGE, image)
    feature = _table(builder, 0, {})
    answers = _tensor(
        builder, "probabilities", "probability of each label", _FEATURE, feature, files=files
    )
    inputs, outputs = _vector(builder, [frames]), _vector(builder, [answers])
    graph = _table(builder, 7, {2: inputs, 3: outputs})
    graphs = _vector(builder, [graph])
    model = _table(
        builder,
        8,
        {
            0: builder.CreateString(name),
            1: builder.CreateString(description),
            3: graphs,
            7: builder.CreateString(PARSER_VERSION),
        },
    )
    builder.Finish(model, file_identifier=IDENTIFIER)
    return bytes(builder.Output())


def with_files(model: bytes, files: Mapping[str, str]) -> bytes:
    """Return a model with a zip of text files at its end."""
    buffer = io.BytesIO()
    buffer.write(model)
    # Mode "a" keeps the model, and offsets count from its first byte.
    with zipfile.ZipFile(buffer, "a") as archive:
        for name, text in files.items():
            archive.writestr(zipfile.ZipInfo(name, _TIME), text.encode())
    return buffer.getvalue()


def _tensor(
    builder: Any, name: str, description: str, kind: int, content: int, *, files: int | None = None
) -> int:
    described = _table(builder, 3, {1: content}, numbers={0: kind})
    fields = {
        0: builder.CreateString(name),
        1: builder.CreateString(description),
        3: described,
    }
    return _table(builder, 7, {**fields, **({} if files is None else {6: files})})


def _table(
    builder: Any, fields: int, offsets: Mapping[int, int], *, numbers: Mapping[int, int] = {}
) -> int:
    """Write a table: fields that are offsets to other objects, and small numbers."""
    builder.StartObject(fields)
    for number, offset in offsets.items():
        builder.PrependUOffsetTRelativeSlot(number, offset, 0)
    for number, value in numbers.items():
        builder.PrependUint8Slot(number, value, 0)
    return int(builder.EndObject())


def _vector(builder: Any, offsets: Sequence[int]) -> int:
    builder.StartVector(4, len(offsets), 4)
    for offset in reversed(offsets):
        builder.PrependUOffsetTRelative(offset)
    return int(builder.EndVector())
