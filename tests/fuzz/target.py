"""What is fuzzed: a property that has to hold for any bytes at all."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hashlib import sha1
from pathlib import Path

CORPUS = Path(__file__).parent / "corpus"


@dataclass(frozen=True, slots=True)
class Target:
    """A property and where to begin.

    Attributes:
        name: of the target, and of the folder of its corpus.
        holds: takes an input; raises where the property does not hold, whatever the exception.
        seeds: inputs that are in order, or nearly so.
        largest: bytes of an input.
    """

    name: str
    holds: Callable[[bytes], None]
    seeds: Callable[[], Iterable[bytes]]
    largest: int = 4096

    @property
    def folder(self) -> Path:
        """Where its corpus is kept."""
        return CORPUS / self.name

    def inputs(self) -> list[bytes]:
        """Return seeds and corpus, each input once, the small ones first."""
        kept = [path.read_bytes() for path in sorted(self.folder.glob("*"))]
        return sorted({*self.seeds(), *kept}, key=lambda data: (len(data), data))


def make_file_name(data: bytes) -> str:
    """Return the name of an input's file."""
    return sha1(data, usedforsecurity=False).hexdigest()[:16]
