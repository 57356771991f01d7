"""The layouts of files in which other programs look for a classifier."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lrtflite.errors import InputError
from lrtflite.tables.table import Table
from lrtflite_converters.export.request import LABELS_FILE, Files

PLAIN, FRIGATE = "plain", "frigate"


@dataclass(frozen=True)
class Layout:
    """The files of an export.

    `model` is the name of the model in the folder `--out`; without it, `--out` is the model itself.
    `side` is the side of frames that the program feeds, None for that of the bundle. `none` is the
    label whose answer the program ignores, if it has one.
    """

    summary: str
    labels: str = LABELS_FILE
    model: str | None = None
    side: int | None = None
    none: str | None = None

    def files(self, out: Path) -> Files:
        """Return the files to write; `out` is what the user gave."""
        if self.model is None:
            return Files(out)
        if out.exists() and not out.is_dir():
            raise InputError(
                f"Expected a folder for the files of this layout, got the file {out}",
                "choose another --out",
            )
        return Files(out / self.model, self.labels)


LAYOUTS: Table[Layout] = Table(
    "layout",
    {
        PLAIN: Layout("a model, and labels.txt next to it"),
        # frigate/data_processing/real_time/custom_classification.py reads these names, and feeds
        # frames of this size only.
        FRIGATE: Layout(
            "a folder for Frigate's custom classification",
            labels="labelmap.txt",
            model="model.tflite",
            side=224,
            none="none",
        ),
    },
)
