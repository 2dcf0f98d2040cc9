"""Sends messages with httpx: kept connections, a fresh one after any error, bounded answers, no decoding."""

from __future__ import annotations

import time
from dataclasses import replace

import httpx

from conformance import __version__
from conformance.target.exchange import Exchange
from conformance.target.settings import Settings
from conformance.wire.request import Message

USER_AGENT = f"oip-conformance/{__version__}"


class Unreachable(Exception):  # noqa: N818 - a state of the target
    """No connection could be made."""


class Sender:
    """A client of one target. Threads may share it."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._context = settings.ssl_context()
        self._client = self._new_client()
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
            with self._new_client() as client:
                return self._exchange(client, message)
        client, used = self._client, self._used
        exchange = self._exchange(client, message)
        if used and exchange.status is None and not _timed_out(exchange):
            exchange = self._again(client, exchange)
        self._used = True
        if exchange.failure or (exchange.status or 0) >= 400:
            self._renew(client)
        return exchange

    def _again(self, client: httpx.Client, exchange: Exchange) -> Exchange:
        try:
            return self._exchange(self._renew(client), exchange.message)
        except Unreachable:
            return exchange  # the server went down with the first attempt: that one is the evidence

    def close(self) -> None:
        """Close every connection."""
        self._client.close()

    def _renew(self, client: httpx.Client) -> httpx.Client:
        if client is self._client:
            self._client, self._used = self._new_client(), False
            client.close()
        return self._client

    def _new_client(self) -> httpx.Client:
        # trust_env: a judge must not be led through a proxy or given credentials that nobody named.
        return httpx.Client(
            verify=self._context,
            timeout=self.settings.timeout,
            limits=httpx.Limits(max_connections=128, max_keepalive_connections=4),
            trust_env=False,
            follow_redirects=False,
        )

    def _exchange(self, client: httpx.Client, message: Message) -> Exchange:
        url = self.settings.url + message.path
        exchange = Exchange(0, message, url)
        started = time.monotonic()
        try:
            request = httpx.Request(message.method, url, headers=self._headers(message), content=message.body or None)
            response = client.send(request, stream=True)
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            raise Unreachable(f"cannot connect to {self.settings.url}: {error}") from error
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
        )

    def _read(self, response: httpx.Response, started: float) -> tuple[bytes, str | None]:
        """Read the body as it travels, undecoded; a gzip bomb stays as small as it came."""
        parts: list[bytes] = []
        size = 0
        try:
            for part in response.iter_raw():
                parts.append(part)
                size += len(part)
                if size > self.settings.max_answer:
                    return b"".join(parts), f"answer longer than {self.settings.max_answer} bytes"
                if time.monotonic() - started > self.settings.deadline:
                    return b"".join(parts), f"answer not complete within {self.settings.deadline:g} s"
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

    def _failure(self, error: httpx.HTTPError) -> str:
        if isinstance(error, httpx.TimeoutException):
            return f"no answer within {self.settings.timeout:g} s"
        if isinstance(error, httpx.RemoteProtocolError):
            text = str(error)
            if "disconnected without" in text:
                return "connection closed without an answer"
            return f"malformed HTTP answer: {text}"
        return f"connection broken ({type(error).__name__})"


def _timed_out(exchange: Exchange) -> bool:
    return (exchange.failure or "").startswith("no answer within")
