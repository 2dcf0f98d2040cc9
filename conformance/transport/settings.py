"""How to reach a target: URL, headers, TLS and limits, from the command line or the environment."""

from __future__ import annotations

import re
import ssl
import threading
import time
from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit, urlunsplit

from conformance.spec.extensions import GRPC, HTTP
from conformance.transport import credentials
from conformance.wire.grpc_request import GRPC_METHOD
from conformance.wire.request import INFERENCE_HEADER, Message


@dataclass(slots=True)
class RateLimit:
    """Holds requests back until their turn.

    Attributes:
        rate: requests a second; None holds none back.
        now: seconds, of a clock that never goes back; `sleep` waits for some of them.
    """

    rate: float | None = None
    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    _next: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def keep(self, requests: int = 1) -> None:
        """Wait until so many requests may be sent at once; those that come later wait for them, too."""
        if self.rate is None:
            return
        with self._lock:
            now = self.now()
            turn = max(now, self._next)
            self._next = turn + requests / self.rate
        if turn > now:
            self.sleep(turn - now)


# Characters that RFC 9110 section 5.6.2 allows in a header name.
_TOKEN = frozenset("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")


# Headers by which a request is framed and read: each has its value by what is sent, and a user's would make it wrong.
_OF_THE_SUITE = frozenset(
    {"connection", "content-encoding", "content-length", "expect", "trailer", "transfer-encoding", "upgrade"}
    | {INFERENCE_HEADER.lower()}
)

# User and password of a URL that can be read, and what may be such of one that cannot.
_USER = re.compile(r"(://)[^/?#]*@")
_UP_TO_AT = re.compile(r"(://|\A).*@", re.DOTALL)

# Characters that gRPC allows in the key of metadata.
_METADATA_KEY = frozenset("-_.0123456789abcdefghijklmnopqrstuvwxyz")


# How much longer than silence a whole exchange may take. Two that dribble and a plain request that does so, too, are
# what a run bears (`transport.wait_budget`): less than a minute, at the default of 10 s.
DEADLINE_TIMEOUTS = 1.5
# Requests a second: a run of one model makes hundreds, and should end on the day on which it began.
MIN_RATE_PER_S = 0.01
# Bytes: the largest answer to a request of the suite's own has 1 MiB. Twice as much, and the rest of a run, is 500 MB.
MAX_ANSWER_BYTES = 128 * 1024 * 1024


class SettingsError(ValueError):
    """The user's settings make no sense; the message is one line and says what to do."""


@dataclass(frozen=True, slots=True)
class GrpcAddress:
    """Where a server listens for gRPC, with TLS or without."""

    host: str
    port: int
    tls: bool = False

    @property
    def target(self) -> str:
        """As a channel is given it."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def url(self) -> str:
        """As messages and recordings name it."""
        return f"grpc{'s' if self.tls else ''}://{self.target}"


@dataclass(frozen=True, slots=True)
class Settings:
    """How to reach a target.

    Attributes:
        url: base URL without credentials, query, or slash at the end.
        headers: sent with every request; their values are secrets and never shown, Host excepted.
        timeout: seconds to wait for a connection, and for the next byte of an answer.
        max_answer: bytes of an answer's body that are read before it counts as endless.
        grpc: where the server listens for gRPC; None where that is not judged. Where gRPC alone is, `url` is its.
        segment_pause: seconds between the TCP segments of a body that is sent in pieces: long enough for a server to
            see two reads.
        pace: of all that is sent with these settings.
    """

    url: str
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    ca_file: str | None = None
    insecure: bool = False
    timeout: float = 10.0
    max_answer: int = MAX_ANSWER_BYTES
    grpc: GrpcAddress | None = None
    segment_pause: float = 0.005
    pace: RateLimit = field(default_factory=RateLimit, repr=False, compare=False)

    @property
    def grpc_address(self) -> GrpcAddress:
        """Where the server listens for gRPC.

        Raises:
            SettingsError: nobody said so.
        """
        if self.grpc is None:
            raise SettingsError("--target-grpc is not given")
        return self.grpc

    def where(self, message: Message) -> str:
        """Return what stands in front of a message's path."""
        return self.grpc_address.url if message.method == GRPC_METHOD else self.url

    @property
    def transports(self) -> tuple[str, ...]:
        """What is judged: `http`, `grpc`, or both."""
        return (*([HTTP] if self.url.startswith("http") else []), *([GRPC] if self.grpc else []))

    @property
    def deadline(self) -> float:
        """Seconds that one whole exchange may take, so that one that dribbles for ever ends."""
        return DEADLINE_TIMEOUTS * self.timeout

    @property
    def base_path(self) -> str:
        """The path in front of `/v2`; empty for most targets."""
        return urlsplit(self.url).path

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not be shown, wherever a server repeats it."""
        return credentials.find_user_secrets(self.headers)

    def ssl_context(self) -> ssl.SSLContext:
        """Return the context for https, verifying unless `insecure`.

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


