"""A self-made certificate for the local network, kept beside the state and used again."""

from __future__ import annotations

import datetime
import ipaddress
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from lrtflite.errors import LrtfliteError
from lrtflite.files.atomic import write_atomic, writing
from lrtflite.system.extras import missing
from lrtflite_serve.kept_text import check_private

DAYS = 800
# Days before its end at which a certificate is replaced.
EARLY = 30


def own_certificate(folder: Path, names: Sequence[str]) -> tuple[Path, Path]:
    """Return the files of a certificate for these names and its key; make them if necessary."""
    try:
        from cryptography import x509
    except ImportError:
        raise missing("cryptography") from None
    certificate, key = folder / "cert.pem", folder / "key.pem"
    if key.is_file() and certificate.is_file():
        check_private(key)
        with suppress(OSError, ValueError, x509.ExtensionNotFound, LrtfliteError):
            found = x509.load_pem_x509_certificate(certificate.read_bytes())
            check_certificate(certificate, key)
            if _is_valid(found, names):
                return certificate, key
        # A new one replaces it.
    with writing(key):
        folder.mkdir(parents=True, exist_ok=True)
        os.chmod(folder, 0o700)
        made, secret = _made(names)
        write_atomic(key, secret, mode=0o600)
        write_atomic(certificate, made, mode=0o644)
    return certificate, key


def _is_valid(found: Any, names: Sequence[str]) -> bool:
    from cryptography import x509

    early = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=EARLY)
    if found.not_valid_after_utc < early:
        return False
    extension = found.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    listed = {str(each.value) for each in extension.value}
    return set(names) <= listed


def _made(names: Sequence[str]) -> tuple[bytes, bytes]:
    """Return a certificate and its key, in PEM."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "lrtflite serve")])
    now = datetime.datetime.now(datetime.timezone.utc)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=DAYS))
        .add_extension(x509.SubjectAlternativeName([_listed(each) for each in names]), False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), True)
        .sign(key, hashes.SHA256())
    )
    secret = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return made.public_bytes(serialization.Encoding.PEM), secret


def _listed(name: str) -> Any:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def check_certificate(certificate: Path, key: Path) -> None:
    """Raise LrtfliteError unless this certificate and key can be used together."""
    import ssl

    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, _no_password)
    except (OSError, ValueError) as error:  # an SSLError is an OSError
        why = getattr(error, "strerror", None) or str(error)
        raise LrtfliteError(
            f"Cannot use the certificate {certificate} with the key {key}: {why}",
            "give a PEM certificate and its key without a password, or --tls",
        ) from error


def _no_password() -> str:
    raise ValueError("the key has a password")
