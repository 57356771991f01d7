"""Files beside a state that only their owner may read: the token, the key of the certificate."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from lrtflite.errors import InputError, LrtfliteError
from lrtflite_serve.addresses import host_name
from lrtflite_serve.kept_text import kept_text
from lrtflite_serve.secret import kept_token

GIVEN = "a-token-of-somebody-else"


def test_a_token_is_made_once(tmp_path: Path) -> None:
    path = tmp_path / "state.token"
    token = kept_token(path)
    assert len(token) == 24
    assert path.stat().st_mode & 0o777 == 0o600
    assert kept_token(path) == token


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o602])
def test_a_token_that_others_can_read_or_write_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "state.token"
    path.write_text(GIVEN)
    path.chmod(mode)
    with pytest.raises(LrtfliteError, match="owner only") as caught:
        kept_token(path)
    assert "chmod 600" in str(caught.value)
    path.chmod(0o600)
    assert kept_token(path) == GIVEN


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file away")
def test_a_token_of_another_user_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "state.token"
    path.write_text(GIVEN)
    path.chmod(0o600)
    os.chown(path, 12345, -1)
    with pytest.raises(LrtfliteError, match="owner only"):
        kept_token(path)


def test_a_link_is_neither_read_nor_followed(tmp_path: Path) -> None:
    path, target = tmp_path / "state.token", tmp_path / "elsewhere"
    path.symlink_to(target)
    for content in (None, GIVEN):
        if content is not None:
            target.write_text(content)
            target.chmod(0o600)
        with pytest.raises(LrtfliteError, match="link"):
            kept_token(path)
    assert target.read_text() == GIVEN


@pytest.mark.parametrize("content", [b"", b"short", b"\xff" * 20, b"a" * 2000, b"two words" * 3])
def test_another_text_is_no_token(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "state.token"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(LrtfliteError, match=r"remove|copy"):
        kept_token(path)
    assert path.read_bytes() == content


def test_a_text_that_is_no_secret_may_be_read_by_all(tmp_path: Path) -> None:
    path, form = tmp_path / "state.mqtt", re.compile("name-[0-9]")
    assert kept_text(path, form, lambda: "name-1", what="a name") == "name-1"
    path.chmod(0o644)
    assert kept_text(path, form, lambda: "name-2", what="a name") == "name-1"


@pytest.fixture
def made(tmp_path: Path) -> tuple[Path, Path]:
    pytest.importorskip("cryptography", reason="needs the extra sign")
    from lrtflite_serve.http.certificate import own_certificate

    return own_certificate(tmp_path / "tls", ["localhost"])


def again(made: tuple[Path, Path]) -> bool:
    """Return whether the same certificate is used again, after checking that it works."""
    from lrtflite_serve.http.certificate import check_certificate, own_certificate

    before = made[0].read_bytes()
    certificate, key = own_certificate(made[0].parent, ["localhost"])
    check_certificate(certificate, key)
    return certificate.read_bytes() == before


def test_a_certificate_without_its_key_is_replaced(made: tuple[Path, Path], tmp_path: Path) -> None:
    from lrtflite_serve.http.certificate import own_certificate

    assert again(made)
    # Killed between the two files: the key is new, the certificate is not.
    _, other = own_certificate(tmp_path / "other", ["localhost"])
    made[1].write_bytes(other.read_bytes())
    assert not again(made)
    made[1].write_text("no key")
    assert not again(made)


def test_a_certificate_of_another_form_is_replaced(made: tuple[Path, Path]) -> None:
    import datetime

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization

    key = serialization.load_pem_private_key(made[1].read_bytes(), None)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "without names")])
    now = datetime.datetime.now(datetime.timezone.utc)
    bare = x509.CertificateBuilder().subject_name(name).issuer_name(name)
    bare = bare.public_key(key.public_key()).serial_number(1).not_valid_before(now)  # type: ignore[arg-type]
    signed = bare.not_valid_after(now + datetime.timedelta(days=90)).sign(key, hashes.SHA256())  # type: ignore[arg-type]
    made[0].write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    assert not again(made)


def test_a_key_that_others_can_read_is_refused(made: tuple[Path, Path]) -> None:
    made[1].chmod(0o644)
    with pytest.raises(LrtfliteError, match="owner only"):
        again(made)


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("Board.LAN.", "board.lan"),
        ("küche.local", "xn--kche-0ra.local"),
        ("192.0.2.1", "192.0.2.1"),
        ("[2001:DB8::1]", "2001:db8::1"),
        ("my_board", "my_board"),
    ],
)
def test_names_of_a_host(given: str, name: str) -> None:
    assert host_name(given) == name


@pytest.mark.parametrize(
    "given",
    ["", ".", "http://board", "board:8765", "a b", "*.lan", "a/b", "a..b", "x" * 64],
)
def test_what_is_no_name_of_a_host(given: str) -> None:
    with pytest.raises(InputError, match="--name"):
        host_name(given)
