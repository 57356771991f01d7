"""Complete networks on disk: `lrtflite train` saves them, `lrtflite convert --model` reads them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import tf_keras as keras

from lrtflite.errors import ModelError
from lrtflite.files.atomic import replacing
from lrtflite.files.keras import first_line, read_keras_file
from lrtflite.host.first_batch import FirstBatch, add_first_batch
from lrtflite.host.rebuilding import rebuild


def save_model(model: keras.Model, path: Path, *, batch: FirstBatch | None = None) -> None:
    """Write `model` as `.keras`, with the frames of its first batch if there are any.

    `path` holds the old file or the new one, never half of it.
    """
    if path.suffix != ".keras":
        raise ModelError(
            f"Expected a model file name that ends in .keras, got {path}", "choose another name"
        )
    with writing_model(path), replacing(path) as temporary:
        model.save(temporary)
        if batch is not None:
            add_first_batch(temporary, batch)


def load_model(path: Path) -> keras.Model:
    """Return a network that `save_model` or `model.save` wrote, as `.keras` or `.h5`.

    The file is read as data, and the network is built again: Keras's loaders execute code.
    """
    return rebuild(read_keras_file(path))


@contextmanager
def writing_model(path: Path) -> Iterator[None]:
    """Turn an OSError of the block into a ModelError that names `path`."""
    try:
        yield
    except OSError as error:
        raise ModelError(
            f"Expected to write {path}, got {first_line(error)}",
            "make room or choose another place",
        ) from error
