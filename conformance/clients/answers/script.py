"""Scripts of answers, and how the bytes of an answer go out over HTTP: head, length or chunks, pieces, codings."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise
from typing import Final

from conformance.clients.inference import Inference
from conformance.wire.client_request import ClientRequest
from conformance.wire.tensor import Tensor

Tensors = tuple[Tensor, ...]
VERSION: Final = "1"  # of every model, where the caller names none


class Ending(StrEnum):
    """What becomes of the connection behind an answer."""

    KEEP = "keep"  # it is kept, as far as the request allows
    CLOSE = "close"
    RESET = "reset"
    SILENT = "silent"  # it stays open and nothing more comes


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """An answer over HTTP, as it goes out.

    Attributes:
        pieces: bytes, each written on its own; head and framing are among them.
        status: None where no whole head goes out; `headers` and `body`: what the pieces mean, for reports.
        body: after HTTP's framing, as far as it goes out.
        pause: seconds between two pieces.
    """

    pieces: tuple[bytes, ...]
    status: int | None = None
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    ending: Ending = Ending.KEEP
    pause: float = 0.0

    @property
    def is_kept(self) -> bool:
        """Whether the connection is kept behind it."""
        return self.ending is Ending.KEEP


@dataclass(frozen=True, slots=True)
class CallAnswer:
    """An answer over gRPC.

    Attributes:
        message: the bytes of the message; none goes out where `code` is not OK.
        code: of the status, by name.
        is_silent: nothing comes before the deadline.
        is_cancelled: the server cancels the call.
        is_closed: the connection is closed instead of an answer.
    """

    message: bytes = b""
    code: str = "OK"
    details: str = ""
    is_silent: bool = False
    is_cancelled: bool = False
    is_closed: bool = False

    @property
    def is_kept(self) -> bool:
        """Whether the connection is kept behind it."""
        return not (self.is_silent or self.is_closed)


HttpScript = Callable[[ClientRequest, Inference, Tensors], HttpAnswer]
CallScript = Callable[[ClientRequest, Inference, Tensors], CallAnswer]


@dataclass(frozen=True, slots=True)
class Script:
    """How a peer answers the inferences of one row, over either transport.

    Attributes:
        outputs: the tensors of the model's answer to an inference, whether or not they are all asked for.
        http: the answer to a request, from these tensors; `grpc`: likewise to a call.
    """

    outputs: Callable[[Inference], Tensors]
    http: HttpScript
    grpc: CallScript

    def asked_outputs(self, inference: Inference) -> Tensors:
        """Return the tensors that the inference asks for, in its order; all of them where it names none."""
        made = self.outputs(inference)
        if inference.outputs is None:
            return made
        named = {one.name: one for one in made}
        return tuple(named[asked.name] for asked in inference.outputs if asked.name in named)


# --- delivery ---------------------------------------------------------------------------------------------------------


Headers = tuple[tuple[str, str], ...]
CODINGS: Final[dict[str, Callable[[bytes], bytes]]] = {"gzip": gzip.compress, "deflate": zlib.compress}
# What is cut into pieces is cut at these places and in between: inside names, numbers and elements.
_STEP: Final = 23
_PIECES: Final = 24


@dataclass(frozen=True, slots=True)
class Delivery:
    """How an answer is delivered.

    Attributes:
        spelled: how names of headers are spelled.
        colon: what stands between name and value.
        chunk: bytes of a chunk; 0 sends Content-Length instead.
        extension: of each chunk; `trailers`: headers behind the last one.
        dribbled: in many small pieces with pauses between them.
        coding: the content coding that is applied, and announced.
        announces: a content coding that is announced and not applied.
        more: further headers.
        ending: of the connection behind it.
    """

    spelled: Callable[[str], str] = str
    colon: str = ": "
    chunk: int = 0
    extension: str = ""
    trailers: Headers = ()
    dribbled: bool = False
    coding: str = ""
    announces: str = ""
    more: Headers = ()
    ending: Ending = Ending.KEEP

    def answer(self, status: int, headers: Headers, body: bytes, *, version: str = "HTTP/1.1") -> HttpAnswer:
        """Return an answer; to HTTP/1.0, which knows no chunks, it goes out with its length."""
        coded = CODINGS[self.coding](body) if self.coding else body
        named = self.coding or self.announces
        codings = (("Content-Encoding", named),) if named else ()
        chunk = 0 if version == "HTTP/1.0" else self.chunk
        framing = ("Transfer-Encoding", "chunked") if chunk else ("Content-Length", str(len(coded)))
        all_headers = (*headers, *codings, framing, *self.more)
        framed = encode_chunks(coded, chunk, self.extension, self.trailers) if chunk else coded
        octets = self.head(status, all_headers) + framed
        whole = HttpAnswer((octets,), status, all_headers, coded, self.ending)
        return replace(whole, pieces=split_pieces(octets), pause=0.002) if self.dribbled else whole

    def head(self, status: int, headers: Headers) -> bytes:
        """Return status line and headers."""
        lines = [f"{self.spelled(name)}{self.colon}{value}" for name, value in headers]
        return "\r\n".join([f"HTTP/1.1 {status} -", *lines, "", ""]).encode("latin-1")


def encode_chunks(body: bytes, size: int, extension: str = "", trailers: Headers = ()) -> bytes:
    """Return a body in chunks of a size, the last of which may be shorter, and the one of no bytes that ends them."""
    parts = [body[start : start + size] for start in range(0, len(body), size)]
    chunks = [f"{len(part):x}{extension}\r\n".encode() + part + b"\r\n" for part in parts]
    behind = "".join(f"{name}: {value}\r\n" for name, value in trailers)
    return b"".join(chunks) + f"0\r\n{behind}\r\n".encode()


def split_pieces(octets: bytes) -> tuple[bytes, ...]:
    """Return bytes in pieces: single bytes of what ends them, and longer ones before that."""
    step = max(_STEP, len(octets) // _PIECES)
    edges: Sequence[int] = sorted({*range(0, len(octets), step), *range(max(0, len(octets) - 5), len(octets) + 1)})
    return tuple(octets[start:end] for start, end in pairwise(edges))


PLAIN: Final = Delivery()
