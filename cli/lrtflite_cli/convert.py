"""`lrtflite convert`: make a bundle that learns on the device."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from lrtflite_cli import interrupts
from lrtflite_cli.cautions import caution
from lrtflite_cli.interrupts import raising
from lrtflite_cli.learner_options import memory_options
from lrtflite_cli.training_options import training_options

if TYPE_CHECKING:
    from lrtflite.manifest import Manifest


@click.command()
@click.option(
    "--replay-layer",
    default="pool6",
    show_default=True,
    help="Where latents are taken, from images to pool6; all above it trains on the device. "
    "`lrtflite layers` lists them.",
)
@click.option("--model", type=click.Path(), help="A network that `lrtflite train` saved.")
@click.option(
    "--weights",
    help="Instead of --model: demo (default), imagenet, or a .npz, .h5 or .keras file.",
)
@click.option("--alpha", type=float, help="Width of the network; default: that of the weights.")
@click.option("--input-size", type=int, default=128, show_default=True, help="Side of a frame.")
@click.option(
    "--classes",
    type=click.IntRange(min=1),
    help="Class slots, labelled and free [default: labels + 5, else 50].",
)
@click.option("--labels", help="Names of the first slots: a,b,c or a file with one a line.")
@click.option(
    "--batch-size",
    type=click.IntRange(min=1),
    help="Mini-batch.",
    show_default="120 at pool6, 128 below it",
)
@click.option(
    "--new-per-batch",
    type=click.IntRange(min=1),
    help="New patterns in it, at most.",
    show_default="20 at pool6, 21 below it",
)
@memory_options(replay_size="1500", policy="algorithm1")
@training_options(
    epochs="4; 2 below conv6/sep",
    lr="0.003 x 1024 / features",
    trunk_lr="0.015; 0.0003 below conv3_1/dw",
)
@click.option(
    "--train-depthwise/--freeze-depthwise",
    default=True,
    show_default=True,
    help="Whether the depthwise convolutions above the replay layer train too.",
)
@click.option(
    "--adapt-moments",
    is_flag=True,
    help="Let the Batch Renorm moments below the replay layer move on the device.",
)
@click.option("--out", type=click.Path(path_type=Path), default=Path("bundle"), show_default=True)
@click.option(
    "--seed-memory",
    type=click.IntRange(min=0),
    default=500,
    show_default=True,
    help="With --model: latents of its first batch that ship in the replay memory.",
)
@click.option("--replace", is_flag=True, help="Replace the bundle that --out holds.")
def command(
    replay_layer: str,
    model: str | None,
    weights: str | None,
    alpha: float | None,
    input_size: int,
    classes: int | None,
    labels: str | None,
    batch_size: int | None,
    new_per_batch: int | None,
    replay_size: int | None,
    policy: str | None,
    epochs: int | None,
    lr: float | None,
    trunk_lr: float | None,
    train_depthwise: bool,
    adapt_moments: bool,
    out: Path,
    seed_memory: int,
    replace: bool,
) -> None:
    """Make a bundle that learns on the device.

    The bundle has a feature model, a trainable head, a manifest and golden vectors; it is proved on
    every installed runtime before it is put in place. How it trains is a default, which a device
    may change in each session.
    """
    from lrtflite.bundle import INITIAL, Bundle
    from lrtflite.demo_weights import DEMO, DEMO_NOTE
    from lrtflite.destination import Destination
    from lrtflite_cli.progress import stages
    from lrtflite_converters.options import ExportOptions, check_source, read_labels

    options = ExportOptions(
        replay_layer=replay_layer,
        labels=read_labels(labels),
        classes=classes,
        batch_size=batch_size,
        new_per_batch=new_per_batch,
        replay_size=replay_size,
        policy=policy,
        epochs=epochs,
        lr=lr,
        trunk_lr=trunk_lr,
        train_depthwise=train_depthwise,
        adapt_moments=adapt_moments,
        seed_memory=seed_memory,
    )
    check_source(model, weights, alpha, input_size)
    destination = Destination.at(out, replace=replace)
    caution(replay_size=replay_size, batch_size=batch_size)

    # What was typed is checked by now: TensorFlow takes seconds to load.
    from lrtflite.scratch import scratch_tempdir
    from lrtflite_converters.convert import convert

    with raising(), scratch_tempdir(), stages() as say:

        def stage(text: str) -> None:
            # TensorFlow's lazy imports can swallow a KeyboardInterrupt.
            if interrupts.came():
                raise KeyboardInterrupt
            say(text)

        convert(
            destination,
            options=options,
            model=model,
            weights=weights,
            alpha=alpha,
            input_size=input_size,
            stage=stage,
        )
    manifest = Bundle.open(out).manifest
    click.echo(f"{out}")
    if destination.replaces:
        click.echo(
            f"Replaced the bundle in {out}; states of the old one do not open with it", err=True
        )
    click.echo(f"{manifest.backbone}, replay layer {manifest.replay_layer}", err=True)
    demo = model is None and weights in (None, DEMO)
    if demo:
        click.echo(DEMO_NOTE, err=True)
    if model is not None and INITIAL not in manifest.files and manifest.labels[0] is not None:
        click.echo(
            "It ships without a memory, so what it knows fades as it learns more; "
            f"lrtflite teach {out} gives it one",
            err=True,
        )
    if manifest.measured is not None:
        click.echo(f"Costs: {manifest.measured}", err=True)
    click.echo(f"Next: lrtflite inspect {out}; {_simulation(out, manifest, demo=demo)}", err=True)


def _simulation(out: Path, manifest: Manifest, *, demo: bool) -> str:
    """The command that shows what the bundle is worth, and that ends within minutes."""
    words = ["lrtflite", "simulate", str(out)]
    words += [] if demo else ["--dataset", "folder:PICTURES"]
    words += ["--sessions", "2"] if manifest.trains_trunk else []
    return " ".join(words)
