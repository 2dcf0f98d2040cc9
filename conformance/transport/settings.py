"""The settings for reaching a target: URL, headers, TLS and limits, from the command line or the environment."""

from __future__ import annotations

import re
import ssl
import threading
import time
from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit, urlunsplit

from conformance.spec.extensions import GRPC, HTTP
from conformance.spec.user_error import UserError
from conformance.transport import credentials
from conformance.transport.answer_wait import AnswerWait
from conformance.transport.restart import Restart
from conformance.wire.grpc_request import GRPC_METHOD
from conformance.wire.request import INFERENCE_HEADER, Message

if TYPE_CHECKING:
    from multiprocessing.context import BaseContext


@dataclass(slots=True)
class RateLimit:
    """Delays requests so that they do not exceed a rate.

    Attributes:
        rate: the maximum number of requests per second; None: no limit.
        now: returns the seconds of a monotonic clock.
        sleep: waits for a number of seconds.
    """

    rate: float | None = None
    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    _next: Any = field(default_factory=lambda: SimpleNamespace(value=0.0))
    _lock: Any = field(default_factory=threading.Lock)
    _excess: Any = field(default_factory=lambda: SimpleNamespace(value=False))

    @property
    def is_too_high(self) -> bool:
        """Whether the target has answered that there were too many requests."""
        return bool(self._excess.value)

    def note_excess(self) -> None:
        """Note that the target has answered that there were too many requests."""
        self._excess.value = True

    def share(self, context: BaseContext) -> None:
        """Let the processes that are forked from now on share the limit with this process."""
        self._excess = context.RawValue("b", self._excess.value)
        if self.rate is not None:
            self._next, self._lock = context.RawValue("d", self._next.value), context.Lock()

    def wait(self, requests: int = 1) -> None:
        """Wait until the rate allows `requests` requests at once, after the requests of earlier callers."""
        if self.rate is None:
            return
        with self._lock:
            now = self.now()
            turn = max(now, self._next.value)
            self._next.value = turn + requests / self.rate
        if turn > now:
            self.sleep(turn - now)


# Characters that RFC 9110 section 5.6.2 allows in a header name.
_TOKEN = frozenset("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")


# Headers that control framing and parsing. Their values depend on the message, so a user must not set them.
_RESERVED_HEADERS = frozenset(
    {"connection", "content-encoding", "content-length", "expect", "trailer", "transfer-encoding", "upgrade"}
    | {INFERENCE_HEADER.lower()}
)

# User and password in a valid URL, and their possible extent in an invalid one.
_USER = re.compile(r"(://)[^/?#]*@")
_UP_TO_AT = re.compile(r"(://|\A).*@", re.DOTALL)

# Characters that gRPC allows in the key of metadata.
_METADATA_KEY = frozenset("-_.0123456789abcdefghijklmnopqrstuvwxyz")


# Seconds to wait for a connection, and for the next byte of an answer.
DEFAULT_TIMEOUT_S = 10.0
# The time limit of a whole exchange, as a multiple of the timeout of silence. A run tolerates two slow exchanges and a
# slow plain request (`transport.wait_budget`): less than a minute, at the default of 10 s.
DEADLINE_TIMEOUTS = 1.5
# Requests a second: a run of one model makes hundreds, and should end within a day.
MIN_RATE_PER_S = 0.01
# Bytes: the largest answer to a request of the suite has 1 MiB. Twice this limit and the rest of a run take 500 MB.
MAX_ANSWER_BYTES = 128 * 1024 * 1024


class SettingsError(UserError, ValueError):
    """The user's settings are invalid; the message is one line with the remedy."""


