"""How the bytes of a message go out: version of HTTP, framing of the body, cuts by TCP.

Source: RFC 9112, 6 "Message Body" and 7.1 "Chunked Transfer Coding".
"""

from __future__ import annotations

from dataclasses import dataclass

from conformance.transport import chunk_format
from conformance.transport.chunk_format import ChunkFormat


@dataclass(frozen=True, slots=True)
class SendOptions:
    """One way to send a message.

    Attributes:
        version: of HTTP.
        chunked: where the body is cut into chunks; None gives its length instead.
        written: how the chunks are written.
        segments: where TCP cuts the body.
        closing: the client says that it closes the connection after the answer.
    """

    version: str = "1.1"
    chunked: tuple[int, ...] | None = None
    written: ChunkFormat = chunk_format.PLAIN
    segments: tuple[int, ...] = ()
    closing: bool = False

    @property
    def note(self) -> str:
        """What is unusual about it, for a person; empty where nothing is."""
        said = {
            f"HTTP/{self.version}": self.version != "1.1",
            f"body in {len(self.chunked or ()) + 1} chunks{self.written.described}": self.chunked is not None,
            f"body in {len(self.segments) + 1} TCP segments": bool(self.segments),
        }
        return ", ".join(text for text, holds in said.items() if holds)


PLAIN = SendOptions()
