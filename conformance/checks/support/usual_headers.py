"""Headers that common clients and proxies send with every request, and the refusals that these headers justify.

`User-Agent` is left out: `conformance.transport.client_names` varies it over all rows.

Sources: RFC 9110, 12.5 "Content Negotiation" and 11.6 "HTTP Authentication"; RFC 6265 (cookies); RFC 7239 (Forwarded);
RFC 6585, 5 "431 Request Header Fields Too Large"; W3C "Trace Context".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from conformance.transport.exchange import Reply
from conformance.transport.settings import Settings
from conformance.wire.request import Message

Headers = tuple[tuple[str, str], ...]
LONG_VALUE_CHARACTERS = 5000
_UNKNOWN_CREDENTIALS = frozenset({400, 401, 403, 407})
_UNTRUSTED_PROXY = frozenset({400, 403, 421})
_TOO_LONG = frozenset({400, 413})
_TOO_MANY = 431  # a server may limit the number of headers and their size


@dataclass(frozen=True, slots=True)
class UsualHeaders:
    """The headers that one kind of client or proxy sends.

    Attributes:
        headers: in the order in which they are sent.
        refusals: statuses with which a server may refuse a request for these headers.
    """

    headers: Headers
    refusals: frozenset[int] = frozenset()

    @property
    def has_codings(self) -> bool:
        """Whether the headers name content codings that the client accepts."""
        return any(name.lower() == "accept-encoding" for name, _ in self.headers)

    def add_to(self, message: Message, settings: Settings) -> Message:
        """Return the message with these headers, except headers that the user sets for every request."""
        own = {name.lower() for name, _ in settings.headers}
        added = tuple((name, value) for name, value in self.headers if name.lower() not in own)
        return replace(message, headers=(*message.headers, *added))

    def is_justified_refusal(self, reply: Reply) -> bool:
        """Say whether the server may have refused the request because of these headers."""
        return reply.is_refusal and reply.status in {_TOO_MANY, *self.refusals}


_PROXIED: Headers = (
    ("Forwarded", 'for="[2001:db8::17]:4711";proto=https;host=models.example, for=192.0.2.43'),
    ("Via", "2 edge.example, 1.1 gateway.example (cache)"),
    ("X-Forwarded-For", "203.0.113.7, 192.0.2.43"),
    ("X-Forwarded-Host", "models.example"),
    ("X-Forwarded-Port", "443"),
    ("X-Forwarded-Proto", "https"),
)
_MESH: Headers = (
    ("x-forwarded-for", "192.0.2.43"),
    ("x-forwarded-proto", "https"),
    ("x-request-id", "7f1c6a52-9d0e-4b7c-8a1f-2f3f5f0a7c11"),
    ("x-envoy-expected-rq-timeout-ms", "15000"),
    ("x-envoy-attempt-count", "1"),
)
_NGINX: Headers = (("X-Real-IP", "192.0.2.43"), ("X-Forwarded-For", "192.0.2.43"))
_TRACE: Headers = (
    ("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
    ("tracestate", "vendor=t61rcWkgMzE, other=00f067aa0ba902b7"),
    ("baggage", "userId=alice, isProduction=false"),
)
_COOKIES: Headers = (("Cookie", 'session=c2Vzc2lvbg==; theme="dark, wide"; consent=a%2Cb'),)
_CREDENTIALS: Headers = (("Authorization", "Basic b2lwOmNvbmZvcm1hbmNl"),)
_LONG: Headers = (("X-Forwarded-Client-Cert", "Hash=0123abcd;Cert=" + "MIIC%2F" * (LONG_VALUE_CHARACTERS // 7)),)

# The kinds of clients and proxies, as an axis of the walk and as rows of a check. Each Accept has `*/*`, and no
# Accept-Encoding excludes identity: some answer is always acceptable, so no 406 is due (RFC 9110, 12.5.1, 12.5.3).
USUAL_HEADERS: Final[Mapping[str, UsualHeaders]] = {
    "requests": UsualHeaders(
        (("Accept-Encoding", "gzip, deflate, br, zstd"), ("Accept", "*/*"), ("Connection", "keep-alive"))
    ),
    "axios": UsualHeaders(
        (("Accept", "application/json, text/plain, */*"), ("Accept-Encoding", "gzip, compress, deflate, br"))
    ),
    "weights": UsualHeaders(
        (
            ("Accept", "application/json;q=0.9, application/octet-stream;q=0.8, */*;q=0.1"),
            ("Accept-Encoding", "gzip;q=0.2, identity;q=0.5, *;q=0.1"),
        )
    ),
    "any-coding": UsualHeaders((("Accept-Encoding", "*"),)),
    "accept-twice": UsualHeaders((("Accept", "application/json"), ("Accept", "*/*;q=0.1"))),
    "cookies": UsualHeaders(_COOKIES, _UNKNOWN_CREDENTIALS),
    "credentials": UsualHeaders(_CREDENTIALS, _UNKNOWN_CREDENTIALS),
    "trace": UsualHeaders(_TRACE),
    "proxies": UsualHeaders(_PROXIED, _UNTRUSTED_PROXY),
    "mesh": UsualHeaders(_MESH, _UNTRUSTED_PROXY),
    "nginx": UsualHeaders(_NGINX, _UNTRUSTED_PROXY),
    "long": UsualHeaders(_LONG, _TOO_LONG | _UNTRUSTED_PROXY),
}
