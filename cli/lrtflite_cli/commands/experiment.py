"""`lrtflite experiment`: run a grid of simulations from a plan file."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from lrtflite.errors import InputError, LrtfliteError
from lrtflite_cli.terminal.interrupts import raising
from lrtflite_cli.terminal.output import say


@click.command()
@click.argument("plan")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Folder for the results, the bundles and the latents. A second call with the same folder "
    "runs only the cells that have not run.",
)
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    show_default="number of cores",
    help="Cells that run at the same time on this machine, one thread each.",
)
@click.option(
    "--scheduler",
    metavar="ADDRESS",
    help="Run the cells on a Dask cluster: the address of its scheduler, such as "
    "tcp://10.0.0.1:8786, or local to start a cluster of --workers here.",
)
@click.option("--dry-run", is_flag=True, help="List the cells and run nothing.")
@click.option(
    "--estimate",
    is_flag=True,
    help="Run one cell of each kind, and print how long the others will take.",
)
@click.option(
    "--yes",
    is_flag=True,
    help="Allow more than 10,000 cells, and a folder with results of other versions.",
)
@click.option(
    "--set",
    "settings",
    metavar="NAME=VALUE",
    multiple=True,
    help="Replace an option or an axis of the plan, such as dataset=core50:PATH. Several values of "
    "one name make an axis.",
)
@click.option(
    "--curves",
    metavar="ZIP",
    type=click.Path(path_type=Path),
    help="The accuracy curves that CORe50's authors published, drawn next to ours for the same "
    "benchmark.",
)
@click.option("--init", is_flag=True, help="Write a commented plan to PLAN, and run nothing.")
def command(
    plan: str,
    out: Path | None,
    workers: int | None,
    scheduler: str | None,
    dry_run: bool,
    estimate: bool,
    yes: bool,
    settings: tuple[str, ...],
    curves: Path | None,
    init: bool,
) -> None:
    """Run a grid of simulations from a plan file.

    PLAN is a TOML file, or a table or figure of the paper: paper:memory, paper:openloris,
    paper:rehearsal, paper:strategies, paper:summary or paper:trade-off. Its names are the options
    of `lrtflite simulate` and `lrtflite convert`: options with one value under [fixed], and axes
    with a list of values under [grid]. Each combination is a cell, which is one run. Bundles are
    converted once; the latents of one network, replay layer and data set are extracted once.

    Everything is checked before any work starts. Each cell's results are a file under
    DIR/cells as soon as it is done. Interrupted runs go on where they stopped. At the end,
    DIR/results.html shows figures and tables; the first table is printed.
    """
    from lrtflite_firmware_sim.experiment import running
    from lrtflite_firmware_sim.experiment.cells import cells_of
    from lrtflite_firmware_sim.experiment.plan_file import read_plan, with_settings
    from lrtflite_firmware_sim.experiment.template import write_template
    from lrtflite_firmware_sim.experiment.watching import watch
    from lrtflite_firmware_sim.experiment.workers import choose_workers
    from lrtflite_firmware_sim.experiment_results.writing import check_report, write_results

    if init:
        write_template(plan)
        say(plan)
        say(f"Next: {shlex.join(['lrtflite', 'experiment', plan, '--out', 'results'])}", err=True)
        return
    if out is None and not dry_run:
        raise InputError("Expected --out DIR, got none", "name a folder for the results")
    with raising():
        chosen = with_settings(read_plan(plan), settings)
        check_report(chosen, curves=curves)
        if out is None:
            say("\n".join(running.describe(cells_of(chosen, yes=yes))))
            return
        checked = running.check_experiment(chosen, out, yes=yes)
        if dry_run:
            say("\n".join(running.describe(checked.cells)))
            return
        watcher = watch()
        staff = choose_workers(out, count=workers, scheduler=scheduler, note=watcher.note)
        if estimate:
            found = running.estimate_experiment(checked, workers=staff, watcher=watcher)
            for line in running.estimate_lines(found):
                say(line)
            return
        finished = running.run_experiment(checked, workers=staff, watcher=watcher)
        say(write_results(out, curves=curves))
    if finished.failed:
        raise LrtfliteError(f"{finished}: {finished.failed[0]}", f"see {out}/cells")
    say(f"{out}")
    say(f"{finished}", err=True)
