"""The options of `lrtflite convert`; their defaults come from the converter's tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable

import click

from lrtflite.networks.architecture import NETWORKS
from lrtflite.replay.codecs import CODECS
from lrtflite.tables.table import first_sentence
from lrtflite_cli.options.data import skip_unreadable
from lrtflite_cli.options.learner import all_of, memory_options
from lrtflite_cli.options.network import activation_option, network_option
from lrtflite_cli.options.rates import rate_options
from lrtflite_cli.options.table import table_option

if TYPE_CHECKING:
    from lrtflite_converters.request.defaults import SplitPoint

POSITIVE = click.IntRange(min=1)


def convert_options() -> Callable[[Any], Any]:
    """Add all options of the command."""
    return all_of(*_network(), *_slots(), *_learning(), *_quantisation(), *_output())


def _network() -> tuple[Callable[[Any], Any], ...]:
    from lrtflite_converters.request.presets import BEST_SIZE
    from lrtflite_converters.request.source import INPUT_SIZE

    pooled = "; ".join(f"{entry.pooled} of {name}" for name, entry in NETWORKS.items())
    weights = ", ".join(
        dict.fromkeys(w for entry in NETWORKS.values() for w in entry.named_weights)
    )
    return (
        click.option(
            "--replay-layer",
            help="Layer whose output for a frame, a latent, is stored and "
            "replayed. All layers above it train on the device. `lrtflite layers` lists the names.",
            show_default=pooled,
        ),
        click.option(
            "--pooled",
            is_flag=True,
            help="Average the replay layer's output over all pixels: this makes a small latent, "
            "and only the last layer trains.",
        ),
        *_views(),
        network_option(help="Network to convert."),
        *_own_model(),
        click.option(
            "--weights",
            help=f"Instead of --model: {weights}, or a .npz, .h5 or .keras file.",
            show_default="the first of these that the network has",
        ),
        click.option(
            "--alpha",
            type=float,
            help="Width of the network, relative to the paper's.",
            show_default="the weights' own",
        ),
        activation_option(),
        click.option(
            "--input-size",
            type=int,
            show_default=f"{INPUT_SIZE}; {BEST_SIZE} with --preset best",
            help="Side of the square frames, in pixels.",
        ),
    )


def _views() -> tuple[Callable[[Any], Any], ...]:
    return (
        click.option(
            "--and",
            "and_layer",
            metavar="LAYER",
            help="Second, lower layer, whose average over all pixels joins the latent. lda solves "
            "each layer on its own and adds their scores.",
        ),
        click.option(
            "--crops",
            is_flag=True,
            help="Average the latent of a frame with that of its enlarged centre, when teaching "
            "and when answering. It is right more often, and takes twice the time per frame.",
        ),
    )


def _own_model() -> tuple[Callable[[Any], Any], ...]:
    from lrtflite_converters.request.scaling import FORMS

    return (
        click.option(
            "--model",
            type=click.Path(),
            help="Model file: one that `lrtflite train` saved, or your own Keras model (.keras or "
            ".h5), whose last dense layer is left out.",
        ),
        click.option(
            "--features",
            type=click.Path(),
            help="Feature model from elsewhere (.tflite): an image in, a vector out. Only the last "
            "layer trains.",
        ),
        click.option(
            "--scale",
            help=f"Scaling of the pixels that your --model or --features expects: {FORMS}.",
            show_default="the model's own Rescaling or Normalization layer",
        ),
    )


def _slots() -> tuple[Callable[[Any], Any], ...]:
    return (
        click.option(
            "--classes",
            type=POSITIVE,
            help="Class slots: the maximum number of classes, including the labelled ones.",
            show_default="labels + 5; 50 without labels",
        ),
        click.option(
            "--labels", help="Names of the first classes: a,b,c or a file with one per line."
        ),
    )


def _learning() -> tuple[Callable[[Any], Any], ...]:
    from lrtflite_converters.request.defaults import SplitPoint
    from lrtflite_converters.request.presets import PRESETS
    from lrtflite_converters.request.strategies import STRATEGIES, default_strategy

    network = next(iter(NETWORKS.values()))
    pooled, below = SplitPoint(network, network.pooled), SplitPoint(network, network.lowest_quick)
    second = SplitPoint(network, network.pooled, second=network.lowest_quick)
    strategies = "; ".join(f"{name}: {entry.summary}" for name, entry in STRATEGIES.items())
    return (
        table_option(
            "--strategy",
            STRATEGIES,
            help="Layers that train, and how. CWR* is the paper's rule, which merges the weights "
            f"of the last layer after each session. {strategies}.",
            show_default=f"{default_strategy(pooled)} at {pooled.replay_layer}, "
            f"{default_strategy(below)} where more than the last layer trains; "
            f"{default_strategy(second)} with --and",
        ),
        table_option(
            "--preset",
            PRESETS,
            help="Replace the default rates, mini-batch and epochs. "
            + "; ".join(f"{name}: {entry.summary}" for name, entry in PRESETS.items())
            + ".",
            show_default="values measured for this project",
        ),
        *_feeding(pooled, below),
        click.option(
            "--train-depthwise/--freeze-depthwise",
            default=True,
            show_default=True,
            help="Train or freeze the depthwise convolutions above the replay layer.",
        ),
        click.option(
            "--adapt-moments",
            is_flag=True,
            help="Let the Batch Renorm moments (running means and variances) below the replay "
            "layer follow the frames that the device sees.",
        ),
    )


def _feeding(pooled: SplitPoint, below: SplitPoint) -> tuple[Callable[[Any], Any], ...]:
    """Return the options of mini-batches, memory and rates, with the defaults for both places."""
    from lrtflite_converters.request import defaults
    from lrtflite_converters.request.defaults import sgd_feeding, sgd_rates

    fed, fed_below = sgd_feeding(pooled), sgd_feeding(below)
    layer, resting = pooled.replay_layer, pooled.architecture.resting_layers[0]
    codecs = " ".join(f"{name}: {first_sentence(codec)}" for name, codec in CODECS.items())
    return (
        click.option(
            "--batch-size",
            type=POSITIVE,
            help="Patterns (latents with their classes) in a mini-batch.",
            show_default=f"{fed.batch_size} at {layer}, {fed_below.batch_size} below it",
        ),
        click.option(
            "--new-per-batch",
            type=POSITIVE,
            help="Maximum number of new patterns in a mini-batch; the rest are replayed.",
            show_default=f"{fed.new_per_batch} at {layer}, {fed_below.new_per_batch} below it",
        ),
        memory_options(
            replay_size=str(defaults.REPLAY_SIZE),
            policy=f"{defaults.POLICY}; {defaults.REFIT_POLICY} for lda below {resting}",
        ),
        table_option(
            "--codec",
            CODECS,
            help=f"Form in which latents are stored. {codecs}",
            show_default=defaults.CODEC,
        ),
        rate_options(
            epochs=f"{fed.epochs}; {fed_below.epochs} below {resting}",
            lr=f"{sgd_rates(pooled)['lr'].value:g} x {defaults.MEASURED_FEATURES} / features",
        ),
    )


def _quantisation() -> tuple[Callable[[Any], Any], ...]:
    from lrtflite_converters.quantise import SUMMARIES
    from lrtflite_converters.quantise.options import EPOCHS, FRAMES

    modes = "; ".join(f"{name}: {summary}" for name, summary in SUMMARIES.items())
    return (
        click.option(
            "--quantize",
            metavar="MODE",
            help="Make the frozen layers and the latents int8, a quarter of the size. "
            f"Needs --calibrate. {modes}.",
            show_default="float",
        ),
        click.option(
            "--calibrate",
            metavar="DATASET",
            help="With --quantize: frames like those of the device's camera, as in --dataset of "
            "`lrtflite simulate`. Only training frames are read.",
        ),
        click.option(
            "--calibration-frames",
            type=POSITIVE,
            help="With --quantize: number of these frames, the same for each class.",
            show_default=str(FRAMES),
        ),
        click.option(
            "--qat-epochs",
            type=POSITIVE,
            help="With --quantize qat: passes over the calibration frames.",
            show_default=str(EPOCHS),
        ),
        skip_unreadable,
    )


def _output() -> tuple[Callable[[Any], Any], ...]:
    from lrtflite_converters.request.options import SEED_MEMORY

    return (
        click.option(
            "--out",
            type=click.Path(path_type=Path),
            default=Path("bundle"),
            show_default=True,
            help="Folder to write.",
        ),
        click.option(
            "--seed-memory",
            type=click.IntRange(min=0),
            default=SEED_MEMORY,
            show_default=True,
            help="With --model: number of latents of its training frames that ship in the replay "
            "memory.",
        ),
        click.option("--replace", is_flag=True, help="Replace the bundle that --out holds."),
    )
