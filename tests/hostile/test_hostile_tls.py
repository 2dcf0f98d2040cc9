"""TLS that is not to be trusted, or is none: nothing is sent over it, nobody is accused, and it ends soon."""

from __future__ import annotations

import socket
import ssl
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
import trustme

from conformance.judging.run_start import discover_subjects
from conformance.judging.session import Session
from conformance.transport.config import TargetConfig
from conformance.transport.exchange import Exchange
from conformance.transport.http_client import HttpClient
from conformance.transport.settings import Settings
from conformance.transport.target import Target
from conformance.transport.unreachable import UnreachableError
from conformance.wire.request import Message
from tests.hostile.misbehaviours.rows import make_answer
from tests.support.scripted_server import Script, read_request, serve_scripts

PATIENCE = 1.5
SECRET = "s3cret-token"  # noqa: S105 - of no one
GET = Message("/v2", method="GET")
PAST = datetime.now(UTC) - timedelta(days=1)
Certify = Callable[[trustme.CA, ssl.SSLContext], None]


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def trusted(authority: trustme.CA, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("tls") / "ca.pem"
    authority.cert_pem.write_to_path(str(path))
    return str(path)


# --- servers ----------------------------------------------------------------------------------------------------------


def good(authority: trustme.CA, context: ssl.SSLContext) -> None:
    authority.issue_cert("127.0.0.1").configure_cert(context)


def expired(authority: trustme.CA, context: ssl.SSLContext) -> None:
    authority.issue_cert("127.0.0.1", not_before=PAST - timedelta(days=9), not_after=PAST).configure_cert(context)


def of_another_name(authority: trustme.CA, context: ssl.SSLContext) -> None:
    authority.issue_cert("other.example").configure_cert(context)


def of_an_unknown_authority(_: trustme.CA, context: ssl.SSLContext) -> None:
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)


def signed_by_itself(_: trustme.CA, context: ssl.SSLContext) -> None:
    own = trustme.CA()
    with own.cert_pem.tempfile() as cert, own.private_key_pem.tempfile() as key:
        context.load_cert_chain(cert, key)


def of_tls_1_0(authority: trustme.CA, context: ssl.SSLContext) -> None:
    good(authority, context)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # that it is old is the point
        context.set_ciphers("ALL:@SECLEVEL=0")
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1


def of_http_2_alone(authority: trustme.CA, context: ssl.SSLContext) -> None:
    good(authority, context)
    context.set_alpn_protocols(["h2"])


def speaking_tls(context: ssl.SSLContext, seen: list[bytes], connection: socket.socket) -> None:
    with suppress(OSError), context.wrap_socket(connection, server_side=True) as wrapped:
        while request := read_request(wrapped):
            seen.append(request)
            wrapped.sendall(make_answer(200, body=b"{}"))


def speaking_plain_http(seen: list[bytes], connection: socket.socket) -> None:
    seen.append(connection.recv(65536))
    connection.sendall(make_answer(400))


def stalling(seen: list[bytes], connection: socket.socket) -> None:
    seen.append(connection.recv(65536))
    connection.recv(1)


def ending(seen: list[bytes], connection: socket.socket) -> None:
    seen.append(connection.recv(65536))


def raising_the_alarm(seen: list[bytes], connection: socket.socket) -> None:
    seen.append(connection.recv(65536))
    connection.sendall(b"\x15\x03\x03\x00\x02\x02\x28")  # a fatal alert: handshake failure


@contextmanager
def over_https(script: Script) -> Iterator[str]:
    with serve_scripts(script) as url:
        yield url.replace("http://", "https://")


def under(authority: trustme.CA, certify: Certify, seen: list[bytes]) -> Script:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certify(authority, context)
    return partial(speaking_tls, context, seen)


# --- clients ----------------------------------------------------------------------------------------------------------


