"""`lrtflite inspect`: show the contents of a bundle."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from lrtflite.arguments import printable
from lrtflite.bundle.feeding import MAX_STEPS
from lrtflite.counted import classes_text, counted
from lrtflite_cli.terminal.output import say, say_json

if TYPE_CHECKING:
    from lrtflite.bundle.bundle import Bundle
    from lrtflite.bundle.feeding import Feeding
    from lrtflite.bundle.manifest import Manifest


@click.command()
@click.argument("bundle", type=click.Path())
@click.option("--json", "as_json", is_flag=True, help="Print the manifest as JSON.")
def command(bundle: str, as_json: bool) -> None:
    """Show the contents of BUNDLE, after a check of its files against their hashes.

    The network is split at its replay layer. A latent is the output of that layer for one frame.
    The layers above it, the head, train on the device. The replay memory keeps latents of
    earlier sessions, so that the device trains with them again when it learns something new. Rates
    are the numbers that training takes; --rate of `teach` and `simulate` sets them by name.
    """
    from lrtflite.bundle.bundle import Bundle
    from lrtflite.contract.signatures import FEATURES, HEAD, describe_signatures

    opened = Bundle.open(bundle)
    manifest = opened.manifest
    if as_json:
        say_json(manifest.to_json())
        return
    shape = " x ".join(map(str, manifest.latent_shape))
    feeding = manifest.feeding
    rows = [
        ("network", f"{manifest.network}, {manifest.backbone}"),
        ("frames", f"{manifest.input_size} x {manifest.input_size} RGB, uint8"),
        ("replay layer", manifest.layers),
        ("latent", f"{shape} {manifest.latent_dtype}, {manifest.latent_bytes:,} bytes"),
        (
            "replay memory",
            f"{manifest.replay_size} latents by default, {manifest.policy}, {manifest.codec}",
        ),
        ("strategy", f"{manifest.strategy}, {_trains(manifest)}"),
        *([] if manifest.unknown is None else [("unknown below", f"{manifest.unknown:g}")]),
        (
            "mini-batch",
            f"{feeding.batch_size} patterns, at most {feeding.new_per_batch} of them new; "
            + ("the rest is replayed" if feeding.replays else "nothing is replayed"),
        ),
        ("training", f"{counted(feeding.epochs, 'epoch')}, {_steps(feeding)}"),
        *(
            (f"rate {name}", f"{rate.value:g}" + (f" ({rate.meaning})" if rate.meaning else ""))
            for name, rate in manifest.rates.items()
        ),
        *(
            (f"signatures of {file.path.name}", describe_signatures(name, file))
            for name, file in ((FEATURES, opened.features), (HEAD, opened.head))
        ),
        *_labels(manifest),
        ("knows", _knows(opened)),
        *(
            (name, f"{file.bytes:,} bytes, {file.sha256[:12]}")
            for name, file in sorted(manifest.files.items())
        ),
        *_quantisation(manifest),
        ("costs", str(manifest.measured or "not measured")),
        *((f"ops of {name}", ", ".join(ops)) for name, ops in sorted(manifest.ops.items())),
        ("made with", ", ".join(f"{k} {v}" for k, v in sorted(manifest.tools.items()))),
    ]
    _print(rows)


def _labels(manifest: Manifest) -> list[tuple[str, str]]:
    from lrtflite.labels import label_warnings

    named = [label for label in manifest.labels if label is not None]
    return [
        ("slots", f"{manifest.slots}: {len(named)} labelled, {manifest.slots - len(named)} free"),
        ("labels", ", ".join(named) or "none yet"),
        *(("note", warning) for warning in label_warnings(manifest.labels)),
    ]


def _quantisation(manifest: Manifest) -> list[tuple[str, str]]:
    found = manifest.quantisation
    if found is None:
        return []
    steps = f"(latent - {found.zero_point}) x {found.scale:g}".replace("- -", "+ ")
    return [("quantisation", str(found)), ("value of a latent", steps)]


def _print(rows: list[tuple[str, str]]) -> None:
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        say(f"{printable(name):<{width}}  {printable(value)}")


def _knows(bundle: Bundle) -> str:
    from lrtflite.state.initial import labels_of, read_initial

    state = read_initial(bundle)
    if state is None:
        return "nothing yet: a new learner starts with an empty memory"
    return (
        f"{classes_text(len(labels_of(state)))} from {counted(state.meta.sessions, 'session')}, "
        f"with {counted(len(state.memory), 'latent')} to replay"
    )


def _steps(feeding: Feeding) -> str:
    if feeding.least_steps == feeding.most_steps:
        return f"{feeding.least_steps} steps"
    most = f", at most {feeding.most_steps}" if feeding.most_steps < MAX_STEPS else ""
    return f"at least {feeding.least_steps} steps{most}{_extra(feeding)}"


def _extra(feeding: Feeding) -> str:
    if not feeding.extra_steps:
        return ""
    return (
        f"; up to {feeding.extra_steps} extra steps, while the mean loss of a pass is "
        f"{feeding.enough_loss:g} or more"
    )


def _trains(manifest: Manifest) -> str:
    """Describe the layers that learn on the device."""
    layer = manifest.replay_layer
    if not manifest.trains_trunk:
        above = "the last layer learns"
    else:
        which = "all" if manifest.train_depthwise else "all but depthwise kernels"
        above = f"{which} above {layer} learns"
    return f"{above}, moments below {layer} adapt" if manifest.adapt_moments else above
