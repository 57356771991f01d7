"""Options of `serve` that connect it with an MQTT broker."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lrtflite_cli.options.learner import all_of

if TYPE_CHECKING:
    from lrtflite_serve.mqtt.broker import Broker


def mqtt_options(command: Any) -> Any:
    """Add the options of a broker; none of them takes a password, which others could see."""
    return all_of(
        click.option(
            "--mqtt",
            metavar="HOST[:PORT]",
            help="MQTT broker, for home automation; Home Assistant finds the device there.",
        ),
        click.option(
            "--mqtt-user",
            metavar="NAME",
            help="User at the broker; the password is in LRTFLITE_MQTT_PASSWORD, or a file.",
        ),
        click.option(
            "--mqtt-password-file",
            metavar="FILE",
            type=click.Path(path_type=Path),
            help="File with the password of --mqtt-user.",
        ),
        click.option(
            "--mqtt-tls", is_flag=True, help="Connect to the broker with TLS (port 8883)."
        ),
        click.option(
            "--mqtt-ca",
            metavar="FILE",
            type=click.Path(path_type=Path),
            help="PEM certificate of the authority of the broker; implies --mqtt-tls.",
        ),
        click.option(
            "--mqtt-prefix",
            metavar="TOPIC",
            default="lrtflite",
            show_default=True,
            help="Start of the topics.",
        ),
    )(command)


def broker_of(given: dict[str, Any]) -> Broker | None:
    """Return the broker, or None; take its options out of `given`."""
    from lrtflite.errors import InputError
    from lrtflite_serve.mqtt.broker import PREFIX, Broker

    address = given.pop("mqtt")
    chosen = {name: given.pop(f"mqtt_{name}") for name in ("user", "password_file", "tls")}
    chosen |= {"authority": given.pop("mqtt_ca"), "prefix": given.pop("mqtt_prefix")}
    if address is not None:
        return Broker.of(address, **chosen)
    if any(value for name, value in chosen.items() if name != "prefix") or (
        chosen["prefix"] != PREFIX
    ):
        raise InputError("Expected --mqtt with the other options of a broker, got none", "add it")
    return None
