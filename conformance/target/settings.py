"""How to reach a target: URL, headers, TLS and limits, from the command line or the environment."""

from __future__ import annotations

import ssl
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit, urlunsplit

from conformance.target import secrets

# Characters that RFC 9110 section 5.6.2 allows in a header name.
_TOKEN = frozenset("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")


class SettingsError(ValueError):
    """The user's settings make no sense; the message is one line and says what to do."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How to reach a target.

    Attributes:
        url: base URL without credentials, query, or slash at the end.
        headers: sent with every request; their values are secrets and never shown, Host excepted.
        timeout: seconds to wait for a connection, and for the next byte of an answer.
        max_answer: bytes of an answer's body that are read before it counts as endless.
    """

    url: str
    headers: tuple[tuple[str, str], ...] = ()
    ca_file: str | None = None
    insecure: bool = False
    timeout: float = 10.0
    max_answer: int = 256 * 1024 * 1024

    @property
    def deadline(self) -> float:
        """Seconds that one whole answer may take, so that one that dribbles for ever ends."""
        return 6 * self.timeout

    @property
    def base_path(self) -> str:
        """The path in front of `/v2`; empty for most targets."""
        return urlsplit(self.url).path

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not be shown, wherever a server repeats it."""
        return secrets.of(self.headers)

    def ssl_context(self) -> ssl.SSLContext:
        """Return the context for https, verifying unless told otherwise.

        Raises:
            SettingsError: the CA file cannot be read.
        """
        if not self.url.startswith("https:"):
            return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        try:
            context = ssl.create_default_context(cafile=self.ca_file)
        except OSError as error:
            raise SettingsError(f"--target-ca {self.ca_file}: cannot read certificates ({error})") from error
        if self.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context


def make(
    url: str,
    headers: Sequence[str] = (),
    *,
    ca_file: str | None = None,
    insecure: bool = False,
    timeout: float = 10.0,
) -> Settings:
    """Make settings of what a user wrote.

    Raises:
        SettingsError: a URL or header that cannot be used, or a timeout that is not positive.
    """
    if not 0 < timeout < 3600:
        raise SettingsError(f"--target-timeout {timeout:g}: give seconds between 0 and 3600")
    address, authorization = _split_url(url)
    return Settings(address, (*authorization, *map(_header, headers)), ca_file, insecure, timeout)


def _split_url(url: str) -> tuple[str, list[tuple[str, str]]]:
    """Return the URL without credentials, and the Authorization header that they stand for."""
    hint = "give http://HOST:PORT, https://HOST:PORT or 'reference'"
    try:
        parts = urlsplit(url)
        port, host = parts.port, parts.hostname
    except ValueError as error:
        raise SettingsError(f"--target-url {url!r}: {error}; {hint}") from error
    if parts.scheme not in ("http", "https") or not host:
        raise SettingsError(f"--target-url {url!r} is no http or https URL: {hint}")
    if parts.query or parts.fragment:
        raise SettingsError(f"--target-url {url!r}: a base URL has no query or fragment; {hint}")
    name = f"[{host}]" if ":" in host else host
    netloc = name if port is None else f"{name}:{port}"
    address = urlunsplit((parts.scheme, netloc, parts.path.rstrip("/"), "", ""))
    if parts.username is None:
        return address, []
    credentials = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return address, [("Authorization", f"Basic {b64encode(credentials.encode()).decode()}")]


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon or not name or not set(name) <= _TOKEN or any(ord(c) < 32 or ord(c) > 255 for c in value):
        raise SettingsError(f"--target-header {name!r}: write it as 'Name: value'")
    return name, value.strip()