def make_settings(
    url: str,
    headers: Sequence[str] = (),
    *,
    ca_file: str | None = None,
    insecure: bool = False,
    timeout: float = 10.0,
    grpc: str | None = None,
    rate: float | None = None,
) -> Settings:
    """Make settings of what a user wrote.

    Args:
        url: of the HTTP side; empty, or that of gRPC, where gRPC alone is judged.
        headers: each as "Name: value".
        ca_file: certificates to verify TLS with.
        insecure: do not verify.
        timeout: in seconds.
        grpc: `host:port`, with `grpcs://` in front for TLS.
        rate: at most so many requests a second; None: as fast as the target answers.

    Raises:
        SettingsError: a URL, address or header that cannot be used, or a timeout or rate that is not positive.
    """
    if not 0 < timeout < 3600:
        raise SettingsError(f"--target-timeout {timeout:g}: give seconds between 0 and 3600")
    if rate is not None and not rate >= MIN_RATE_PER_S:
        raise SettingsError(f"--target-rate {rate:g}: give requests a second, {MIN_RATE_PER_S:g} or more")
    listens = split_grpc(grpc) if grpc else None
    address, authorization = (listens.url, []) if listens and url in ("", listens.url) else _split_url(url)
    sent = (*authorization, *map(_header, headers))
    for name, value in sent if listens else ():
        if not value.isascii() or not set(name.lower()) <= _METADATA_KEY or name.lower().endswith("-bin"):
            raise SettingsError(f"--target-header {name!r} cannot be sent over gRPC, whose metadata are ASCII")
    return Settings(address, sent, ca_file, insecure, timeout, grpc=listens, pace=RateLimit(rate))


def split_grpc(text: str) -> GrpcAddress:
    """Return the address that a user wrote.

    Raises:
        SettingsError: it is none.
    """
    hint = "give HOST:PORT, or grpcs://HOST:PORT for TLS"
    scheme, _, rest = text.rpartition("://")
    try:
        parts = urlsplit(f"//{rest}")
        host, port = parts.hostname, parts.port
    except ValueError:  # its words may quote a password
        raise SettingsError(f"--target-grpc {_shown(text)!r}: host or port cannot be read; {hint}") from None
    is_more = bool(parts.path.strip("/") or parts.username)
    if scheme not in ("", "grpc", "grpcs") or is_more or not host or not port or not _is_name(host):
        raise SettingsError(f"--target-grpc {_shown(text)!r} is no address: {hint}")
    return GrpcAddress(host, port, scheme == "grpcs")


def _split_url(url: str) -> tuple[str, list[tuple[str, str]]]:
    """Return the URL without credentials, and the Authorization header that they stand for."""
    hint = "give http://HOST:PORT, https://HOST:PORT or 'reference'"
    shown = _shown(url)
    try:
        parts = urlsplit(url)
        port, host = parts.port, parts.hostname
    except ValueError:  # its words may quote a password
        raise SettingsError(f"--target-url {shown!r}: host or port cannot be read; {hint}") from None
    if parts.scheme not in ("http", "https") or not host:
        raise SettingsError(f"--target-url {shown!r} is no http or https URL: {hint}")
    if parts.query or parts.fragment:
        raise SettingsError(f"--target-url {shown!r}: a base URL has no query or fragment; {hint}")
    if not _is_name(host):
        raise SettingsError(f"--target-url {shown!r}: no name of a host; {hint}")
    name = f"[{host}]" if ":" in host else host
    netloc = name if port is None else f"{name}:{port}"
    address = urlunsplit((parts.scheme, netloc, parts.path.rstrip("/"), "", ""))
    if parts.username is None:
        return address, []
    credentials = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return address, [("Authorization", f"Basic {b64encode(credentials.encode()).decode()}")]


def strip_user(option: str) -> str:
    """Return a URL, or an option that gives one, without user and password."""
    return _USER.sub(r"\1", option, count=1)


def _shown(text: str) -> str:
    """Return what is no URL as a message shows it: whatever stands in front of an at sign may be a password."""
    return _UP_TO_AT.sub(r"\1", text, count=1)


def _is_name(host: str) -> bool:
    """Say whether a name can be looked up: no part of it is empty, or longer than 63 characters (RFC 1035, 2.3.4)."""
    try:
        host.encode("idna")
    except UnicodeError:
        return False
    return True


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon or not name or not set(name) <= _TOKEN or any(ord(c) < 32 or ord(c) > 255 for c in value):
        shown = f" {name!r}" if colon and set(name) <= _TOKEN else ""  # else it may be the value
        raise SettingsError(f"--target-header{shown}: write it as 'Name: value'")
    if name.lower() in _OF_THE_SUITE:
        raise SettingsError(
            f"--target-header {name!r}: this header says how a request is framed, and is the suite's own"
        )
    return name, value.strip()
