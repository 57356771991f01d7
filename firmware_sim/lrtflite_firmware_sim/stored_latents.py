"""Latents of a data set that were extracted beforehand, in a file that several runs map."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrtflite.bundle.manifest import Manifest
from lrtflite.data import Clip
from lrtflite.errors import DataError
from lrtflite.files.digest import digest
from lrtflite.files.strict_json import strict_json
from lrtflite_firmware_sim.reporting.results import Spread

LATENTS_FILE, INDEX_FILE = "latents.npy", "index.json"
FORMAT = 1

ClipKey = tuple[int, str, int, bool]
"""A clip's label, name and length, and whether it is held out."""


@dataclass(frozen=True)
class StoredLatents:
    """The latents of every frame of a data set; `rows` has the first row of each clip.

    `extract_ms` are the times of their extraction. INVARIANT: the file has the digest of its index.
    """

    file: Path
    latents: NDArray[Any] = field(repr=False)
    rows: Mapping[ClipKey, int] = field(repr=False)
    extract_ms: Spread

    @classmethod
    def open(cls, folder: Path, manifest: Manifest, *, check: bool = True) -> StoredLatents:
        """Map the latents in a folder; raise DataError if they changed or are of another shape."""
        file = folder / LATENTS_FILE
        try:
            index = strict_json((folder / INDEX_FILE).read_text(encoding="utf-8"))
            if check and digest(file).sha256 != index["sha256"]:
                raise ValueError("another digest")
            latents = np.load(file, mmap_mode="r", allow_pickle=False)
            rows = {
                (clip["label"], clip["name"], clip["frames"], clip["test"]): clip["row"]
                for clip in index["clips"]
            }
            shape, dtype = (index["frames"], *manifest.latent_shape), manifest.latent_dtype
            if index["format"] != FORMAT or latents.shape != shape or latents.dtype != dtype:
                raise ValueError(f"{latents.shape} of {latents.dtype}")
            return cls(file, latents, rows, Spread(**index["extract_ms"]))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DataError(
                f"Expected the latents of a data set in {folder}, got {error}",
                "remove this folder, and the next call extracts them again",
            ) from error

    def of_parts(self, parts: Iterable[tuple[Clip, Sequence[int]]]) -> NDArray[np.int64]:
        """Return the row of each training frame of these parts."""
        found = [self._row(clip, test=False) + np.asarray(frames) for clip, frames in parts]
        rows: NDArray[np.int64] = np.concatenate(found).astype(np.int64)
        return rows

    def of_test(self, clips: Iterable[Clip]) -> tuple[NDArray[Any], ...]:
        """Return the latents (1, ...) of each frame of test clips, still on disk."""
        plain = np.asarray(self.latents)  # a slice of a mapped array is slow to make
        starts = [(self._row(clip, test=True), clip.length) for clip in clips]
        return tuple(
            plain[row : row + 1] for start, length in starts for row in range(start, start + length)
        )

    def _row(self, clip: Clip, *, test: bool) -> int:
        key = (clip.label, clip.name, clip.length, test)
        if key not in self.rows:
            raise DataError(
                f"Expected the latents of {clip.name} in {self.file}, got none",
                "remove its folder, and the next call extracts them again",
            )
        return self.rows[key]


def write_index(
    folder: Path,
    clips: Sequence[tuple[Clip, bool]],
    *,
    extract_ms: Spread,
    notes: Mapping[str, Any],
) -> None:
    """Write the index of LATENTS_FILE, whose rows are the frames of `clips`, in this order.

    Each clip comes with whether it is held out. `notes` say what the latents were made from.
    """
    rows = np.cumsum([0, *(clip.length for clip, _ in clips)])
    index = {
        "format": FORMAT,
        **notes,
        "frames": int(rows[-1]),
        "sha256": digest(folder / LATENTS_FILE).sha256,
        "extract_ms": {"p50": extract_ms.p50, "p95": extract_ms.p95, "n": extract_ms.n},
        "clips": [
            {
                "label": clip.label,
                "name": clip.name,
                "frames": clip.length,
                "test": test,
                "row": int(row),
            }
            for (clip, test), row in zip(clips, rows)
        ],
    }
    (folder / INDEX_FILE).write_text(json.dumps(index) + "\n", encoding="utf-8")