@dataclass(frozen=True, slots=True)
class GrpcAddress:
    """The address of a gRPC server, with TLS or without."""

    host: str
    port: int
    tls: bool = False

    @property
    def target(self) -> str:
        """The address as `host:port`, as gRPC libraries name a channel's target."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def url(self) -> str:
        """The address as a URL, for messages and recordings: `grpc://host:port`, or `grpcs://` with TLS."""
        return f"grpc{'s' if self.tls else ''}://{self.target}"


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings for reaching a target.

    Attributes:
        url: the base URL without credentials, query, or slash at the end.
        headers: the headers of every request; their values are secret and never shown, except the value of Host.
        ca_file: the file of the certificates to trust; None: those of the system.
        insecure: whether any certificate is accepted.
        timeout: the seconds to wait for a connection, and for the next byte of an answer.
        max_answer: the bytes of a body to read before the answer counts as endless.
        grpc: the gRPC address; None if gRPC is not judged. If only gRPC is judged, `url` is its URL.
        segment_pause: the seconds between TCP segments of a body, so that the server receives them in separate reads.
        rate_limit: the rate limit, which all copies of these settings share.
        restart: the user's command that starts the target again, which all copies of these settings share.
        wait: may lengthen or shorten the wait for answers; each `TargetClient` has its own.
    """

    url: str
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    ca_file: str | None = None
    insecure: bool = False
    timeout: float = DEFAULT_TIMEOUT_S
    max_answer: int = MAX_ANSWER_BYTES
    grpc: GrpcAddress | None = None
    segment_pause: float = 0.005
    rate_limit: RateLimit = field(default_factory=RateLimit, repr=False, compare=False)
    restart: Restart = field(default_factory=Restart, repr=False, compare=False)
    wait: AnswerWait = field(default_factory=AnswerWait, repr=False, compare=False)

    @property
    def grpc_address(self) -> GrpcAddress:
        """The address on which the server listens for gRPC.

        Raises SettingsError: the user set no gRPC address.
        """
        if self.grpc is None:
            raise SettingsError("--target-grpc is missing")
        return self.grpc

    def find_base_url(self, message: Message) -> str:
        """Return the URL before the path of a message: the gRPC address for a gRPC call, else the HTTP URL."""
        return self.grpc_address.url if message.method == GRPC_METHOD else self.url

    @property
    def transports(self) -> tuple[str, ...]:
        """The transports to judge: `http`, `grpc`, or both."""
        return (*([HTTP] if self.url.startswith("http") else []), *([GRPC] if self.grpc else []))

    @property
    def deadline(self) -> float:
        """The maximum number of seconds for a whole exchange, so that endlessly slow answers end as well."""
        return DEADLINE_TIMEOUTS * self.answer_timeout

    @property
    def answer_timeout(self) -> float:
        """The maximum number of seconds to wait for the next byte of an answer: see `answer_wait`."""
        return self.wait.choose_wait(self.timeout)

    @property
    def base_path(self) -> str:
        """The path before `/v2`; empty for most targets."""
        return urlsplit(self.url).path

    @property
    def secrets(self) -> tuple[str, ...]:
        """The secrets in the headers, to hide wherever a server repeats them."""
        return credentials.find_user_secrets(self.headers)

    def build_ssl_context(self) -> ssl.SSLContext:
        """Return the TLS context for https, which all connections share; it verifies certificates unless `insecure`.

        Raises SettingsError: the CA file cannot be read.
        """
        if not self.url.startswith("https:"):
            return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        try:
            return _load_ssl_context(self.ca_file, self.insecure)
        except OSError as error:
            raise SettingsError(f"--target-ca {self.ca_file}: cannot read certificates ({error})") from error


@lru_cache(maxsize=16)
def _load_ssl_context(ca_file: str | None, insecure: bool) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=ca_file)
    context.set_alpn_protocols(["http/1.1"])
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def make_settings(
    url: str,
    headers: Sequence[str] = (),
    *,
    ca_file: str | None = None,
    insecure: bool = False,
    timeout: float = DEFAULT_TIMEOUT_S,
    grpc: str | None = None,
    rate: float | None = None,
    restart: str = "",
) -> Settings:
    """Build settings from the user's values.

    Args:
        url: the HTTP URL; empty or the gRPC URL if only gRPC is judged.
        headers: the headers, each as "Name: value".
        ca_file: the file of the certificates to trust; None: those of the system.
        insecure: whether to accept any certificate.
        timeout: see `Settings.timeout`.
        grpc: `host:port`, prefixed with `grpcs://` for TLS; None if gRPC is not judged.
        rate: the maximum number of requests per second; None: no limit.
        restart: see `Restart.command`.

    Raises SettingsError: a URL, address or header is invalid, or the timeout or rate is out of range.
    """
    if not 0 < timeout < 3600:
        raise SettingsError(f"--target-timeout {timeout:g}: give seconds between 0 and 3600")
    if rate is not None and not rate >= MIN_RATE_PER_S:
        raise SettingsError(f"--target-rate {rate:g}: give requests per second, {MIN_RATE_PER_S:g} or more")
    grpc_address = parse_grpc_address(grpc) if grpc else None
    is_grpc_only = grpc_address is not None and url in ("", grpc_address.url)
    address, authorization = (grpc_address.url, []) if grpc_address and is_grpc_only else _split_url(url)
    sent = (*authorization, *map(_parse_header, headers))
    for name, value in sent if grpc_address else ():
        if not value.isascii() or not set(name.lower()) <= _METADATA_KEY or name.lower().endswith("-bin"):
            raise SettingsError(f"--target-header {name!r} cannot be sent over gRPC, whose metadata are ASCII")
    return Settings(
        address,
        sent,
        ca_file,
        insecure,
        timeout,
        grpc=grpc_address,
        rate_limit=RateLimit(rate),
        restart=Restart(restart),
    )


