"""Rows of Avalanche for `beside_avalanche.py`, which starts this in a Python that has Avalanche.

Needs Avalanche and PyTorch, but not this project. Reads the lists of STREAM, takes the
latent of each picture from LATENTS by its name, and prints a line of JSON for each strategy.

    VENV/bin/python benchmarks/avalanche_rows.py STREAM LATENTS.npz
"""

from __future__ import annotations

import argparse
import json
import re
import time
from pathlib import Path
from typing import Any

import avalanche
import numpy as np
import torch
from avalanche.benchmarks import benchmark_from_datasets
from avalanche.benchmarks.utils import as_classification_dataset
from avalanche.training import Replay, StreamingLDA
from avalanche.training.plugins import EvaluationPlugin
from torch.utils.data import TensorDataset

BATCH = 128


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("stream", type=Path)
    parser.add_argument("latents", type=Path)
    parser.add_argument("--replay-size", type=int, default=1500)
    parser.add_argument("--lr", type=float, default=0.03)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    torch.manual_seed(arguments.seed)
    torch.set_num_threads(1)
    found = np.load(arguments.latents, allow_pickle=False)
    latents = dict(zip(found["names"].tolist(), found["latents"].reshape(len(found["names"]), -1)))
    [run] = arguments.stream.glob("batches_filelists/NIC_v2_*/run0")
    lists = sorted(
        run.glob("train_batch_*"), key=lambda path: int(re.findall(r"\d+", path.name)[0])
    )
    train = [dataset(path, latents) for path in lists]
    test = dataset(run / "test_filelist.txt", latents)
    size = found["latents"][0].size
    classes = 1 + max(int(y) for _, y, *_ in test)
    for name, strategy in strategies(size, classes, arguments):
        stream = benchmark_from_datasets(train=train, test=[test]).train_stream
        started = time.perf_counter()
        for experience in stream:
            strategy.train(experience)
        seconds = time.perf_counter() - started
        row = {
            "program": f"Avalanche {avalanche.__version__}",
            "strategy": name,
            "accuracy": accuracy(strategy, test),
            "seconds": seconds,
        }
        print(json.dumps(row), flush=True)


def dataset(path: Path, latents: dict[str, Any]) -> Any:
    """Return the latents and labels of a list, as Avalanche's data set."""
    lines = [line.split() for line in path.read_text(encoding="ascii").splitlines()]
    rows = torch.from_numpy(np.stack([latents[name] for name, _ in lines]))
    data = TensorDataset(rows, torch.tensor([int(label) for _, label in lines]))
    data.targets = [int(label) for _, label in lines]
    return as_classification_dataset(data)


def strategies(size: int, classes: int, arguments: argparse.Namespace) -> Any:
    """Yield each strategy with its name, with a fresh model."""
    silent = EvaluationPlugin()
    common = {"evaluator": silent, "train_mb_size": BATCH}
    criterion = torch.nn.CrossEntropyLoss()
    slda = StreamingLDA(
        slda_model=torch.nn.Identity(),
        criterion=criterion,
        input_size=size,
        num_classes=classes,
        **common,
    )
    yield "StreamingLDA, its defaults", slda
    model = torch.nn.Linear(size, classes)
    replay = Replay(
        model=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=arguments.lr, momentum=0.9),
        criterion=criterion,
        mem_size=arguments.replay_size,
        train_epochs=arguments.epochs,
        **common,
    )
    yield f"Replay, memory {arguments.replay_size}, linear layer, SGD {arguments.lr:g}", replay


def accuracy(strategy: Any, test: Any) -> float:
    """Return the share of test patterns that the strategy labels correctly."""
    rows = torch.stack([x for x, *_ in test])
    truth = torch.tensor([int(y) for _, y, *_ in test])
    strategy.model.train(False)
    with torch.no_grad():
        features = strategy.model(rows)
        scores = strategy.predict(features) if hasattr(strategy, "predict") else features
    return float((scores.argmax(dim=1) == truth).double().mean())


if __name__ == "__main__":
    main()
