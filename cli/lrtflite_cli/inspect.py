"""`lrtflite inspect`: say what is inside a bundle."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from lrtflite.bundle import Bundle
    from lrtflite.manifest import Manifest


@click.command()
@click.argument("bundle", type=click.Path())
@click.option("--json", "as_json", is_flag=True, help="Print the manifest as JSON.")
def command(bundle: str, as_json: bool) -> None:
    """Say what is inside BUNDLE; its files are checked against their hashes on the way."""
    from lrtflite.bundle import Bundle

    opened = Bundle.open(bundle)
    manifest = opened.manifest
    if as_json:
        click.echo(manifest.to_json(), nl=False)
        return
    named = [label for label in manifest.labels if label is not None]
    shape = " x ".join(map(str, manifest.latent_shape))
    training = manifest.training
    rows = [
        ("backbone", manifest.backbone),
        ("frames", f"{manifest.input_size} x {manifest.input_size} RGB, uint8"),
        ("replay layer", manifest.replay_layer),
        ("latent", f"{shape} {manifest.latent_dtype}, {manifest.latent_bytes:,} bytes"),
        ("replay memory", f"{manifest.replay_size} latents by default, {manifest.policy}"),
        (
            "mini-batch",
            f"{manifest.batch_size}, of these at most {manifest.new_per_batch} new; "
            "the rest is replayed",
        ),
        (
            "training",
            f"{training.epochs} epochs, at least {training.least_steps} steps, "
            f"lr {training.lr:g}, momentum {training.momentum:g}, "
            f"weight decay {training.weight_decay:g}, head start {training.head_start:g}",
        ),
        *_trunk_rows(manifest),
        ("slots", f"{manifest.slots}: {len(named)} labelled, {manifest.slots - len(named)} free"),
        ("labels", ", ".join(named) or "none yet"),
        ("knows", _knows(opened)),
        *(
            (name, f"{file.bytes:,} bytes, {file.sha256[:12]}")
            for name, file in sorted(manifest.files.items())
        ),
        ("costs", str(manifest.measured or "not measured")),
        *((f"ops of {name}", ", ".join(ops)) for name, ops in sorted(manifest.ops.items())),
        ("made with", ", ".join(f"{k} {v}" for k, v in sorted(manifest.tools.items()))),
    ]
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        click.echo(f"{name:<{width}}  {value}")


def _knows(bundle: Bundle) -> str:
    from lrtflite.memory import MEMORY_LABELS

    from lrtflite.shipping import read_initial, taught_labels

    state = read_initial(bundle)
    if state is None:
        return "nothing yet: a new learner starts without a memory"
    return (
        f"{len(taught_labels(state))} classes from {state.meta['sessions']} session(s), with "
        f"{len(state.arrays[MEMORY_LABELS])} latents to replay"
    )


def _trunk_rows(manifest: Manifest) -> Iterator[tuple[str, str]]:
    """What a frozen network under the last layer has not."""
    training, layer = manifest.training, manifest.replay_layer
    if manifest.trains_trunk:
        which = "all" if manifest.train_depthwise else "all but depthwise kernels"
        yield "trunk", f"{which} above {layer} trains, lr {training.trunk_lr:g}"
    if manifest.trains_trunk or manifest.adapt_moments:
        above = f"rate {training.moment_rate:g} above {layer}, " if manifest.trains_trunk else ""
        adapts = f"rate {training.adapt_rate:g}" if manifest.adapt_moments else "frozen"
        yield "moments", f"{above}{adapts} below it"
