"""Extract the latents of a data set once, into a folder that every cell maps."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from lrtflite.bundle.bundle import FEATURES_FILE, Bundle, demo_bundle
from lrtflite.bundle.manifest import Manifest
from lrtflite.data import Clip, FrameSource
from lrtflite.errors import DataError
from lrtflite.files.atomic import flush_folder
from lrtflite.files.temporary_names import part_name
from lrtflite.runtime.model import Model, describe_runtime, pick_runtime
from lrtflite.verification.trial import try_models
from lrtflite_firmware_sim.experiment.digests import data_identity, digest_of
from lrtflite_firmware_sim.plan import SimulateOptions, open_dataset
from lrtflite_firmware_sim.reporting.results import Spread
from lrtflite_firmware_sim.stored_latents import INDEX_FILE, LATENTS_FILE, write_index

# Largest share of the free disk that latents may take.
SHARE_OF_DISK = 0.5


def latents_digest(manifest: Manifest, options: SimulateOptions) -> str:
    """Return the digest of everything that decides the latents of a data set."""
    runtime = describe_runtime(pick_runtime(options.learner.runtime))
    return digest_of(
        [
            manifest.files[FEATURES_FILE].sha256,
            runtime,
            options.learner.threads,
            data_identity(options.spec),
            manifest.input_size,
            options.data_seed,
            options.skip_unreadable,
        ]
    )


def can_share(manifest: Manifest, source: FrameSource, folder: Path) -> bool:
    """Return whether cells can share the latents of a source, in a folder with enough room.

    Latents change while moments adapt. Clips of one name cannot be told apart.
    """
    clips = all_clips(source)
    if manifest.adapt_moments or len({_key(*clip) for clip in clips}) < len(clips):
        return False
    frames = sum(clip.length for clip, _ in clips)
    free = shutil.disk_usage(folder).free
    return frames * manifest.latent_bytes < SHARE_OF_DISK * free


def all_clips(source: FrameSource) -> list[tuple[Clip, bool]]:
    """Return every clip, with whether it is held out."""
    train = [(clip, False) for clip in source.train_clips()]
    return train + [(clip, True) for clip in source.test_clips()]


def _key(clip: Clip, test: bool) -> tuple[int, str, int, bool]:
    return clip.label, clip.name, clip.length, test


def is_extracted(path: Path) -> bool:
    """Return whether the latents are there; `StoredLatents.open` checks their digest."""
    return (path / INDEX_FILE).is_file()


def extract(path: Path, bundle: str | None, options: SimulateOptions) -> None:
    """Extract every frame of a data set, and put the folder `path` in place once it is complete."""
    with ExitStack() as stack:
        folder = stack.enter_context(demo_bundle()) if bundle is None else Path(bundle)
        opened = Bundle.open(folder)
        manifest = opened.manifest
        clips = all_clips(open_dataset(options, size=manifest.input_size))
        learner = options.learner
        try_models(opened, learner.runtime)
        model = Model(opened.features, runtime=learner.runtime, threads=learner.threads or 1)
        made = path.with_name(part_name(path.name))
        made.mkdir(parents=True)
        try:
            spread = _write(made / LATENTS_FILE, model, manifest, clips)
            notes = {"dataset": options.spec, "backbone": manifest.backbone}
            notes.update(
                replay_layer=manifest.replay_layer, runtime=describe_runtime(model.runtime)
            )
            write_index(made, clips, extract_ms=spread, notes=notes)
            made.replace(path)
            flush_folder(path.parent)
        except BaseException:
            shutil.rmtree(made, ignore_errors=True)
            raise


def _write(
    file: Path, model: Model, manifest: Manifest, clips: Sequence[tuple[Clip, bool]]
) -> Spread:
    """Write the latents of every frame of the clips; return the times of the extractions."""
    frames = sum(clip.length for clip, _ in clips)
    shape = (frames, *manifest.latent_shape)
    out = np.lib.format.open_memmap(  # type: ignore[no-untyped-call, unused-ignore]
        file, mode="w+", dtype=np.dtype(manifest.latent_dtype), shape=shape
    )
    row, times = 0, []
    for clip, _ in clips:
        start = row
        for frame in clip.read():
            before = time.perf_counter()
            out[row] = model.run("extract", frames=frame[np.newaxis])["latents"][0]
            times.append(1e3 * (time.perf_counter() - before))
            row += 1
        if row - start != clip.length:
            raise DataError(
                f"Expected {clip.length} frames of {clip.name}, got {row - start}",
                "check the file",
            )
    out.flush()
    return Spread.of(times)
