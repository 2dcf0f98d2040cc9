"""A request as it came from a client: what the rules for clients look at, whoever received it. Sans-I/O."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, NamedTuple
from urllib.parse import unquote_to_bytes

from conformance.wire.grpc_request import GRPC_METHOD

INFER: Final = "/infer"


@dataclass(frozen=True, slots=True)
class ClientRequest:
    """One request of a client.

    Attributes:
        method: of HTTP; `GRPC_METHOD` for a call.
        path: the target of the request line as it came, with its query; of a call, `/SERVICE/METHOD`.
        headers: in wire order and with their own spelling; of a call, its metadata.
        body: after HTTP's framing, and without any decoding of content codings; of a call, the serialized message.
        version: of HTTP, as the request line states it.
        is_chunked: whether the body came in chunks.
        trouble: what kept it from being a whole request of HTTP (a head that cannot be read, a body that is cut short),
            as one line; else empty.
    """

    method: str
    path: str
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    version: str = "HTTP/1.1"
    is_chunked: bool = False
    trouble: str = ""

    @property
    def is_over_grpc(self) -> bool:
        """Whether it is a call over gRPC."""
        return self.method == GRPC_METHOD

    @property
    def is_inference(self) -> bool:
        """Whether it asks for an inference, whatever else is wrong with it; all else is no subject of the rules."""
        if self.is_over_grpc:
            return self.path.endswith(("/ModelInfer", "/ModelStreamInfer"))
        return self.path.partition("?")[0].rstrip("/").endswith(INFER)

    def header(self, name: str) -> str | None:
        """Return the value of a header, in any case; several are joined by commas (RFC 9110 5.3); None without any."""
        values = self.values(name)
        return ", ".join(values) if values else None

    def values(self, name: str) -> list[str]:
        """Return every value of a header, in any case."""
        return [value for key, value in self.headers if key.lower() == name.lower()]


# What RFC 3986 lets stand in a segment of a path; the rest is percent-encoded.
_SEGMENT: Final = r"(?:[A-Za-z0-9\-._~!$&'()*+,;=:@]|%[0-9A-Fa-f]{2})+"
_INFER: Final = re.compile(rf"/v2/models/(?P<model>{_SEGMENT})(?:/versions/(?P<version>{_SEGMENT}))?/infer")


class ModelPath(NamedTuple):
    """A model, and its version where the path has one: decoded, as the bytes that were encoded."""

    model: bytes
    version: bytes | None


def parse_path(path: str) -> ModelPath | None:
    """Return the model that a path names, whatever stands before `/v2` and in the query; None for any other path."""
    plain = path.partition("?")[0]
    start = plain.find("/v2/models/")
    while start >= 0:
        found = _INFER.fullmatch(plain, start)
        if found:
            version = found["version"]
            return ModelPath(unquote_to_bytes(found["model"]), None if version is None else unquote_to_bytes(version))
        start = plain.find("/v2/models/", start + 1)
    return None
