"""`lrtflite convert`: make a bundle that learns on the device."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.option(
    "--replay-layer",
    default="pool6",
    show_default=True,
    help="Where latents are taken; this version trains above pool6.",
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
@click.option("--batch-size", type=int, default=120, show_default=True, help="Mini-batch.")
@click.option(
    "--new-per-batch", type=int, default=20, show_default=True, help="New patterns in it."
)
@click.option("--out", type=click.Path(path_type=Path), default=Path("bundle"), show_default=True)
def command(
    replay_layer: str,
    model: str | None,
    weights: str | None,
    alpha: float | None,
    input_size: int,
    classes: int | None,
    labels: str | None,
    batch_size: int,
    new_per_batch: int,
    out: Path,
) -> None:
    """Make a bundle that learns on the device.

    The bundle has a frozen feature model, a trainable head, a manifest and golden vectors; it is
    proved on every installed runtime before it is put in place.
    """
    from lrtflite.layer_names import check_replay_layer

    check_replay_layer(replay_layer)  # before TensorFlow, which takes seconds to load

    from lrtflite_converters.convert import convert, read_labels
    from lrtflite_converters.export import ExportOptions

    options = ExportOptions(
        replay_layer=replay_layer,
        labels=read_labels(labels),
        classes=classes,
        batch_size=batch_size,
        new_per_batch=new_per_batch,
    )
    convert(
        out,
        options=options,
        model=model,
        weights=weights,
        alpha=alpha,
        input_size=input_size,
        progress=lambda line: click.echo(line, err=True),
    )
    click.echo(f"{out}")
    click.echo(f"Next: lrtflite inspect {out}; lrtflite simulate {out}", err=True)
