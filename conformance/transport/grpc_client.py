"""Makes gRPC calls: bytes in, bytes out, a deadline on each, a connection of its own after anything that broke.

Messages go through as bytes, so that an answer that is no message is evidence like any other. A status that the client
made up itself (nothing listens, the connection broke, the deadline passed) is no answer of the server; gRPC tells the
two apart by the words of the status alone.

TLS verifies the server unless the user asks for `insecure`. gRPC cannot leave that out, so with `insecure` the
certificate that the server shows is fetched first and then taken for the only one that is trusted, under the name that
it carries.
"""

from __future__ import annotations

import os
import re
import ssl
import time
from contextlib import suppress
from dataclasses import replace
from typing import Any

from conformance.transport.exchange import Exchange, FailureKind, TransportFailure
from conformance.transport.http_client import USER_AGENT
from conformance.transport.settings import GrpcAddress, Settings
from conformance.transport.unreachable import Unreachable, is_about_trust
from conformance.wire.request import Message

LARGEST = 256 * 1024 * 1024  # bytes of a message, in either direction

# The HTTP status that stands for a code, as google.rpc.Code maps them: what is 400 and above is a refusal.
HTTP_STATUS = {
    "OK": 200,
    "CANCELLED": 499,
    "UNKNOWN": 500,
    "INVALID_ARGUMENT": 400,
    "DEADLINE_EXCEEDED": 504,
    "NOT_FOUND": 404,
    "ALREADY_EXISTS": 409,
    "PERMISSION_DENIED": 403,
    "UNAUTHENTICATED": 401,
    "RESOURCE_EXHAUSTED": 429,
    "FAILED_PRECONDITION": 400,
    "ABORTED": 409,
    "OUT_OF_RANGE": 400,
    "UNIMPLEMENTED": 501,
    "INTERNAL": 500,
    "UNAVAILABLE": 503,
    "DATA_LOSS": 500,
}

# How the client words a status of its own.
_UNCONNECTED = re.compile(r"failed to connect|DNS resolution failed|empty address list|name resolution", re.IGNORECASE)
_BROKEN = re.compile(
    r"socket closed|stream removed|connection reset|broken pipe|recvmsg|end of file|\bEOF\b|goaway|ping timeout|"
    r"transport closed|RST_STREAM|connection (?:timed out|aborted)|keepalive",
    re.IGNORECASE,
)
_UNTRUSTED = re.compile(r"CERTIFICATE_VERIFY_FAILED")
_REFUSED = re.compile(r"connection (?:was )?refused|connection reset", re.IGNORECASE)
_LATE = re.compile(r"deadline exceeded", re.IGNORECASE)
_TOO_LONG = re.compile(r"Received message larger than max", re.IGNORECASE)


