"""`lrtflite simulate`: what learning on the device will cost, and how well it works."""

from __future__ import annotations

from pathlib import Path

import click

from lrtflite.errors import LrtfliteError
from lrtflite_cli.cautions import caution
from lrtflite_cli.training_options import training_options


@click.command()
@click.argument("bundle", required=False, type=click.Path(path_type=Path))
@click.option(
    "--dataset",
    default="synthetic",
    show_default=True,
    help="synthetic, folder:PATH (one folder per class) or core50:PATH; settings after a ?.",
)
@click.option(
    "--protocol",
    type=click.Choice(["nic", "app"]),
    default="nic",
    show_default=True,
    help="nic: old and new classes mixed. app: the paper's app, 100 frames at 5 fps per new "
    "class, 8 epochs, memory 500.",
)
@click.option("--sessions", type=click.IntRange(min=1), help="Stop after so many.")
@click.option(
    "--replay-size", type=click.IntRange(min=0), help="Latents kept.", show_default="bundle's"
)
@click.option(
    "--policy",
    type=click.Choice(["algorithm1", "balanced"]),
    help="Which latents are kept.",
    show_default="bundle's; app: balanced",
)
@training_options(epochs="bundle's; app: 8", lr="bundle's", trunk_lr="bundle's")
@click.option("--threads", type=click.IntRange(min=1), default=1, show_default=True)
@click.option(
    "--runtime",
    type=click.Choice(["auto", "litert", "tflite"]),
    default="auto",
    show_default=True,
    help="ai-edge-litert or tflite-runtime.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option(
    "--first-classes", type=click.IntRange(min=1), help="In the first session.", show_default="10"
)
@click.option(
    "--visits", type=click.IntRange(min=1), help="Sessions per class.", show_default="2; app: 1"
)
@click.option(
    "--batch-frames",
    type=click.IntRange(min=1),
    help="Frames per class and session, at most.",
    show_default="all; app: 100",
)
@click.option("--json", "json_path", metavar="PATH", help="Write the results; - is stdout.")
@click.option("--report", "report_path", metavar="PATH", help="Write one HTML file with plots.")
def command(
    bundle: Path | None,
    dataset: str,
    protocol: str,
    sessions: int | None,
    replay_size: int | None,
    policy: str | None,
    epochs: int | None,
    lr: float | None,
    trunk_lr: float | None,
    threads: int,
    runtime: str,
    seed: int,
    first_classes: int | None,
    visits: int | None,
    batch_frames: int | None,
    json_path: str | None,
    report_path: str | None,
) -> None:
    """Let a simulated device learn, session by session.

    Prints accuracy on held-out frames, latency of each phase and peak RAM, measured in a process
    of its own that runs what a device would. Without BUNDLE it is a small demo bundle that comes
    with the package.
    """
    from lrtflite_firmware_sim import SimulateOptions, simulate
    from lrtflite_firmware_sim.deliver import STDOUT, Delivery
    from lrtflite_firmware_sim.summary import summary
    from lrtflite_firmware_sim.watcher import watch

    delivery = Delivery(json_path=json_path, report_path=report_path)
    delivery.check()
    options = SimulateOptions(
        dataset=dataset,
        protocol=protocol,
        sessions=sessions,
        replay_size=replay_size,
        policy=policy,
        epochs=epochs,
        lr=lr,
        trunk_lr=trunk_lr,
        threads=threads,
        runtime=runtime,
        seed=seed,
        first_classes=first_classes,
        visits=visits,
        batch_frames=batch_frames,
    )
    caution(replay_size=replay_size)
    try:
        result = simulate(bundle, options, watcher=watch())
    except KeyboardInterrupt:
        raise LrtfliteError("Interrupted; the device was stopped and nothing was written") from None
    written = delivery.write(result)
    click.echo(result.to_json() if json_path == STDOUT else summary(result) + "\n", nl=False)
    for path in written:
        click.echo(f"wrote {path}", err=True)
