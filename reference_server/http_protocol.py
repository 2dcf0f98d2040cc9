"""What uvicorn does with bytes that are not HTTP, bent to the protocol: every error has the OIP form.

The one place that touches uvicorn's inside.
"""

from __future__ import annotations

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from reference_server.response import encode


class OipHttpProtocol(HttpToolsProtocol):
    """uvicorn's HTTP protocol with an OIP error for malformed requests."""

    def send_400_response(self, msg: str) -> None:
        """Refuse a malformed request and close; a whole request in front of it still gets its own answer first."""
        if self.cycle is not None and not self.cycle.response_complete and not self.cycle.more_body:
            self.cycle.keep_alive = False
            return
        body = encode({"error": f"not HTTP: {msg}"})
        head = f"HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
        self.transport.write(f"{head}connection: close\r\n\r\n".encode("ascii") + body)
        self.transport.close()
