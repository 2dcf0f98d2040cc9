"""Sends messages with httpcore: persistent connections, a new connection after an error, size limits, no decoding.

The client of httpx is not used: the suite must not apply redirects, cookies, credentials or proxies that the user did
not configure, and it needs one time limit for a whole exchange (`http_pool.py`).
"""

from __future__ import annotations

import re
import time
from dataclasses import replace
from functools import lru_cache
from io import BytesIO
from urllib.parse import quote, urlsplit

import h11
import httpcore

from conformance.spec.version import __version__
from conformance.transport.exchange import Exchange, FailureKind, TransportFailure
from conformance.transport.http_pool import (
    ERRORS,
    EndlessError,
    ExchangeState,
    encode_headers,
    has_surplus_bytes,
    make_pool,
)
from conformance.transport.settings import Settings
from conformance.transport.unreachable import UnreachableError, is_certificate_error, is_refused_or_reset
from conformance.wire.request import Message

USER_AGENT = f"oip-conformance/{__version__}"

MAX_KEPT_BYTES = 1 << 20  # bytes that are kept of an answer that is too long
# The failures that occur if the peer has closed the connection.
_CONNECTION_ENDS = (FailureKind.CLOSED, FailureKind.BROKEN)
# Characters that a path or query may contain literally (RFC 3986, 3.3 and 3.4); a percent sign only if it begins an
# escape.
_SAFE_CHARACTERS = "!$&'()*+,;=:@/?%~"
_BARE_PER_CENT = re.compile("%(?![0-9A-Fa-f]{2})")


@lru_cache(maxsize=256)
def _parse_url(url: str) -> tuple[httpcore.URL, str]:
    """Return the parsed URL, and the value of its Host header."""
    parts = urlsplit(url)
    host = (parts.hostname or "").encode("idna")
    written = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    target = quote(_BARE_PER_CENT.sub("%25", written), safe=_SAFE_CHARACTERS)
    parsed = httpcore.URL(scheme=parts.scheme.encode(), host=host, port=parts.port, target=target.encode("ascii"))
    name = f"[{host.decode()}]" if b":" in host else host.decode()
    is_usual = parts.port in (None, {"http": 80, "https": 443}[parts.scheme])
    return parsed, name if is_usual else f"{name}:{parts.port}"


