"""Options for sending a message: HTTP version, framing of the body, TCP segments, pipelining.

Source: RFC 9112, 6 "Message Body" and 7.1 "Chunked Transfer Coding".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ChunkFormat:
    """The format of the chunks of a body; the defaults are the simplest format.

    Attributes:
        extension: the chunk extension after each size, including its semicolon.
        trailers: names and values of the trailer fields after the last chunk.
        capitals: whether sizes use the digits A to F in upper case.
        zeros: the minimum number of digits of each size; shorter sizes get leading zeros.
        splits_lines: whether the lines around each chunk are cut into two pieces.
    """

    extension: str = ""
    trailers: tuple[tuple[str, str], ...] = ()
    capitals: bool = False
    zeros: int = 1
    splits_lines: bool = False

    @property
    def described(self) -> str:
        """The differences from the default format, in words; empty if there are none."""
        deviations = {
            f", with {self.extension} after each chunk size": self.extension,
            f", with trailer {', '.join(name for name, _ in self.trailers)}": self.trailers,
            ", chunk sizes in capitals": self.capitals,
            f", chunk sizes of {self.zeros} digits": self.zeros > 1,
            ", each line around them in two segments": self.splits_lines,
        }
        return "".join(text for text, holds in deviations.items() if holds)

    def format_chunks(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the pieces as chunks, then the last chunk; skip empty pieces, which would end the body early."""
        trailers = "".join(f"{name}: {value}\r\n" for name, value in self.trailers).encode("latin-1")
        chunks = [self._format_chunk_size(len(piece)) + piece + b"\r\n" for piece in pieces if piece]
        for chunk in (*chunks, self._format_chunk_size(0) + trailers + b"\r\n"):
            yield from (chunk[:1], chunk[1:-1], chunk[-1:]) if self.splits_lines else (chunk,)

    def _format_chunk_size(self, size: int) -> bytes:
        digits = f"{size:0{self.zeros}{'X' if self.capitals else 'x'}}"
        return f"{digits}{self.extension}\r\n".encode("latin-1")


PLAIN_CHUNKS = ChunkFormat()


@dataclass(frozen=True, slots=True)
class SendOptions:
    """How a message is sent.

    Attributes:
        chunked: the offsets at which the body is cut into chunks; None: the body is sent with Content-Length.
        segments: the offsets at which the body is cut into TCP segments; negative ones count from the end of the head.
        closing: whether the client sends `Connection: close`.
        pipelined: whether the messages of one connection are sent in one write, before any answer is read.
    """

    version: str = "1.1"
    chunked: tuple[int, ...] | None = None
    chunk_format: ChunkFormat = PLAIN_CHUNKS
    segments: tuple[int, ...] = ()
    closing: bool = False
    pipelined: bool = False

    @property
    def note(self) -> str:
        """The differences from the default options, in words; empty if there are none."""
        deviations = {
            f"HTTP/{self.version}": self.version != "1.1",
            f"body in {len(self.chunked or ()) + 1} chunks{self.chunk_format.described}": self.chunked is not None,
            f"body in {len(self.segments) + 1} TCP segments": bool(self.segments),
        }
        return ", ".join(text for text, holds in deviations.items() if holds)


PLAIN = SendOptions()
