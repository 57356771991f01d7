"""The options of a training run, and the two schedules that give them defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from lrtflite.errors import InputError, ModelError
from lrtflite.networks.architecture import NETWORKS, Architecture


@dataclass(frozen=True)
class TrainOptions:
    """Options of one call of `train`.

    Attributes:
        schedule: "first-batch" trains the classes a device starts with; "backbone" trains the whole
            network on all classes.
        network: name of the network.
        weights: initial weights: "demo" (MobileNetV1 only), "imagenet", "none" (random) or a file.
        alpha: width of the network; None uses that of the weights.
        activation: "relu6" or "relu"; None uses that of the weights.
        freeze_below: layer whose output is frozen, with all layers below it and their Batch Renorm
            moments; the first replay layer freezes nothing, the pooled one all but the last layer.
        first_classes: number of classes in the first batch of a stream; None trains all classes
            with all their frames. Always None for a backbone.
        visits: visits per class of the stream that the first batch is taken from.
        epochs: passes over the training frames, at most.
        batch_size: frames in a mini-batch; every mini-batch is full.
        lr: learning rate of the last layer; its peak with `cosine`.
        lower_lr: learning rate of the layers below the last one that train; None uses `lr`.
        cosine: True warms the learning rates up and then lowers them to 0 along half a cosine;
            False keeps them constant.
        momentum: share of the previous update that is added to each update.
        weight_decay: L2 penalty on the kernels; gamma and beta have none.
        augment: True flips, shifts and brightens or darkens the frames at random.
        frames_per_video: frames used from each video, evenly spread; None uses all.
        held_out_frames: frames of each test video that accuracy is measured on.
        patience: epochs below the best validation accuracy after which training stops; None runs
            all epochs.
        seed: seed of initial weights, stream, order and augmentation.
        split_seed: seed of the visits of the stream, instead of `seed`; None uses `seed`.
    """

    schedule: str
    weights: str
    alpha: float | None = None
    activation: str | None = None
    freeze_below: str = "images"
    first_classes: int | None = None
    visits: int = 2
    epochs: int = 4
    batch_size: int = 128
    lr: float = 0.001
    lower_lr: float | None = None
    cosine: bool = False
    momentum: float = 0.9
    weight_decay: float = 5e-4
    augment: bool = False
    frames_per_video: int | None = None
    held_out_frames: int = 5
    patience: int | None = None
    seed: int = 0
    network: str = "mobilenet_v1"
    split_seed: int | None = None

    def __post_init__(self) -> None:
        if self.schedule not in SCHEDULES:
            raise InputError(
                f"Expected a schedule of {', '.join(SCHEDULES)}, got {self.schedule!r}",
                "choose one of these",
            )
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
            raise InputError(
                "Expected batch_size of at least 2, got 1",
                "choose a larger one, because Batch "
                "Renorm needs the mean and variance of a mini-batch",
            )
        for name in ("lr", "lower_lr", "weight_decay", "seed", "split_seed"):
            value = getattr(self, name)
            if value is not None and not value >= 0:
                raise InputError(
                    f"Expected {name} of at least 0, got {value}", "choose another value"
                )
        if not 0 <= self.momentum < 1:
            raise InputError(
                f"Expected a momentum from 0 to below 1, got {self.momentum}", "the default is 0.9"
            )
        if self.schedule == "backbone" and self.first_classes is not None:
            raise InputError(
                f"Expected no first_classes for a backbone, got {self.first_classes}",
                "leave it out (a backbone trains all classes)",
            )
        try:
            self.architecture.check_layer(self.freeze_below)
        except ModelError as error:
            raise InputError(f"{error} (--freeze-below)") from None
        if self.weights == "none" and not self.architecture.reads_frames(self.freeze_below):
            raise InputError(
                f"Expected trained weights to freeze below {self.freeze_below}, got random ones "
                "(none)",
                "choose other weights, or freeze nothing with --freeze-below images",
            )

    @classmethod
    def for_schedule(cls, schedule: str, chosen: Mapping[str, Any]) -> TrainOptions:
        """Return the defaults of a schedule and its network, changed by the `chosen` attributes.

        A `patience` of 0 is None. Raise InputError for an attribute that would have no effect.
        """
        changes = dict(chosen)
        if schedule == "backbone":
            _check_no_stream(changes)
        architecture = NETWORKS.choose(changes.get("network", cls.network))
        if schedule != "backbone":
            changes.setdefault("weights", architecture.named_weights[0])
            if changes["weights"] != "none":
                changes.setdefault("freeze_below", architecture.freeze_below or architecture.pooled)
        if changes.get("weights") == "none":
            changes.setdefault("freeze_below", architecture.replay_layers[0])
        if changes.get("patience") == 0:
            changes["patience"] = None
        defaults = BACKBONE if schedule == "backbone" else FIRST_BATCH
        options = replace(defaults, **{**changes, "schedule": schedule})
        if changes.get("lower_lr") is not None and not options.trains_lower_layers:
            raise InputError(
                f"Expected no --lower-lr with --freeze-below {options.freeze_below}, where only "
                f"the last layer trains, got {options.lower_lr:g}",
                "leave it out, or freeze fewer layers",
            )
        return options

    @property
    def architecture(self) -> Architecture:
        return NETWORKS.choose(self.network)

    @property
    def rates(self) -> tuple[float, float]:
        """The learning rates of the last layer and of the layers below it."""
        return self.lr, self.lr if self.lower_lr is None else self.lower_lr

    @property
    def trains_lower_layers(self) -> bool:
        """True if layers below the last one train, not only the pooling."""
        return self.architecture.trains_trunk(self.freeze_below)


def _check_no_stream(chosen: Mapping[str, Any]) -> None:
    """Raise InputError for attributes of a stream, which a backbone does not have."""
    names = [name for name in ("first_classes", "visits") if chosen.get(name) is not None]
    if names:
        got = " and ".join(f"--{name.replace('_', '-')} {chosen[name]}" for name in names)
        raise InputError(
            "Expected no --first-classes or --visits with --schedule backbone, which trains all "
            f"classes, got {got}",
            "leave that out, or name the classes in --dataset (?classes=a,b)",
        )


SCHEDULES = ("first-batch", "backbone")

# Learning rates and frozen layer are chosen by measurement (docs/studies/host-training.md).
# Momentum, weight decay and mini-batch are the paper's, which trains batch B_1 for 4 epochs, all
# layers at 0.001.
FIRST_BATCH = TrainOptions(
    schedule="first-batch",
    weights="demo",
    freeze_below="conv6/dw",
    first_classes=10,
    epochs=40,
    lr=0.03,
    lower_lr=0.003,
    patience=10,
)

# Trains a small network from random weights on a few thousand frames.
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