class GrpcClient:
    """A client of one target over gRPC."""

    def __init__(self, settings: Settings) -> None:
        os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # it would write its own lines about what is reported here
        import grpc  # comes with the extra

        self._grpc: Any = grpc
        self.settings = settings
        self._address = settings.grpc_address
        self._metadata = tuple((name.lower(), value) for name, value in settings.headers if name.lower() != "host")
        self._credentials, self._name = self._trust()
        self._channel = self._new_channel()
        self._used = False

    def send(self, message: Message, *, fresh: bool = False) -> Exchange:
        """Make a call and wait for its end.

        A connection that was kept may have been closed meanwhile: then the call is made once more on a fresh one.

        Args:
            message: what to send.
            fresh: on a connection of its own.

        Raises:
            Unreachable: no connection could be made.
        """
        if fresh or not self._used:
            self._renew()
        used, self._used = self._used, True
        exchange = self._exchange(message)
        if used and exchange.failure is not None and exchange.failure.kind is FailureKind.BROKEN:
            self._renew()
            with suppress(Unreachable):  # then it went down with the first attempt: that one is the evidence
                exchange = self._exchange(message)
        if exchange.failure:
            self._renew()
        return exchange

    def close(self) -> None:
        """Close the connection."""
        self._channel.close()

    def _renew(self) -> None:
        self._channel.close()
        self._channel, self._used = self._new_channel(), False

    def _new_channel(self) -> Any:
        host = next((value for name, value in self.settings.headers if name.lower() == "host"), None)
        options: list[tuple[str, Any]] = [
            ("grpc.max_send_message_length", LARGEST),
            ("grpc.max_receive_message_length", LARGEST),
            ("grpc.enable_http_proxy", 0),  # a judge wants no proxy that nobody named
            ("grpc.enable_retries", 0),
            ("grpc.use_local_subchannel_pool", 1),  # a new channel is a new connection
            ("grpc.primary_user_agent", USER_AGENT),
            *([("grpc.default_authority", host)] if host else []),
            *([("grpc.ssl_target_name_override", self._name)] if self._name else []),
        ]
        address = self._address.target
        if self._credentials is None:
            return self._grpc.insecure_channel(address, options)
        return self._grpc.secure_channel(address, self._credentials, options)

    def _trust(self) -> tuple[Any, str]:
        """Return credentials for TLS, None without it, and the name to expect in the certificate where it is given."""
        if not self._address.tls:
            return None, ""
        if self.settings.insecure:
            certificate, name = _shown_certificate(self._address, self.settings.timeout)
            return self._grpc.ssl_channel_credentials(certificate), name
        if self.settings.ca_file is None:
            return self._grpc.ssl_channel_credentials(), ""
        with open(self.settings.ca_file, "rb") as file:
            return self._grpc.ssl_channel_credentials(file.read()), ""

    def _exchange(self, message: Message) -> Exchange:
        exchange = Exchange(0, message, self._address.url + message.path)
        started = time.monotonic()
        try:
            body, call = self._channel.unary_unary(message.path).with_call(
                message.body, timeout=self.settings.timeout, metadata=self._metadata
            )
        except self._grpc.RpcError as error:
            ended: Any = error
            return self._unsuccessful(replace(exchange, elapsed=time.monotonic() - started), ended)
        return replace(
            exchange,
            status=HTTP_STATUS["OK"],
            code="OK",
            headers=_pairs(call),
            body=bytes(body),
            elapsed=time.monotonic() - started,
        )

    def _unsuccessful(self, exchange: Exchange, ended: Any) -> Exchange:
        """Return the exchange of a call that ended with another status than OK.

        Raises:
            Unreachable: no connection could be made.
        """
        code, details = ended.code().name, ended.details() or ""
        if code == "UNAVAILABLE" and _UNCONNECTED.search(details):
            untrusted = _UNTRUSTED.search(details) is not None
            is_refused = _REFUSED.search(details) is not None
            raise Unreachable(
                f"cannot connect to {self._address.url}: {details}", is_untrusted=untrusted, is_refused=is_refused
            )
        if code == "UNAVAILABLE" and _BROKEN.search(details):
            return _failed(exchange, FailureKind.BROKEN, f"connection broken ({details})")
        if code == "DEADLINE_EXCEEDED" and _LATE.search(details):
            return _failed(exchange, FailureKind.TIMEOUT, f"no answer within {self.settings.timeout:g} s")
        if code == "RESOURCE_EXHAUSTED" and _TOO_LONG.search(details):
            return _failed(exchange, FailureKind.ENDLESS, f"answer longer than {LARGEST} bytes")
        return replace(exchange, status=HTTP_STATUS.get(code, 500), code=code, details=details, headers=_pairs(ended))


def _failed(exchange: Exchange, kind: FailureKind, text: str) -> Exchange:
    return replace(exchange, failure=TransportFailure(kind, text))


def _pairs(call: Any) -> tuple[tuple[str, str], ...]:
    """Return the metadata of an answer, the trailing ones last; binary values are shown in Latin-1."""
    found = (*(call.initial_metadata() or ()), *(call.trailing_metadata() or ()))
    return tuple((key, value.decode("latin-1") if isinstance(value, bytes) else value) for key, value in found)


def _shown_certificate(address: GrpcAddress, timeout: float) -> tuple[bytes, str]:
    """Return the certificate that a server shows, and a name that it carries.

    Raises:
        Unreachable: the server could not be asked.
    """
    try:
        pem = ssl.get_server_certificate((address.host, address.port), timeout=timeout)
        context = ssl.create_default_context(cadata=pem)
        context.check_hostname = False
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        context.set_alpn_protocols(["h2"])
        import socket

        with (
            socket.create_connection((address.host, address.port), timeout) as plain,
            context.wrap_socket(plain) as one,
        ):
            shown: Any = one.getpeercert()
    except OSError as error:
        raise Unreachable(f"cannot connect to {address.url}: {error}", is_untrusted=is_about_trust(error)) from error
    names = [value for kind, value in shown.get("subjectAltName", ()) if kind in ("DNS", "IP Address")]
    return pem.encode(), next((name for name in names if name != address.host), "") if address.host not in names else ""
