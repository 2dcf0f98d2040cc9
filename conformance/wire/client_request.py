"""A request as it came from a client: what the rules for clients look at, whoever received it. Sans-I/O."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

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
