"""User-Agent values of common clients. Most rows send such a value, so that no server can treat the suite specially.

The seed of the run determines which value a row sends; the report contains the seed.

Source: RFC 9110, 10.1.5 "User-Agent".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Final

from conformance.transport.broken_request import is_busy
from conformance.transport.exchange import Reply
from conformance.transport.http_request import USER_AGENT
from conformance.transport.settings import Settings
from conformance.wire.grpc_request import GRPC_METHOD
from conformance.wire.request import Message

HEADER: Final = "User-Agent"
# The default seed: runs without an explicit seed send the same requests each time.
DEFAULT_SEED: Final = 0
MAX_SEED: Final = 2**32 - 1
# One of this many rows, on average, uses the suite's own name.
_OWN_NAME_INTERVAL = 4


@dataclass(frozen=True, slots=True)
class ClientName:
    """The `User-Agent` value of a client, over HTTP and over gRPC."""

    http: str
    grpc: str

    def add_user_agent(self, message: Message) -> Message:
        """Return the message with this `User-Agent`, or unchanged if the message already has a `User-Agent`."""
        if message.header(HEADER) is not None:
            return message
        return message.with_header(HEADER, self.grpc if message.method == GRPC_METHOD else self.http)

    def pad(self, other: ClientName) -> ClientName:
        """Return the name with blanks after it over HTTP, if it is shorter than another; both are then of one length.

        Blanks after a value are no part of it (RFC 9112, 5). Requests with padded names are cut alike: a server whose
        answer depends on where its reads end treats both alike. HTTP/2 permits no such blanks.
        """
        return replace(self, http=self.http.ljust(len(other.http)))


OWN_CLIENT: Final[ClientName] = ClientName(USER_AGENT, USER_AGENT)
# The defaults of these libraries. Browsers are left out, because gateways send HTML pages to them.
COMMON_NAMES: Final[Mapping[str, ClientName]] = {
    "tritonclient": ClientName("python/gevent-http-client-2.3.9", "grpc-python/1.71.2 grpc-c/46.0.0 (linux; chttp2)"),
    "requests": ClientName("python-requests/2.32.5", "grpc-python-asyncio/1.71.2 grpc-c/46.0.0 (linux; chttp2)"),
    "curl": ClientName("curl/8.14.1", "grpc-c++/1.71.0 grpc-c/46.0.0 (linux; chttp2)"),
    "go": ClientName("Go-http-client/1.1", "grpc-go/1.72.0"),
    "java": ClientName("Java-http-client/21.0.7", "grpc-java-netty/1.72.0"),
    "okhttp": ClientName("okhttp/4.12.0", "grpc-java-okhttp/1.72.0"),
    "node": ClientName("axios/1.9.0", "grpc-node-js/1.13.3"),
}


def choose_names(seed: int | None, scope: str, refused: Collection[str] = ()) -> tuple[ClientName, ClientName]:
    """Return two client names for a row: the first for its requests, the second for its retry after a failure.

    One of the two is the suite's own name. Without a seed, the first name is the suite's own.

    `seed`: see `choose_seed`.
    `refused`: the common names that the server refuses: see `find_refused_names`.
    """
    number = int.from_bytes(sha256(f"{seed} {scope}".encode()).digest()[:8])
    accepted = [client for name, client in COMMON_NAMES.items() if name not in refused]
    usual = accepted[number // _OWN_NAME_INTERVAL % len(accepted)]
    return (OWN_CLIENT, usual) if seed is None or number % _OWN_NAME_INTERVAL == 0 else (usual, OWN_CLIENT)


def find_refused_names(send: Callable[[Message], Reply], message: Message) -> dict[str, str]:
    """Return the common names under which a server refuses a message with a 4xx status, each with the status.

    HTTP lets a gateway refuse clients by name. A server that refuses all of them serves the suite alone: return none.
    """
    replies = {name: send(client.add_user_agent(message)) for name, client in COMMON_NAMES.items()}
    refused = {name: reply.status_line for name, reply in replies.items() if is_client_refused(reply)}
    return refused if len(refused) < len(COMMON_NAMES) else {}


def is_client_refused(reply: Reply) -> bool:
    """Return whether a server refused a request, for good and with a 4xx status."""
    return reply.is_refusal and (reply.status or 0) < 500 and not is_busy(reply)


def choose_seed(profile: str, settings: Settings, chosen: int | None = None) -> int | None:
    """Return the seed of a run; None if all rows send the same name: the suite's, or the user's header.

    Args:
        profile: the profile of the run; only `certify` varies the names.
        settings: the settings of the target; a `User-Agent` among their headers applies to all rows.
        chosen: the user's seed; None for the default.
    """
    if profile != "certify" or HEADER.lower() in (name.lower() for name, _ in settings.headers):
        return None
    return DEFAULT_SEED if chosen is None else chosen
