"""Help texts: defaults come from the tables, and every choice is explained."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from click.testing import CliRunner

from lrtflite.data import StreamOptions
from lrtflite.networks.architecture import NETWORKS
from lrtflite.replay.codecs import CODECS
from lrtflite.replay.policies import POLICIES
from lrtflite.tables.table import first_sentence
from lrtflite_cli.group import cli
from lrtflite_converters.request import defaults
from lrtflite_converters.request.defaults import SplitPoint, sgd_feeding, sgd_rates
from lrtflite_converters.request.options import SEED_MEMORY
from lrtflite_converters.request.source import Source
from lrtflite_converters.request.strategies import STRATEGIES, default_strategy
from lrtflite_firmware_sim import plan
from lrtflite_firmware_sim.rivals import RIVALS

HOST = ["tensorflow", "tf_keras", "tensorflow_model_optimization"]
NETWORK = NETWORKS[Source().network]
POOLED, DEEP = SplitPoint(NETWORK, NETWORK.pooled), SplitPoint(NETWORK, NETWORK.lowest_quick)


def raw_help(command: str) -> str:
    done = CliRunner().invoke(cli, [command, "--help"])
    assert done.exit_code == 0, done.output
    return done.output


def one_line(text: str) -> str:
    # Click breaks a line after a hyphen, too.
    return " ".join(text.split()).replace("- ", "-")


def helped(command: str) -> str:
    """Return the help of a command as one line."""
    return one_line(raw_help(command))


def option(command: str, name: str) -> str:
    """Return the help of one option of a command, as one line."""
    found = re.search(rf"^  {name} (.*?)(?=^  -|\Z)", raw_help(command), re.M | re.S)
    assert found is not None
    return one_line(found[1])


@pytest.mark.parametrize(
    ("name", "default"),
    [
        ("--replay-layer", f"{NETWORK.pooled} of {NETWORK.name}"),
        ("--network", NETWORK.name),
        ("--replay-size", f"({defaults.REPLAY_SIZE})"),
        ("--policy", f"({defaults.POLICY}; {defaults.REFIT_POLICY} for lda below conv6/sep)"),
        ("--codec", f"({defaults.CODEC})"),
        ("--seed-memory", f"{SEED_MEMORY}; x>=0"),
        ("--strategy", f"{default_strategy(POOLED)} at {NETWORK.pooled}"),
        ("--strategy", f"{default_strategy(DEEP)} where more than the last layer trains"),
        ("--epochs", f"{sgd_feeding(POOLED).epochs}; {sgd_feeding(DEEP).epochs} below"),
        ("--lr", f"{sgd_rates(POOLED)['lr'].value:g} x {defaults.MEASURED_FEATURES} / features"),
        ("--batch-size", f"{sgd_feeding(POOLED).batch_size} at {NETWORK.pooled}"),
        ("--batch-size", f"{sgd_feeding(DEEP).batch_size} below it"),
        ("--new-per-batch", f"{sgd_feeding(POOLED).new_per_batch} at {NETWORK.pooled}"),
        ("--new-per-batch", f"{sgd_feeding(DEEP).new_per_batch} below it"),
    ],
)
def test_convert_shows_the_defaults_of_the_tables(name: str, default: str) -> None:
    said = option("convert", name)
    assert default in said.partition("[default: ")[2]


@pytest.mark.parametrize(
    ("name", "default"),
    [
        ("--replay-size", plan.APP_REPLAY_SIZE),
        ("--policy", plan.APP_POLICY),
        ("--epochs", plan.APP_EPOCHS),
        ("--batch-frames", plan.APP_FRAMES),
        ("--visits", plan.APP_VISITS),
    ],
)
def test_simulate_shows_the_defaults_of_the_app(name: str, default: object) -> None:
    said = option("simulate", name).partition("[default: ")[2]
    assert f"app: {default})" in said


def test_simulate_shows_the_defaults_of_the_stream() -> None:
    stream = StreamOptions()
    assert f"[default: ({stream.first_classes})" in option("simulate", "--first-classes")
    assert f"[default: ({stream.visits};" in option("simulate", "--visits")
    protocols = option("simulate", "--protocol")
    assert protocols.startswith(f"[{'|'.join(plan.PROTOCOLS)}]")
    for said in (
        f"{plan.APP_FRAMES} frames at {plan.APP_FPS} fps",
        f"{plan.APP_EPOCHS} epochs",
        f"memory {plan.APP_REPLAY_SIZE}",
    ):
        assert said in protocols


def test_simulate_explains_its_rivals() -> None:
    said = option("simulate", "--rival")
    assert said.startswith(f"[{'|'.join(RIVALS)}]")
    assert "in the simulator only, not on a device" in said
    for name, rival in RIVALS.items():
        assert f"{name}: {first_sentence(rival)}" in said


@pytest.mark.parametrize("command", ["convert", "simulate", "teach"])
def test_policies_and_latents_are_explained(command: str) -> None:
    text = helped(command)
    for name, policy in POLICIES.items():
        assert f"{name}: {first_sentence(policy)}" in text
    assert "Latents that the replay memory keeps, to be trained with again later" in text


def test_convert_explains_its_choices() -> None:
    text = helped("convert")
    for name, strategy in STRATEGIES.items():
        assert f"{name}: {strategy.summary}" in option("convert", "--strategy")
    for name, codec in CODECS.items():
        assert f"{name}: {first_sentence(codec)}" in option("convert", "--codec")
    assert "--train-depthwise / --freeze-depthwise" in text
    assert "Layer whose output for a frame, a latent, is stored and replayed" in text
    assert "(running means and variances)" in option("convert", "--adapt-moments")


def test_convert_without_tensorflow(
    run_cli: Callable[..., Any], error_of: Callable[..., str]
) -> None:
    done = run_cli("convert", "--help", lacking=HOST)
    assert (done.returncode, done.stderr) == (0, "")
    assert "--replay-layer" in done.stdout
    assert "[host]'" in error_of("convert", lacking=HOST)
