"""Sends messages with httpx: kept connections, a fresh one after any error, bounded answers, no decoding.

httpx's transport is used without its client: a judge wants no redirects, cookies, credentials or proxies that nobody
named, and a run spends a third less time in here.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import lru_cache

import h11
import httpx

from conformance import __version__
from conformance.transport.exchange import Exchange, FailureKind, TransportFailure
from conformance.transport.settings import Settings
from conformance.transport.unreachable import Unreachable, is_about_refusal, is_about_trust
from conformance.wire.request import Message

USER_AGENT = f"oip-conformance/{__version__}"


LIMITS = httpx.Limits(max_connections=8, max_keepalive_connections=4)


@lru_cache(maxsize=256)
def _parsed(url: str) -> httpx.URL:
    return httpx.URL(url)


class HttpClient:
    """A client of one target; threads may share it for messages on connections of their own."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._context = settings.ssl_context()
        self._timeout = httpx.Timeout(settings.timeout).as_dict()
        self._transport = self._new_transport()
        self._used = False

    def send(self, message: Message, *, fresh: bool = False) -> Exchange:
        """Send a message and read the whole answer.

        A connection that was kept may have been closed by the server meanwhile, which is its right (RFC 9112 9.3):
        then the message goes out once more on a fresh one. After an error status the connection is given up, because
        some servers close it without saying so.

        Args:
            message: what to send.
            fresh: on a connection of its own.

        Raises:
            Unreachable: no connection could be made.
        """
        if fresh:
            with self._new_transport() as transport:
                return self._exchange(transport, message)
        transport, used = self._transport, self._used
        exchange = self._exchange(transport, message)
        if used and exchange.status is None and not _is_late(exchange):
            exchange = self._again(transport, exchange)
        self._used = True
        if exchange.failure or (exchange.status or 0) >= 400:
            self._renew(transport)
        return exchange

    def _again(self, transport: httpx.HTTPTransport, exchange: Exchange) -> Exchange:
        try:
            return self._exchange(self._renew(transport), exchange.message)
        except Unreachable:
            return exchange  # the server went down with the first attempt: that one is the evidence

    def close(self) -> None:
        """Close every connection."""
        self._transport.close()

    def _renew(self, transport: httpx.HTTPTransport) -> httpx.HTTPTransport:
        if transport is self._transport:
            self._transport, self._used = self._new_transport(), False
            transport.close()
        return self._transport

    def _new_transport(self) -> httpx.HTTPTransport:
        return httpx.HTTPTransport(verify=self._context, limits=LIMITS, trust_env=False)

    def _exchange(self, transport: httpx.HTTPTransport, message: Message) -> Exchange:
        url = self.settings.url + message.path
        exchange = Exchange(0, message, url)
        started = time.monotonic()
        try:
            response = transport.handle_request(
                httpx.Request(
                    message.method,
                    _parsed(url),
                    headers=self._headers(message),
                    content=message.body or None,
                    extensions={"timeout": self._timeout},
                )
            )
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            raise Unreachable(
                f"cannot connect to {self.settings.url}: {error}",
                is_untrusted=is_about_trust(error),
                is_refused=is_about_refusal(error),
            ) from error
        except httpx.HTTPError as error:
            return replace(exchange, failure=self._failure(error), elapsed=time.monotonic() - started)
        try:
            body, failure = self._read(response, started)
        finally:
            response.close()
        headers = tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in response.headers.raw)
        return replace(
            exchange,
            status=response.status_code,
            headers=headers,
            body=body,
            failure=failure,
            elapsed=time.monotonic() - started,
            version=response.extensions.get("http_version", b"HTTP/1.1").decode("latin-1"),
        )

    def _read(self, response: httpx.Response, started: float) -> tuple[bytes, TransportFailure | None]:
        """Read the body as it travels, undecoded; a gzip bomb stays as small as it came."""
        parts: list[bytes] = []
        size = 0
        try:
            for part in response.iter_raw():
                parts.append(part)
                size += len(part)
                if size > self.settings.max_answer:
                    return b"".join(parts), _endless(f"answer longer than {self.settings.max_answer} bytes")
                if time.monotonic() - started > self.settings.deadline:
                    return b"".join(parts), _endless(f"answer not complete within {self.settings.deadline:g} s")
        except httpx.HTTPError as error:
            return b"".join(parts), self._failure(error)
        return b"".join(parts), None

    def _headers(self, message: Message) -> list[tuple[str, str]]:
        """The message's headers, then the target's, then the judge's manners; what is named first is not repeated."""
        headers = [("User-Agent", USER_AGENT), ("Accept", "*/*"), ("Accept-Encoding", "identity")]
        if message.method == "POST" and not message.body:
            headers.append(("Content-Length", "0"))
        given = [*message.headers, *self.settings.headers]
        names = {name.lower() for name, _ in given}
        return [*[header for header in headers if header[0].lower() not in names], *given]

    def _failure(self, error: httpx.HTTPError) -> TransportFailure:
        if isinstance(error, httpx.TimeoutException):
            return TransportFailure(FailureKind.TIMEOUT, f"no answer within {self.settings.timeout:g} s")
        if not isinstance(error, httpx.RemoteProtocolError):
            return TransportFailure(FailureKind.BROKEN, f"connection broken ({type(error).__name__})")
        if _is_malformed(error):
            return TransportFailure(FailureKind.MALFORMED, f"malformed HTTP answer: {error}")
        return TransportFailure(FailureKind.CLOSED, "connection closed without an answer")


def _is_malformed(error: BaseException | None) -> bool:
    """Say whether the reader of HTTP raised an error: httpx has one class for that and for a silent close."""
    while error is not None:
        if isinstance(error, h11.RemoteProtocolError):
            return True
        error = error.__cause__ or error.__context__
    return False


def _endless(text: str) -> TransportFailure:
    return TransportFailure(FailureKind.ENDLESS, text)


def _is_late(exchange: Exchange) -> bool:
    return exchange.failure is not None and exchange.failure.kind is FailureKind.TIMEOUT