UNTRUSTED = (expired, of_another_name, of_an_unknown_authority, signed_by_itself)
BROKEN = (speaking_plain_http, stalling, ending, raising_the_alarm)


def settings_for(url: str, ca_file: str, *, insecure: bool = False) -> Settings:
    headers = (("Authorization", SECRET),)
    return Settings(url, headers, timeout=PATIENCE, ca_file=ca_file, insecure=insecure)


def send_get(settings: Settings) -> Exchange:
    return HttpClient(settings).send(GET, fresh=True)


@pytest.mark.parametrize("certify", UNTRUSTED)
def test_untrusted_certificate_gets_no_request(authority: trustme.CA, trusted: str, certify: Certify) -> None:
    seen: list[bytes] = []
    with over_https(under(authority, certify, seen)) as url:
        with pytest.raises(UnreachableError, match="certificate") as raised:
            send_get(settings_for(url, trusted))
        assert send_get(settings_for(url, trusted, insecure=True)).status == 200  # as the user has it
    assert raised.value.is_untrusted
    assert len(seen) == 1


@pytest.mark.parametrize("speak", BROKEN)
def test_server_without_tls_gets_no_request(trusted: str, speak: Callable[[list[bytes], socket.socket], None]) -> None:
    seen: list[bytes] = []
    started = time.monotonic()
    with over_https(partial(speak, seen)) as url:
        with pytest.raises(UnreachableError) as raised:
            send_get(settings_for(url, trusted))
        took = time.monotonic() - started
    assert not raised.value.is_untrusted
    assert took < 6 * PATIENCE
    assert SECRET.encode() not in b"".join(seen)


def test_old_tls_is_declined(authority: trustme.CA, trusted: str) -> None:
    seen: list[bytes] = []
    with over_https(under(authority, of_tls_1_0, seen)) as url, pytest.raises(UnreachableError):
        send_get(settings_for(url, trusted))
    assert not seen


@pytest.mark.parametrize("certify", [good, of_http_2_alone])
def test_what_can_be_trusted_is_asked_over_http_1(authority: trustme.CA, trusted: str, certify: Certify) -> None:
    seen: list[bytes] = []
    with over_https(under(authority, certify, seen)) as url:
        assert send_get(settings_for(url, trusted)).status == 200
    assert seen[0].startswith(b"GET /v2 HTTP/1.1\r\n")


@pytest.mark.parametrize("certify", UNTRUSTED)
def test_nobody_is_accused_for_a_certificate(authority: trustme.CA, trusted: str, certify: Certify) -> None:
    started = time.monotonic()
    with (
        over_https(under(authority, certify, [])) as url,
        Session(Target(Settings(url, timeout=PATIENCE, ca_file=trusted))) as session,
    ):
        _, nothing = discover_subjects(session)
        assert not session.target.answered
    assert nothing is not None
    assert nothing.text().startswith(f"cannot connect to {url}: ")
    assert time.monotonic() - started < 6 * PATIENCE


HINTS: dict[str, tuple[bool, str]] = {  # scheme -> whether the server speaks TLS, and what is suggested
    "http": (True, "try https://, if it speaks TLS"),
    "https": (False, "the server does not speak TLS: try http://"),
    "grpc": (True, "try grpcs://, if it speaks TLS"),
    "grpcs": (False, "the server does not speak TLS: try grpc://"),
}


@pytest.mark.parametrize("scheme", HINTS)
def test_another_scheme_is_suggested(authority: trustme.CA, scheme: str) -> None:
    speaks_tls, hint = HINTS[scheme]
    with serve_scripts(under(authority, good, []) if speaks_tls else partial(speaking_plain_http, [])) as served:
        url = served.replace("http", scheme)
        addresses = ("", url) if scheme.startswith("grpc") else (url,)
        with Session(Target(TargetConfig(timeout=PATIENCE).build_settings(*addresses))) as session:
            _, nothing = discover_subjects(session)
    assert nothing is not None
    assert hint in nothing.text()
