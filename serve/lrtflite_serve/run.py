"""Run a service until it is asked to stop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path

from lrtflite import Learner, quiet_stderr
from lrtflite.errors import InputError
from lrtflite.system.extras import require
from lrtflite_serve.addresses import host_name, is_loopback, listening, shown_host
from lrtflite_serve.secret import kept_token
from lrtflite_serve.settings import Settings


@dataclass(frozen=True)
class Started:
    """A server that answers at `address`; `link` has the token too, for a browser."""

    address: str
    token: str | None

    @property
    def link(self) -> str:
        return self.address if self.token is None else f"{self.address}#token={self.token}"


def serve(
    settings: Settings,
    *,
    on_start: Callable[[Started], None] = lambda started: None,
    say: Callable[[str], None] = lambda line: None,
    stopping: threading.Event | None = None,
) -> None:
    """Serve until `stopping` is set; raise LrtfliteError if the service cannot start.

    `say` gets a line when a broker is lost or found again, and about states that were set aside.

    The port, the certificate and the camera come before the state, so that a failure leaves no new
    state behind.
    """
    require("starlette", "uvicorn", *(("paho",) if settings.mqtt is not None else ()))
    from lrtflite_serve.http.api import Api
    from lrtflite_serve.http.application import application
    from lrtflite_serve.http.server import run_server
    from lrtflite_serve.mqtt.start import linked
    from lrtflite_serve.service.device import DeviceCamera
    from lrtflite_serve.service.service import Service
    from lrtflite_serve.transfers.swapping import recover, set_aside

    settings = replace(settings, names=tuple(map(host_name, settings.names)))
    with ExitStack() as stack:
        listener = stack.enter_context(closing(listening(settings.host, settings.port)))
        certificate = _certificate(settings, shown_host(listener))
        is_local = is_loopback(listener)
        token = None if is_local else kept_token(settings.beside("token"))
        camera = None if settings.camera is None else DeviceCamera(settings.camera)
        if camera is not None:
            stack.callback(camera.close)
        state = Path(settings.state).absolute()
        recover(state)
        with quiet_stderr():
            learner = Learner.open_with(settings.bundle, settings.state, settings.options)
        stack.callback(learner.close)
        service = Service(learner, settings, camera, say=say)
        stack.callback(service.close)
        secure = certificate is not None or is_local
        api = Api(service, token_required=token is not None, secure=secure)
        stack.callback(api.close)
        if earlier := set_aside(state):
            names = ", ".join(path.name for path in earlier)
            say(f"Earlier states are in {state.parent}: {names}; delete those you do not need")
        scheme = "http" if certificate is None else "https"
        address = f"{scheme}://{shown_host(listener)}:{listener.getsockname()[1]}/"
        if settings.mqtt is not None:
            link = linked(service, settings.mqtt, url=None if is_local else address, say=say)
            stack.callback(link.close)
        asyncio.run(
            run_server(
                application(api, names=(settings.host, *settings.names), token=token),
                api,
                listener,
                certificate=certificate,
                on_start=lambda: on_start(Started(address, token)),
                stopping=stopping or threading.Event(),
            )
        )


def _certificate(settings: Settings, host: str) -> tuple[Path, Path] | None:
    """Return the files of the certificate and its key, or None without TLS."""
    from lrtflite_serve.http.certificate import check_certificate, own_certificate

    if settings.certificate is not None or settings.key is not None:
        if settings.certificate is None or settings.key is None:
            raise InputError(
                "Expected a certificate and its key, got one of them", "give --cert and --key"
            )
        check_certificate(settings.certificate, settings.key)
        return settings.certificate, settings.key
    if not settings.tls:
        return None
    names = ["localhost", "127.0.0.1", host.strip("[]"), *settings.names]
    return own_certificate(settings.beside("tls"), list(dict.fromkeys(names)))
