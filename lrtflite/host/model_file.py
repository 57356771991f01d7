"""Complete networks on disk: `lrtflite train` saves them, `lrtflite convert --model` loads them."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import tf_keras as keras

import lrtflite.host.mobilenet  # noqa: F401  registers the project's layers with Keras
from lrtflite.errors import ModelError
from lrtflite.files.atomic import replacing
from lrtflite.host.first_batch import FirstBatch, add_first_batch

# Errors of Keras and h5py for files that are damaged, not a model, or have unregistered layers.
UNREADABLE = (OSError, ValueError, KeyError, TypeError, AttributeError, zipfile.BadZipFile)


def save_model(model: keras.Model, path: Path, *, batch: FirstBatch | None = None) -> None:
    """Write `model` as `.keras`, with the frames of its first batch if there are any.

    `path` holds the old file or the new one, never half of it.
    """
    if path.suffix != ".keras":
        raise ModelError(
            f"Expected a model file name that ends in .keras, got {path}; choose another name"
        )
    with writing_model(path), replacing(path) as temporary:
        model.save(temporary)
        if batch is not None:
            add_first_batch(temporary, batch)


def load_model(path: Path) -> keras.Model:
    """Read a `.keras` or `.h5` model for inference or further training."""
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise ModelError(
            f"Expected a model file (.keras or .h5), got {path}, which {what}; check the path"
        )
    try:
        return keras.models.load_model(path, compile=False)
    except UNREADABLE as error:
        raise ModelError(
            f"Expected a complete model of Keras's and this project's layers in {path}, "
            f"got {first_line(error)}; save it again"
        ) from error


@contextmanager
def writing_model(path: Path) -> Iterator[None]:
    """Turn an OSError of the block into a ModelError that names `path`."""
    try:
        yield
    except OSError as error:
        raise ModelError(
            f"Expected to write {path}, got {first_line(error)}; make room or choose another place"
        ) from error


def first_line(error: BaseException) -> str:
    """Return the first line of an error's text, shortened for a one-line message."""
    lines = str(error).strip().splitlines()
    return lines[0][:160] if lines else type(error).__name__
