"""What uvicorn does with bytes, bent to the protocol: every error has the OIP form, and a trailer is no header.

The one place that touches uvicorn's inside.
"""

from __future__ import annotations

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from reference_server.response import encode


class OipHttpProtocol(HttpToolsProtocol):
    """uvicorn's HTTP protocol with an OIP error for malformed requests, and without trailers."""

    _is_behind_the_head = False

    def on_message_begin(self) -> None:
        """Begin a request."""
        self._is_behind_the_head = False
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; a field behind the body is none, whatever its name (RFC 9112, 7.1.2)."""
        if not self._is_behind_the_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """End the head of a request."""
        self._is_behind_the_head = True
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse a malformed request and close; a whole request in front of it still gets its own answer first."""
        if self.cycle is not None and not self.cycle.response_complete and not self.cycle.more_body:
            self.cycle.keep_alive = False
            return
        body = encode({"error": f"not HTTP: {msg}"})
        head = f"HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
        self.transport.write(f"{head}connection: close\r\n\r\n".encode("ascii") + body)
        self.transport.close()