def parse_grpc_address(text: str) -> GrpcAddress:
    """Parse a gRPC address. Raises SettingsError: the address is invalid."""
    hint = "give HOST:PORT, or grpcs://HOST:PORT for TLS"
    scheme, _, rest = text.rpartition("://")
    try:
        parts = urlsplit(f"//{rest}")
        host, port = parts.hostname, parts.port
    except ValueError:  # the error may quote a password
        raise SettingsError(f"--target-grpc {_hide_user(text)!r}: host or port cannot be read; {hint}") from None
    has_more = bool(parts.path.strip("/") or parts.username)
    if scheme not in ("", "grpc", "grpcs") or has_more or not host or not port or not _is_host_name(host):
        raise SettingsError(f"--target-grpc {_hide_user(text)!r} is not an address: {hint}")
    return GrpcAddress(host, port, scheme == "grpcs")


def _split_url(url: str) -> tuple[str, list[tuple[str, str]]]:
    """Return the URL without credentials, and an Authorization header for the credentials, if any."""
    hint = "give http://HOST:PORT, https://HOST:PORT or 'reference'"
    shown = _hide_user(url)
    try:
        parts = urlsplit(url)
        port, host = parts.port, parts.hostname
    except ValueError:  # the error may quote a password
        raise SettingsError(f"--target-url {shown!r}: host or port cannot be read; {hint}") from None
    if parts.scheme not in ("http", "https") or not host:
        raise SettingsError(f"--target-url {shown!r} is not an http or https URL: {hint}")
    if parts.query or parts.fragment:
        raise SettingsError(f"--target-url {shown!r}: a base URL has no query or fragment; {hint}")
    if not _is_host_name(host):
        raise SettingsError(f"--target-url {shown!r}: the host name is invalid; {hint}")
    name = f"[{host}]" if ":" in host else host
    netloc = name if port is None else f"{name}:{port}"
    address = urlunsplit((parts.scheme, netloc, parts.path.rstrip("/"), "", ""))
    if parts.username is None:
        return address, []
    credentials = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return address, [("Authorization", f"Basic {b64encode(credentials.encode()).decode()}")]


def strip_user(option: str) -> str:
    """Remove user and password from a URL, or from an option with a URL."""
    return _USER.sub(r"\1", option, count=1)


def _hide_user(text: str) -> str:
    """Return a URL for a message, even an invalid URL, without the user and password before an at sign."""
    return _UP_TO_AT.sub(r"\1", text, count=1)


def _is_host_name(host: str) -> bool:
    """Return whether a host name is valid: no label is empty or longer than 63 characters (RFC 1035, 2.3.4)."""
    try:
        host.encode("idna")
    except UnicodeError:
        return False
    return True


def _parse_header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon or not name or not set(name) <= _TOKEN or any(ord(c) < 32 or ord(c) > 255 for c in value):
        shown = f" {name!r}" if colon and set(name) <= _TOKEN else ""  # otherwise it may be the value
        raise SettingsError(f"--target-header{shown}: write it as 'Name: value'")
    if name.lower() in _RESERVED_HEADERS:
        raise SettingsError(
            f"--target-header {name!r}: the suite sets this header itself, because it affects how requests are parsed"
        )
    return name, value.strip()
