"""The settings of a host training, and the two schedules that set them all."""

from __future__ import annotations

from dataclasses import dataclass

from lrtflite.errors import InputError
from lrtflite.layer_names import check_replay_layer


@dataclass(frozen=True)
class TrainOptions:
    """How `train` trains.

    Attributes:
        schedule: "first-batch" (the first batch of a NIC stream) or "backbone" (all classes).
        weights: where the backbone starts: "demo", "imagenet", "none" or a file.
        alpha: width of the network; None takes the weights' own.
        activation: "relu6" or "relu"; None takes the weights' own.
        freeze_below: layer whose output is frozen with all below it, Batch Renorm moments too;
            "images" freezes nothing, "pool6" all but the last layer.
        first_classes: classes of the first batch; None takes all classes with all their frames.
        visits: visits per class of the stream whose first batch is trained.
        epochs: passes over the training frames.
        batch_size: frames in a mini-batch; every one is full.
        lr: learning rate of the last layer, the highest one with `cosine`.
        trunk_lr: learning rate of the layers below it that train; None takes `lr`.
        cosine: whether the rate warms up over a twentieth of the steps, then falls to 0.
        momentum: share of the last update kept.
        weight_decay: L2 on the kernels; gamma and beta have none.
        augment: whether frames are flipped, shifted, brightened and darkened.
        frames_per_video: frames of each video, evenly spread; None takes all.
        held_out_frames: frames of each test video on which accuracy is measured.
        patience: stop after so many epochs without a better validation accuracy; None never does.
        seed: decides initial weights, stream, order and augmentation.
    """

    schedule: str
    weights: str
    alpha: float | None = None
    activation: str | None = None
    freeze_below: str = "images"
    first_classes: int | None = 10
    visits: int = 2
    epochs: int = 4
    batch_size: int = 128
    lr: float = 0.001
    trunk_lr: float | None = None
    cosine: bool = False
    momentum: float = 0.9
    weight_decay: float = 5e-4
    augment: bool = False
    frames_per_video: int | None = None
    held_out_frames: int = 5
    patience: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.schedule not in SCHEDULES:
            raise InputError(f"Expected schedule {' or '.join(SCHEDULES)}, got {self.schedule!r}")
        for name in (
            "first_classes",
            "visits",
            "epochs",
            "batch_size",
            "held_out_frames",
            "frames_per_video",
            "patience",
        ):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"Expected {name} of at least 1, got {value}")
        if self.batch_size < 2:
            raise InputError("Expected batch_size of at least 2, got 1; Batch Renorm needs more")
        for name in ("lr", "trunk_lr", "weight_decay", "seed"):
            value = getattr(self, name)
            if value is not None and not value >= 0:
                raise InputError(f"Expected {name} of at least 0, got {value}")
        if not 0 <= self.momentum < 1:
            raise InputError(f"Expected a momentum from 0 to below 1, got {self.momentum}")
        check_replay_layer(self.freeze_below)
        if self.weights == "none" and self.freeze_below != "images":
            raise InputError(
                f"Expected trained weights to freeze below {self.freeze_below}, got random ones "
                "(none); choose other weights, or freeze nothing with --freeze-below images"
            )

    @property
    def rates(self) -> tuple[float, float]:
        """The learning rates of the last layer and of the layers below it."""
        return self.lr, self.lr if self.trunk_lr is None else self.trunk_lr


SCHEDULES = ("first-batch", "backbone")

# Rates and layer chosen by measurement, docs/training.md; momentum, decay and mini-batch are the
# paper's. (The paper trains batch B_1 for 4 epochs, all layers at 0.001.)
FIRST_BATCH = TrainOptions(
    schedule="first-batch",
    weights="demo",
    freeze_below="conv6/dw",
    epochs=40,
    lr=0.03,
    trunk_lr=0.003,
    patience=10,
)

# Trains a small network from nothing on a few thousand frames.
BACKBONE = TrainOptions(
    schedule="backbone",
    weights="none",
    alpha=0.25,
    epochs=30,
    batch_size=64,
    lr=0.1,
    cosine=True,
    weight_decay=1e-4,
    augment=True,
    frames_per_video=20,
)
