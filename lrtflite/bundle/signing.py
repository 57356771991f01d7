"""Sign bundles, and check signatures: Ed25519 over the manifest, which has all digests."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from lrtflite.errors import BundleError, InputError, NotRegular
from lrtflite.files.atomic import write_atomic, writing
from lrtflite.files.reading import read_whole
from lrtflite.system.extras import require

MANIFEST_FILE, SIGNATURE_FILE = "manifest.json", "manifest.sig"
SIGNATURE_BYTES = 64
# Bytes signed before those of the manifest, so that no other signature can pass as this one.
CONTEXT = b"lrtflite bundle\n"
_MAX_KEY, _MAX_MANIFEST = 1 << 14, 1 << 22


def make_keys(private: Path, public: Path) -> None:
    """Write a new pair of keys as PEM files; raise InputError if one of the files exists."""
    serialization, ed25519 = _crypto()
    for path in (private, public):
        if os.path.lexists(path):
            raise InputError(
                f"Expected a new file for a key, got {path}, which exists", "choose another"
            )
    key = ed25519.Ed25519PrivateKey.generate()
    secret = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    open_one = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    with writing(private):
        # Nobody else may read it at any moment.
        write_atomic(private, secret, mode=0o600)
    try:
        with writing(public):
            write_atomic(public, open_one)
    except BaseException:
        private.unlink()  # half a pair is useless
        raise


def sign_bundle(bundle: Path, key: Path) -> Path:
    """Sign the manifest of a bundle with a private key; return the signature's file."""
    content = _read(bundle / MANIFEST_FILE, _MAX_MANIFEST, "a bundle's manifest")
    signature = _load(key, private=True).sign(CONTEXT + content)
    path = bundle / SIGNATURE_FILE
    with writing(path):
        write_atomic(path, signature)
    return path


def check_signature(bundle: Path, manifest: bytes, key: Path) -> None:
    """Raise BundleError unless the bundle has a signature of these bytes by this public key."""
    public = _load(key, private=False)
    from cryptography.exceptions import InvalidSignature

    path = bundle / SIGNATURE_FILE
    if not os.path.lexists(path):
        raise BundleError(
            f"Expected a signed bundle, got {bundle} without {SIGNATURE_FILE}",
            "sign it with: lrtflite sign, or get it from its maker again",
        )
    signature = _read(path, SIGNATURE_BYTES, f"a signature of {SIGNATURE_BYTES} bytes")
    try:
        public.verify(signature, CONTEXT + manifest)
    except InvalidSignature as error:
        raise BundleError(
            f"Expected a signature of {bundle} by the key {key}, got another one",
            "get the bundle from its maker again, or give its maker's key",
        ) from error


def _load(path: Path, *, private: bool) -> Any:
    serialization, ed25519 = _crypto()
    what = "a private key" if private else "a public key"
    # The user names the file of a key, which may be a link.
    content = _read(Path(os.path.realpath(path)), _MAX_KEY, what)
    try:
        if private:
            found = serialization.load_pem_private_key(content, password=None)
        else:
            found = serialization.load_pem_public_key(content)
    except (ValueError, TypeError) as error:
        raise InputError(
            f"Expected {what} in {path}, got something else", "make a pair with: lrtflite keygen"
        ) from error
    kind = ed25519.Ed25519PrivateKey if private else ed25519.Ed25519PublicKey
    if not isinstance(found, kind):
        raise InputError(
            f"Expected {what} of Ed25519 in {path}, got another kind",
            "make a pair with: lrtflite keygen",
        )
    return found


def _read(path: Path, most: int, what: str) -> bytes:
    try:
        return read_whole(path, most=most)
    except NotRegular as error:
        raise InputError(
            f"Expected {what} in {path}, got something else", "check the path"
        ) from error
    except OSError as error:
        raise InputError(
            f"Expected {what} in {path}, got: {error.strerror}", "check the path"
        ) from error


def _crypto() -> tuple[Any, Any]:
    """Import the package `cryptography`, or raise MissingExtra."""
    require("cryptography")
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ed25519

    return serialization, ed25519
