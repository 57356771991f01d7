"""Avalanche's SLDA and replay beside this project's heads, on the same frames and features.

STREAM is a folder that `lrtflite data D --export-stream STREAM` wrote. Each BUNDLE learns its
sessions; all bundles must have the same features. The latents then go, by the name of their
picture, to `avalanche_rows.py` in a Python that has Avalanche, which reads the lists by itself:
SLDA with Avalanche's defaults, and replay with a linear layer on the same features and SGD.

    lrtflite data synthetic --export-stream stream --seed 2000
    lrtflite convert --network mobilenet_v1 --weights demo --strategy lda --classes 50 --out lda
    lrtflite convert --network mobilenet_v1 --weights demo --strategy cwr --classes 50 --out cwr
    python benchmarks/beside_avalanche.py stream lda cwr --avalanche VENV/bin/python

The rows of Avalanche are left out if that Python lacks it (`pip install avalanche-lib`).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lrtflite import Bundle, Learner, LrtfliteError
from lrtflite.bundle.bundle import FEATURES_FILE
from lrtflite.data import open_source
from lrtflite.data.core50.lists import batch_lists
from lrtflite.runtime.model import describe_runtime
from lrtflite.system.machine import this_machine
from lrtflite.workbench.metrics import accuracy

CHILD = Path(__file__).with_name("avalanche_rows.py")
Row = tuple[str, str, float, float]


@dataclass(frozen=True)
class StreamLatents:
    """The pictures of each session and of the test, with their labels, and the latent of each."""

    sessions: list[list[tuple[str, int]]]
    test: list[tuple[str, int]]
    latents: dict[str, NDArray[np.float32]]

    def arrays(self, lines: Sequence[tuple[str, int]]) -> tuple[NDArray[np.float32], list[int]]:
        return np.stack([self.latents[name] for name, _ in lines]), [label for _, label in lines]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("stream", type=Path)
    parser.add_argument("bundles", nargs="+", type=Path, metavar="bundle")
    parser.add_argument("--avalanche", default=sys.executable, metavar="PYTHON")
    parser.add_argument("--replay-size", type=int, default=1500)
    parser.add_argument("--lr", type=float, default=0.03, help="of Avalanche's replay")
    parser.add_argument("--epochs", type=int, default=4, help="of Avalanche's replay")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    try:
        bundles = [Bundle.open(path) for path in arguments.bundles]
        check_same_features(bundles)
        listed = read(arguments.stream, bundles[0])
        print("| program | strategy | accuracy | seconds to learn |\n| --- | --- | --- | --- |")
        for row in (*ours(bundles, listed, arguments), *theirs(listed, arguments)):
            program, strategy, right, seconds = row
            print(f"| {program} | {strategy} | {right:.3f} | {seconds:.1f} |", flush=True)
    except LrtfliteError as error:
        sys.exit(f"Error: {error}")
    with Learner.open(bundles[0]) as learner:
        print(f"{describe_runtime(learner.runtime)}, 1 thread, on {this_machine()}")


def check_same_features(bundles: Sequence[Bundle]) -> None:
    """Raise LrtfliteError if two bundles turn a frame into different latents."""
    digests = {bundle.manifest.files[FEATURES_FILE].sha256 for bundle in bundles}
    if len(digests) > 1:
        raise LrtfliteError(
            f"Expected bundles with the same features, got {len(digests)} different models",
            "convert them from one network at one replay layer",
        )


def read(stream: Path, bundle: Bundle) -> StreamLatents:
    """Read the lists of an exported stream, and the latent of each picture."""
    runs = sorted(stream.glob("batches_filelists/NIC_v2_*/run0"))
    if len(runs) != 1:
        raise LrtfliteError(
            f"Expected one folder batches_filelists/NIC_v2_N/run0 in {stream}, got {len(runs)}",
            "write it with `lrtflite data DATASET --export-stream`",
        )
    sessions = [lines(path) for path in batch_lists(runs[0])]
    test = lines(runs[0] / "test_filelist.txt")
    source = open_source(
        f"core50:{stream}?protocol={len(sessions)}", size=bundle.manifest.input_size
    )
    latents: dict[str, NDArray[np.float32]] = {}
    named: dict[str, list[str]] = {}
    for name in sorted({name for part in (*sessions, test) for name, _ in part}):
        named.setdefault(name.rpartition("/")[0], []).append(name)
    with Learner.open(bundle) as learner:
        for clip in (*source.train_clips(), *source.test_clips()):
            rows = learner.extract(np.stack(list(clip.read())))
            latents.update(zip(named[clip.name], np.asarray(rows, np.float32)))
    return StreamLatents(sessions, test, latents)


def lines(path: Path) -> list[tuple[str, int]]:
    """Return picture and label of each line."""
    split = [line.split() for line in path.read_text(encoding="ascii").splitlines()]
    return [(name, int(label)) for name, label in split]


def ours(
    bundles: Sequence[Bundle], listed: StreamLatents, arguments: argparse.Namespace
) -> Iterator[Row]:
    """Yield a row for each bundle."""
    latents, truth = listed.arrays(listed.test)
    for bundle in bundles:
        replays = bundle.manifest.training.feeding.replays
        size = arguments.replay_size if replays else 0
        with (
            tempfile.TemporaryDirectory() as folder,
            Learner.open(
                bundle, folder, replay_size=size, seed=arguments.seed, threads=1
            ) as learner,
        ):
            started = time.perf_counter()
            for session in listed.sessions:
                patterns, labels = listed.arrays(session)
                learner.learn_latents(patterns, slot=labels)
            seconds = time.perf_counter() - started
            guess = learner.probabilities(latents).argmax(axis=1)
        memory = f", memory {size}" if size else ""
        name = f"{bundle.manifest.strategy}{memory}"
        yield "lrtflite", name, accuracy(guess, truth), seconds


def theirs(listed: StreamLatents, arguments: argparse.Namespace) -> Iterator[Row]:
    """Yield the rows of Avalanche; print a line if the given Python lacks it."""
    words = [arguments.avalanche, "-c", "import avalanche"]
    if subprocess.run(words, capture_output=True, check=False).returncode:
        print(
            f"Avalanche is not installed for {arguments.avalanche}, so its rows are missing: "
            "pip install avalanche-lib",
            file=sys.stderr,
        )
        return
    with tempfile.TemporaryDirectory() as folder:
        latents = Path(folder) / "latents.npz"
        np.savez(
            latents, names=list(listed.latents), latents=np.stack(list(listed.latents.values()))
        )
        words = [arguments.avalanche, str(CHILD), str(arguments.stream), str(latents)]
        for option in ("replay_size", "lr", "epochs", "seed"):
            words += [f"--{option.replace('_', '-')}", str(getattr(arguments, option))]
        done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise LrtfliteError("Avalanche's rows failed", "fix the error above")
    for line in done.stdout.splitlines():
        if line.startswith("{"):
            row = json.loads(line)
            yield row["program"], row["strategy"], row["accuracy"], row["seconds"]


if __name__ == "__main__":
    main()
