"""The options of `lrtflite train` that set how it trains."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from lrtflite.networks.architecture import NETWORKS
from lrtflite_cli.options.network import activation_option, network_option

if TYPE_CHECKING:
    from lrtflite.host.training import TrainOptions

POSITIVE = click.IntRange(min=1)

_frozen = "; ".join(
    f"{entry.freeze_below or entry.pooled} of {name}" for name, entry in NETWORKS.items()
)
_OPTIONS = (
    network_option(help="Network to train."),
    click.option(
        "--weights",
        help="Initial weights: demo (mobilenet_v1 only), imagenet, none (random), or a file.",
        show_default="demo, or imagenet for another network; none for a backbone",
    ),
    click.option(
        "--alpha",
        type=float,
        help="Width of the network, relative to the paper's.",
        show_default="the weights' own; 0.25 for a backbone",
    ),
    activation_option(),
    click.option(
        "--freeze-below",
        metavar="LAYER",
        help="Freeze this layer and all below it, with their Batch Renorm moments (the means and "
        "variances that normalise each layer): images freezes nothing, the pooled layer all but "
        "the last layer. `lrtflite layers` lists the names.",
        show_default=f"{_frozen}; images for a backbone or --weights none",
    ),
    click.option(
        "--all-classes",
        is_flag=True,
        help="Train all classes with all their frames; the default for a folder.",
    ),
    click.option(
        "--first-classes",
        type=POSITIVE,
        help="Train the first batch of a stream, in which each class appears several times: this "
        "many classes, each with the frames of its first visit. Not for a backbone.",
        show_default="all of a folder, else 10",
    ),
    click.option(
        "--visits",
        type=POSITIVE,
        help="Visits to each class in that stream: portions of its frames, each learned in another "
        "session. Not for a backbone.",
        show_default="all of a folder, else 2",
    ),
    click.option(
        "--epochs",
        type=POSITIVE,
        help="Passes over the training frames, at most.",
        show_default="40; 30 for a backbone",
    ),
    click.option(
        "--batch-size",
        type=click.IntRange(min=2),
        help="Frames in a mini-batch.",
        show_default="128; 64 for a backbone",
    ),
    click.option(
        "--lr",
        type=click.FloatRange(min=0),
        help="Learning rate of the last layer.",
        show_default="0.03; 0.1 for a backbone",
    ),
    click.option(
        "--lower-lr",
        type=click.FloatRange(min=0),
        help="Learning rate of the layers below the last one that train.",
        show_default="0.003; --lr for a backbone",
    ),
    click.option(
        "--cosine/--constant",
        default=None,
        help="Lower the learning rates to 0 along a cosine, or keep them constant.",
        show_default="constant; cosine for a backbone",
    ),
    click.option(
        "--weight-decay",
        type=click.FloatRange(min=0),
        help="L2 penalty on the kernels.",
        show_default="0.0005; 0.0001 for a backbone",
    ),
    click.option(
        "--augment/--no-augment",
        default=None,
        help="Flip, shift and brighten or darken the training frames at random.",
        show_default="for a backbone only",
    ),
    click.option(
        "--frames-per-video",
        type=POSITIVE,
        help="Frames taken from each video, evenly spread.",
        show_default="all; 20 for a backbone",
    ),
    click.option(
        "--patience",
        type=click.IntRange(min=0),
        help="Early stopping: a tenth of the training frames is set aside for validation, training "
        "stops after this many epochs below the best accuracy on them, and the best epoch is kept. "
        "0 trains all epochs on all frames.",
        show_default="10; 0 for a backbone",
    ),
)


def train_options(command: Any) -> Any:
    """Add the options that `chosen_options` turns into `TrainOptions`."""
    for option in reversed(_OPTIONS):  # click lists the last one applied first
        command = option(command)
    return command


def chosen_options(
    schedule: str, dataset: str, seed: int, given: dict[str, Any], *, all_classes: bool
) -> TrainOptions:
    """Return the schedule's defaults, overridden by the options `given` on the command line."""
    from lrtflite.errors import InputError
    from lrtflite.host.training import TrainOptions

    chosen = {name: value for name, value in given.items() if value is not None}
    stream = "first_classes" in chosen or "visits" in chosen
    if all_classes and stream:
        raise InputError(
            "Expected --all-classes, or --first-classes and --visits, got both", "leave one out"
        )
    if all_classes or (dataset.startswith("folder:") and not stream):
        chosen["first_classes"] = None
    return TrainOptions.for_schedule(schedule, {**chosen, "seed": seed})
