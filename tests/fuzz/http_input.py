"""An HTTP message as one input of a fuzzer: a line of what stands around the body, then the body.

The line has four fields with semicolons between: role, Content-Type, Content-Encoding, inference header. An empty field
is a header that is not there. So an input can be read, and mutated, by people, too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

from conformance.spec import data_files
from conformance.wire.client_request import ClientRequest
from conformance.wire.request import INFERENCE_HEADER


class HttpInput(NamedTuple):
    """A message; None where a header is not there."""

    role: str
    content_type: str | None
    coding: str | None
    inference_header: str | None
    body: bytes

    @classmethod
    def from_bytes(cls, data: bytes) -> HttpInput:
        """Return the message that any bytes stand for."""
        line, _, body = data.partition(b"\n")
        role, *headers = [*line.decode("latin-1").split(";", 3), "", "", ""][:4]
        content_type, coding, header = (value or None for value in headers)
        return cls(role, content_type, coding, header, body)

    def to_bytes(self) -> bytes:
        fields = (self.role, self.content_type, self.coding, self.inference_header)
        return ";".join(field or "" for field in fields).encode("latin-1") + b"\n" + self.body

    def received(self) -> ClientRequest:
        """Return it as a request that a client sent."""
        given = (
            ("Content-Type", self.content_type),
            ("Content-Encoding", self.coding),
            (INFERENCE_HEADER, self.inference_header),
        )
        headers = tuple((name, value) for name, value in given if value is not None)
        return ClientRequest("POST", f"/v2/models/{self.role}/infer", headers, self.body)


def golden_requests() -> Iterator[bytes]:
    """Yield the golden requests over HTTP, valid and invalid ones."""
    for path in sorted(data_files.find_folder("fixtures").glob("*valid/*/case.json")):
        case = json.loads(path.read_text(encoding="utf-8"))
        body = (path.parent / "request.bin").read_bytes()
        if len(body) > 2048:
            continue
        headers = {name.lower(): str(value) for name, value in case["request"].get("headers", {}).items()}
        names = ("content-type", "content-encoding", INFERENCE_HEADER.lower())
        role = case["request"]["path"].split("/")[3]
        content_type, coding, header = map(headers.get, names)
        yield HttpInput(role, content_type, coding, header, body).to_bytes()
