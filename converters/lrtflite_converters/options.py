"""How a bundle shall learn: what `convert` takes, checked before TensorFlow is loaded."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lrtflite.arguments import whole_number
from lrtflite.errors import ModelError
from lrtflite.layer_names import MOST_CLASSES, check_network, check_replay_layer
from lrtflite.manifest import Training, trains_trunk
from lrtflite.memory import check_memory
from lrtflite.slots import check_label
from lrtflite_converters.usual import (
    FEATURES,
    USUAL_POLICY,
    USUAL_REPLAY_SIZE,
    usual_minibatch,
    usual_training,
)

# Weights that have a name; all others are files.
NAMED_WEIGHTS = ("demo", "imagenet", "none")
# By such an ending one label is taken for a file that is not there.
LABEL_FILES = (".txt", ".csv", ".names", ".labels")
# Places in a mini-batch: the training step above a low layer takes 10 MB for each.
LARGEST_BATCH = 4096
# The variance of one value is no variance.
SMALLEST_RENORM_BATCH = 2


@dataclass(frozen=True)
class ExportOptions:
    """How a bundle learns. None stands for the default at the replay layer.

    `seed_memory` latents, as many as the paper's app has, ship with what a model learned on the
    host.
    """

    replay_layer: str = "pool6"
    labels: tuple[str, ...] = ()
    classes: int | None = None
    batch_size: int | None = None
    new_per_batch: int | None = None
    replay_size: int | None = None
    policy: str | None = None
    train_depthwise: bool = True
    adapt_moments: bool = False
    lr: float | None = None
    trunk_lr: float | None = None
    epochs: int | None = None
    seed_memory: int = 500

    def __post_init__(self) -> None:
        check_replay_layer(self.replay_layer)
        batch, new = self.minibatch
        if batch > LARGEST_BATCH:
            raise ModelError(f"Expected a mini-batch of at most {LARGEST_BATCH}, got {batch:,}")
        if not 1 <= new <= batch:
            raise ModelError(
                f"Expected 1 to {batch} new patterns in a mini-batch of {batch}, got {new}"
            )
        if trains_trunk(self.replay_layer) and batch < SMALLEST_RENORM_BATCH:
            raise ModelError(
                f"Expected a mini-batch of at least {SMALLEST_RENORM_BATCH} below conv6/sep, where "
                f"Batch Renorm takes moments of it, got {batch}; the paper uses 128"
            )
        if self.adapt_moments and self.replay_layer == "images":
            raise ModelError(
                "Expected a replay layer above images to adapt the moments below it, got 'images'; "
                "leave --adapt-moments out"
            )
        if self.adapt_moments and new < SMALLEST_RENORM_BATCH:
            raise ModelError(
                f"Expected at least {SMALLEST_RENORM_BATCH} new patterns a mini-batch to adapt "
                f"moments to, got {new}; give more with --new-per-batch"
            )
        idle = [
            *(["--trunk-lr"] if self.trunk_lr is not None else []),
            *([] if self.train_depthwise else ["--freeze-depthwise"]),
        ]
        if idle and not trains_trunk(self.replay_layer):
            raise ModelError(
                f"Expected no {idle[0]} at {self.replay_layer}, where only the last layer trains; "
                "leave it out, or replay a lower layer"
            )
        self.training(FEATURES)  # refuses rates that cannot be
        check_memory(*self.memory)
        whole_number("seed_memory", self.seed_memory)
        if self.classes is not None and not 1 <= self.classes <= MOST_CLASSES:
            raise ModelError(f"Expected 1 to {MOST_CLASSES:,} classes, got {self.classes:,}")
        if self.classes is not None and self.classes < len(self.labels):
            raise ModelError(
                f"Expected at least {len(self.labels)} classes for the labels, got {self.classes}"
            )
        if len(set(self.labels)) != len(self.labels):
            raise ModelError(f"Expected distinct labels, got {', '.join(self.labels)}")

    @property
    def minibatch(self) -> tuple[int, int]:
        """Its size, and how many of it are new."""
        usual_size, usual_new = usual_minibatch(self.replay_layer)
        size = usual_size if self.batch_size is None else self.batch_size
        if self.new_per_batch is not None:
            return size, self.new_per_batch
        return size, max(1, round(size * usual_new / usual_size))

    @property
    def memory(self) -> tuple[int, str]:
        """The number of latents that a new learner keeps, and the policy that chooses them."""
        return (
            USUAL_REPLAY_SIZE if self.replay_size is None else self.replay_size,
            USUAL_POLICY if self.policy is None else self.policy,
        )

    def training(self, features: int) -> Training:
        """How a head above so many features trains."""
        usual = usual_training(self.replay_layer, features)
        return usual.with_options(lr=self.lr, trunk_lr=self.trunk_lr, epochs=self.epochs)


def check_source(
    model: str | None, weights: str | None, alpha: float | None, input_size: int
) -> None:
    """Refuse a network that is named twice or cannot be built, or a file that is not there."""
    check_network(alpha, input_size)
    if model is not None:
        if weights is not None or alpha is not None:
            raise ModelError(
                "Expected --model or --weights and --alpha, got both; --model has its own"
            )
        if not Path(model).is_file():
            raise ModelError(f"Expected a saved model, got {model}, which is no file")
    elif weights not in (None, *NAMED_WEIGHTS) and not Path(str(weights)).is_file():
        known = ", ".join(NAMED_WEIGHTS)
        raise ModelError(f"Expected {known} or a file, got {weights}, which is no file")


def read_labels(text: str | None) -> tuple[str, ...]:
    """Labels from `a,b,c`, or from a file with one a line."""
    if not text:
        return ()
    try:
        # A file may have blank lines between its labels.
        lines = [line for line in Path(text).read_text("utf-8").splitlines() if line.strip()]
    except UnicodeDecodeError as error:
        raise ModelError(f"Expected labels in UTF-8, one a line, got {text}: {error}") from error
    except OSError:  # no such file, or too long for a file's name: a list
        if "," not in text and ("/" in text or text.lower().endswith(LABEL_FILES)):
            raise ModelError(
                f"Expected labels as a,b,c or in a file, one a line, got {text}, which is no file"
            ) from None
        lines = text.split(",")
    labels = tuple(line.strip() for line in lines)
    if not labels or not all(labels):
        raise ModelError(f"Expected labels as a,b,c or in a file, one a line, got {text!r}")
    return tuple(map(check_label, labels))
