"""A request that was received from a client, over HTTP or gRPC; the rules for clients judge it. Sans-I/O."""

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
        method: the HTTP method; `GRPC_METHOD` for a call.
        path: the target of the request line, unchanged, with its query; for a gRPC call `/SERVICE/METHOD`.
        headers: the headers in wire order, with the case of the client; for a gRPC call its metadata.
        body: the body after HTTP's framing, with content codings still applied; for a gRPC call the serialized message.
        is_chunked: whether the body came in chunks.
        trouble: why the request is not a complete HTTP request, such as a truncated body; empty if it is complete.
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
        """Whether the request is a gRPC call."""
        return self.method == GRPC_METHOD

    @property
    def is_inference(self) -> bool:
        """Whether this is an inference request, even a malformed one; the rules ignore all other requests."""
        if self.is_over_grpc:
            return self.path.endswith(("/ModelInfer", "/ModelStreamInfer"))
        return self.path.partition("?")[0].rstrip("/").endswith(INFER)

    @property
    def keeps_connection(self) -> bool:
        """Whether the client keeps the connection open after an answer (RFC 9112 9.3)."""
        options = [option.strip().lower() for option in (self.header("Connection") or "").split(",")]
        if self.trouble or "close" in options:
            return False
        return self.version != "HTTP/1.0" or "keep-alive" in options

    def header(self, name: str) -> str | None:
        """Return a header, case-insensitively; several values are joined by commas (RFC 9110 5.3); None if absent."""
        values = self.values(name)
        return ", ".join(values) if values else None

    def values(self, name: str) -> list[str]:
        """Return all values of a header, case-insensitively."""
        return [value for key, value in self.headers if key.lower() == name.lower()]


# The characters that RFC 3986 allows in a path segment; others are percent-encoded.
_SEGMENT: Final = r"(?:[A-Za-z0-9\-._~!$&'()*+,;=:@]|%[0-9A-Fa-f]{2})+"
_INFER: Final = re.compile(rf"/v2/models/(?P<model>{_SEGMENT})(?:/versions/(?P<version>{_SEGMENT}))?/infer")


class ModelPath(NamedTuple):
    """The name of a model, and its version if the path contains a version, as percent-decoded bytes."""

    model: bytes
    version: bytes | None


def parse_path(path: str) -> ModelPath | None:
    """Return the model in the path of an infer endpoint; None for other paths.

    The query, and a prefix before `/v2`, are ignored.
    """
    plain = path.partition("?")[0]
    start = plain.find("/v2/models/")
    while start >= 0:
        found = _INFER.fullmatch(plain, start)
        if found:
            version = found["version"]
            return ModelPath(unquote_to_bytes(found["model"]), None if version is None else unquote_to_bytes(version))
        start = plain.find("/v2/models/", start + 1)
    return None