class HttpClient:
    """A client of one target; threads may share it for messages on separate connections."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._context = settings.build_ssl_context()
        self._state = ExchangeState()
        self._pool = self._build_pool()
        self._used = False

    def send(self, message: Message, *, fresh: bool = False, share: int = 1) -> Exchange:
        """Send a message and read the complete answer.

        A server may close a connection between two messages (RFC 9112 9.3). If it did, the message is sent again on a
        new connection. A connection is not reused after an error status, because some servers then close it without
        notice. A connection is not reused either if bytes followed the answer: they would be read as the next answer.

        Args:
            message: the message to send.
            fresh: whether to use a new connection.
            share: the number of concurrent messages, which share the limit of answer bytes.

        Raises:
            UnreachableError: the connection failed.
        """
        if fresh:
            with self._build_pool() as connections:
                return self._send_and_receive(connections, message, share)
        connections, used = self._pool, self._used
        exchange = self._send_and_receive(connections, message)
        if used and self._has_ended_unused(exchange):
            exchange = self._resend(connections, exchange)
        self._used = True
        if exchange.failure or (exchange.status or 0) >= 400 or self._state.has_surplus_bytes:
            self._replace_pool(connections)
        return exchange

    @property
    def is_idle(self) -> bool:
        """Whether a connection is open between two messages, as far as the server has not closed it."""
        return any(one.is_idle() and not one.has_expired() for one in self._pool.connections)

    def close_idle(self) -> None:
        """Close the idle connections; the next message opens a new connection."""
        self._replace_pool(self._pool)

    def _has_ended_unused(self, exchange: Exchange) -> bool:
        """Return whether the connection ended before the first byte of the answer, as a kept connection may."""
        failure = exchange.failure
        return failure is not None and failure.kind in _CONNECTION_ENDS and not self._state.received_bytes

    def _resend(self, connections: httpcore.ConnectionPool, exchange: Exchange) -> Exchange:
        try:
            return self._send_and_receive(self._replace_pool(connections), exchange.message)
        except UnreachableError as error:
            error.before = exchange  # the evidence, if the server does not come back
            raise

    def close(self) -> None:
        """Close every connection."""
        self._pool.close()

    def _replace_pool(self, connections: httpcore.ConnectionPool) -> httpcore.ConnectionPool:
        if connections is self._pool:
            self._pool, self._used = self._build_pool(), False
            connections.close()
        return self._pool

    def _build_pool(self) -> httpcore.ConnectionPool:
        return make_pool(self._context, self._state)

    def _send_and_receive(self, connections: httpcore.ConnectionPool, message: Message, share: int = 1) -> Exchange:
        url = self.settings.url + message.path
        exchange = Exchange(0, message, url)
        started = time.monotonic()
        self._state.start(self.settings.deadline)
        try:
            response = connections.handle_request(self._build_request(message, url))
        except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
            raise UnreachableError(
                f"cannot connect to {self.settings.url}: {error}",
                is_untrusted=is_certificate_error(error),
                is_refused=is_refused_or_reset(error),
            ) from error
        except ERRORS as error:
            return replace(exchange, failure=self._classify_error(error), elapsed=time.monotonic() - started)
        try:
            body, failure = self._read_body(response, self.settings.max_answer // share)
            self._state.has_surplus_bytes = has_surplus_bytes(response)
        finally:
            response.close()
        headers = tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in response.headers)
        return replace(
            exchange,
            status=response.status,
            headers=headers,
            body=body,
            failure=failure,
            elapsed=time.monotonic() - started,
            version=response.extensions.get("http_version", b"HTTP/1.1").decode("latin-1"),
        )

    def _build_request(self, message: Message, url: str) -> httpcore.Request:
        parsed, host = _parse_url(url)
        return httpcore.Request(
            message.method,
            parsed,
            headers=encode_headers(self._build_headers(message, host)),
            content=message.body or None,
            extensions={"timeout": self._find_timeouts()},
        )

    def _find_timeouts(self) -> dict[str, float]:
        own, answer = self.settings.timeout, self.settings.answer_timeout
        return {"connect": own, "pool": own, "read": answer, "write": answer}

    def _read_body(self, response: httpcore.Response, max_bytes: int) -> tuple[bytes, TransportFailure | None]:
        """Read the body without decoding it, so that a gzip bomb stays compressed."""
        body = BytesIO()  # returns its content without a copy, unlike joined parts
        try:
            for part in response.iter_stream():
                body.write(part)
                if body.tell() > max_bytes:
                    body.truncate(MAX_KEPT_BYTES)
                    return body.getvalue(), _build_endless_failure(f"answer longer than {max_bytes} bytes")
        except ERRORS as error:
            return body.getvalue(), self._classify_error(error)
        return body.getvalue(), None

    def _build_headers(self, message: Message, host: str) -> list[tuple[str, str]]:
        """Return the headers to send; headers of the message and the target override the defaults."""
        headers = [("Host", host), ("User-Agent", USER_AGENT), ("Accept", "*/*"), ("Accept-Encoding", "identity")]
        overrides = [*message.headers, *self.settings.headers]
        names = {name.lower() for name, _ in overrides}
        if (message.body or message.method == "POST") and "transfer-encoding" not in names:
            headers.append(("Content-Length", str(len(message.body))))
        return [*[header for header in headers if header[0].lower() not in names], *overrides]

    def _classify_error(self, error: Exception) -> TransportFailure:
        if isinstance(error, EndlessError):
            return _build_endless_failure(f"answer not complete within {self.settings.deadline:g} s")
        if isinstance(error, httpcore.TimeoutException):
            return TransportFailure(FailureKind.TIMEOUT, f"no answer within {self.settings.answer_timeout:g} s")
        if not isinstance(error, httpcore.RemoteProtocolError):
            return TransportFailure(FailureKind.BROKEN, f"connection broken ({type(error).__name__})")
        if _is_malformed(error):
            return TransportFailure(FailureKind.MALFORMED, f"malformed HTTP answer: {error}")
        if self._state.received_bytes:
            return TransportFailure(FailureKind.BROKEN, "connection closed before the head of the answer was complete")
        if self._state.is_write_broken:
            return TransportFailure(FailureKind.BROKEN, "connection broken while the request was sent")
        return TransportFailure(FailureKind.CLOSED, "connection closed without an answer")


def _is_malformed(error: BaseException | None) -> bool:
    """Return whether h11 raised the error because of a malformed answer; otherwise the connection was closed."""
    while error is not None:
        if isinstance(error, h11.RemoteProtocolError):
            return True
        error = error.__cause__ or error.__context__
    return False


def _build_endless_failure(text: str) -> TransportFailure:
    return TransportFailure(FailureKind.ENDLESS, text)
