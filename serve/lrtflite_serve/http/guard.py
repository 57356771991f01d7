"""The guard in front of every request: who may ask, and what a browser may do with the answer.

A page of another site can send requests to this server. The Host header shows one that reached it
by DNS rebinding, where Origin and Host agree. Origin and Sec-Fetch-Site show all others. Beyond
loopback, a token is required as well. There are no CORS headers and no WebSockets.
"""

from __future__ import annotations

import hmac
import ipaddress
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lrtflite_serve.http.answering import Refused, error_json, response_of

CSP = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self' 'wasm-unsafe-eval'",
        "style-src 'self'",
        "img-src 'self' blob: data:",
        "media-src 'self' blob:",
        "connect-src 'self'",
        "worker-src 'self'",
        "manifest-src 'self'",
        "font-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS = {
    "content-security-policy": CSP,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "permissions-policy": "camera=(self)",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "x-frame-options": "DENY",
}
LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
# Values of Sec-Fetch-Site of requests by this page, or typed by a user.
OWN_SITES = frozenset({"same-origin", "none"})
# Wrong tokens of one address that are answered, and seconds until they are forgotten.
MAX_WRONG, FORGET_WRONG, MAX_ADDRESSES = 10, 60.0, 1024


# A host and its port: an address of IPv6 in brackets, or a name or an address of IPv4.
_HOST = re.compile(r"(?:\[([0-9a-fA-F:.]+)\]|([0-9a-zA-Z._-]+))(?::[0-9]{1,5})?", re.ASCII)
# Bits of an IPv6 address that all addresses of one client may share.
NETWORK = 64


class WrongTokens:
    """Count the wrong tokens of each address, and of each /64 network of IPv6."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._wrong: OrderedDict[str, tuple[int, float]] = OrderedDict()

    def check(self, address: str) -> None:
        """Refuse an address with too many wrong tokens, whatever it sends now."""
        count, last = self._wrong.get(_network(address), (0, 0.0))
        if count >= MAX_WRONG and self._clock() - last < FORGET_WRONG:
            raise Refused(429, "Too many wrong tokens", f"wait {FORGET_WRONG:g} s")

    def add(self, address: str) -> None:
        address = _network(address)
        count, last = self._wrong.pop(address, (0, 0.0))
        now = self._clock()
        count = 0 if now - last >= FORGET_WRONG else count
        self._wrong[address] = count + 1, now
        while len(self._wrong) > MAX_ADDRESSES:
            self._wrong.popitem(last=False)


class Guard:
    """Check each request, then pass it on; add headers to each answer."""

    def __init__(
        self, app: ASGIApp, *, names: Iterable[str] = (), token: str | None = None
    ) -> None:
        """Allow `names` as hosts besides loopback and the address that was asked.

        `token` is required for everything under /api, unless None.
        """
        self._app, self._token = app, token
        self._names = LOOPBACK_NAMES | {name.lower().rstrip(".") for name in names}
        self._wrong = WrongTokens()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        adds_headers = _with_headers(send)
        try:
            self._check(scope, _headers_of(scope))
        except Refused as refused:
            response = response_of(refused)
            if refused.status == 401:
                response.headers["www-authenticate"] = "Bearer"
            response.headers["connection"] = "close"
            await response(scope, receive, adds_headers)
            return
        except ValueError:
            refusal = error_json(400, "Refused", "Expected plain headers, got other bytes")
            await refusal(scope, receive, adds_headers)
            return
        await self._app(scope, receive, adds_headers)

    def _check(self, scope: Scope, headers: Mapping[str, list[str]]) -> None:
        host = self._own_host(scope, headers.get("host", []))
        if "transfer-encoding" in headers and "content-length" in headers:
            raise Refused(400, "Expected one length of the body, got two", "send one of them")
        if "upgrade" in headers:
            raise Refused(400, "This server has no WebSockets", "use plain HTTP")
        if scope["method"] not in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"):
            raise Refused(405, f"Cannot answer {scope['method'][:20]}", "use another method")
        is_api = scope["path"] == "/api" or scope["path"].startswith("/api/")
        if not is_api:
            return
        for site in headers.get("sec-fetch-site", []):
            if site not in OWN_SITES:
                raise Refused(403, "Expected a request of this page, got one of another site")
        own = f"{scope['scheme']}://{host}".lower()
        for origin in headers.get("origin", []):
            if origin.lower() != own:
                raise Refused(403, f"Expected a request of {own}, got one of another origin")
        self._check_token(scope, headers.get("authorization", []))

    def _own_host(self, scope: Scope, hosts: list[str]) -> str:
        """Return the Host header if it names this server, or refuse the request."""
        if len(hosts) != 1:
            raise Refused(403, "Expected one Host header", "use a browser, or set it")
        name = _name_of(hosts[0])
        own = (*self._names, _address(scope["server"]))
        if name is not None and (name in own or name.endswith(".localhost")):
            return hosts[0]
        raise Refused(
            403,
            "Expected the name or address of this server as Host, got another one",
            "start with `lrtflite serve --name` to allow a name",
        )

    def _check_token(self, scope: Scope, given: list[str]) -> None:
        if self._token is None:
            return
        address = scope["client"][0] if scope.get("client") else ""
        self._wrong.check(address)
        if not given:
            raise Refused(401, "This server requires a token", "open the address that it printed")
        kind, _, token = given[0].partition(" ")
        wanted = self._token.encode()
        is_right = hmac.compare_digest(token.strip().encode(errors="replace"), wanted)
        if kind.lower() != "bearer" or len(given) > 1 or not is_right:
            self._wrong.add(address)
            raise Refused(401, "The token is wrong", "open the address that the server printed")


def _headers_of(scope: Scope) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in scope["headers"]:
        found.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
    return found


def _name_of(host: str) -> str | None:
    """Return the name or address in a Host header, without its port and brackets."""
    found = _HOST.fullmatch(host)
    return None if found is None else (found[1] or found[2]).lower().rstrip(".")


def _network(address: str) -> str:
    """Return an address of IPv4, the network of one of IPv6, or another text as it is."""
    plain = _address((address, 0))
    if plain is None or ":" not in plain:
        return plain or address
    return str(ipaddress.ip_network((plain, NETWORK), strict=False))


def _address(server: tuple[str, int] | None) -> str | None:
    """Return the address of this machine at which a request arrived."""
    if server is None:
        return None
    try:
        address = ipaddress.ip_address(server[0].partition("%")[0])
    except ValueError:
        return None
    mapped = getattr(address, "ipv4_mapped", None)
    return str(mapped or address)


def _with_headers(send: Send) -> Send:
    async def wrapped(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return wrapped
