"""The chunked transfer coding as clients may write it (RFC 9112, 7.1): extensions, trailers, sizes in other digits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ChunkFormat:
    """How the chunks of a body are written; as it stands, in the plainest way.

    Attributes:
        extension: what stands behind each size, from its semicolon on.
        trailers: fields behind the last chunk.
        capitals: sizes are written with A to F.
        zeros: so many digits each size has at least, the last one's included.
    """

    extension: str = ""
    trailers: tuple[tuple[str, str], ...] = ()
    capitals: bool = False
    zeros: int = 1

    @property
    def described(self) -> str:
        """What is unusual about it, for a person; empty where nothing is."""
        said = {
            f", with {self.extension} behind each size": self.extension,
            f", with {', '.join(name for name, _ in self.trailers)} behind the last": self.trailers,
            ", sizes in capitals": self.capitals,
            f", sizes of {self.zeros} digits": self.zeros > 1,
        }
        return "".join(text for text, holds in said.items() if holds)

    def written(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the pieces as chunks, and what ends the body; an empty piece would end it early and is left out."""
        yield from (self._size(len(piece)) + piece + b"\r\n" for piece in pieces if piece)
        trailers = "".join(f"{name}: {value}\r\n" for name, value in self.trailers)
        yield self._size(0) + f"{trailers}\r\n".encode("latin-1")

    def _size(self, size: int) -> bytes:
        digits = f"{size:0{self.zeros}{'X' if self.capitals else 'x'}}"
        return f"{digits}{self.extension}\r\n".encode("latin-1")


PLAIN = ChunkFormat()
