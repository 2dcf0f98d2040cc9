"""Scripts of answers, and the delivery of HTTP answers: head, Content-Length or chunks, content coding, pauses."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from itertools import pairwise
from threading import Event
from typing import Any, Final

from conformance.clients.answers.answer_barrier import AnswerBarrier
from conformance.clients.inference import Inference
from conformance.wire.client_request import ClientRequest
from conformance.wire.tensor import Tensor

Tensors = tuple[Tensor, ...]
VERSION: Final = "1"  # of every model, unless the caller names another


class Ending(StrEnum):
    """The state of the connection after an HTTP answer."""

    KEEP = "keep"  # stays open if the request allows it
    CLOSE = "close"
    CLOSE_LATER = "close later"  # closes after a moment, in which the connection is idle
    RESET = "reset"
    SILENT = "silent"  # stays open, but nothing more is sent


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """An HTTP answer: the bytes to send, and the same answer decoded for reports.

    Attributes:
        pieces: the bytes to send, head and framing included, in one write for each piece.
        status: the status; None if the head is incomplete.
        headers: the headers; empty if the head is incomplete.
        body: the sent part of the body, without HTTP framing.
        ending: the state of the connection after the answer.
        pause: seconds between two pieces.
        closed: set once the connection is closed after the answer.
    """

    pieces: tuple[bytes, ...]
    status: int | None = None
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    ending: Ending = Ending.KEEP
    pause: float = 0.0
    closed: Event = field(default_factory=Event, compare=False, repr=False)

    @property
    def is_connection_kept(self) -> bool:
        """Whether the connection stays open after the answer."""
        return self.ending is Ending.KEEP


@dataclass(frozen=True, slots=True)
class CallAnswer:
    """A gRPC answer.

    Attributes:
        message: the bytes of the message; not sent if `code` is not OK.
        code: the status code, by name.
        is_silent: whether the peer sends nothing before the deadline.
        is_cancelled: whether the peer cancels the call.
        is_closed: whether the peer closes the connection instead of answering.
    """

    message: bytes = b""
    code: str = "OK"
    details: str = ""
    is_silent: bool = False
    is_cancelled: bool = False
    is_closed: bool = False

    @property
    def is_connection_kept(self) -> bool:
        """Whether the connection stays open after the answer."""
        return not (self.is_silent or self.is_closed)


HttpScript = Callable[[ClientRequest, Inference, Tensors], HttpAnswer]
CallScript = Callable[[ClientRequest, Inference, Tensors], CallAnswer]


@dataclass(frozen=True, slots=True)
class Script:
    """A peer's answers to the inferences of one row, over either transport.

    Attributes:
        outputs: computes all output tensors of the model for an inference, including those not requested.
        http: makes the answer to an HTTP request from the requested output tensors.
        grpc: makes the answer to a gRPC call from the requested output tensors.
        barrier: delays the answers until all requests have arrived; None: answer at once.
    """

    outputs: Callable[[Inference], Tensors]
    http: HttpScript
    grpc: CallScript
    barrier: AnswerBarrier | None = None

    def list_requested_outputs(self, inference: Inference) -> Tensors:
        """Return the output tensors that an inference requests, in the requested order; all if it names no outputs."""
        made = self.outputs(inference)
        if inference.outputs is None:
            return made
        named = {one.name: one for one in made}
        return tuple(named[asked.name] for asked in inference.outputs if asked.name in named)


# --- delivery ---------------------------------------------------------------------------------------------------------


Headers = tuple[tuple[str, str], ...]
# Without the time of compression, so that an answer is the same in every run.
CODINGS: Final[dict[str, Callable[[bytes], bytes]]] = {
    "gzip": partial(gzip.compress, mtime=0),
    "deflate": zlib.compress,
}
# Step of the cuts in bytes, and number of pieces: the cuts fall inside names, numbers and elements.
_STEP: Final = 23
_PIECES: Final = 24


@dataclass(frozen=True, slots=True)
class Delivery:
    """The HTTP framing of an answer, and the way to send it.

    Attributes:
        format_name: converts each header name, for example to lower case.
        chunk_bytes: the number of bytes in a chunk; 0 sends Content-Length instead of chunks.
        until_close: whether to omit Content-Length, so that the end of the connection ends the body. Then
            `extra_headers` and `ending` have to close the connection.
        trailers: headers after the last chunk.
        is_slow: whether to send many small pieces with pauses between them.
        coding: the content coding of the body, named in Content-Encoding; empty for none.
        declared_coding: a content coding that Content-Encoding names although it is not applied; empty for none.
        ending: the state of the connection after the answer.
    """

    format_name: Callable[[str], str] = str
    separator: str = ": "
    chunk_bytes: int = 0
    until_close: bool = False
    extension: str = ""
    trailers: Headers = ()
    is_slow: bool = False
    coding: str = ""
    declared_coding: str = ""
    extra_headers: Headers = ()
    ending: Ending = Ending.KEEP

    def answer(self, status: int, headers: Headers, body: bytes, received: ClientRequest) -> HttpAnswer:
        """Return the framed answer to a request; Content-Length replaces chunks for HTTP/1.0, which has none.

        If the request does not keep the connection open, the answer has `Connection: close`.
        """
        coded = CODINGS[self.coding](body) if self.coding else body
        named = self.coding or self.declared_coding
        codings = (("Content-Encoding", named),) if named else ()
        chunk = 0 if received.version == "HTTP/1.0" else self.chunk_bytes
        length = () if self.until_close else (("Content-Length", str(len(coded))),)
        framing = (("Transfer-Encoding", "chunked"),) if chunk else length
        closing = () if received.keeps_connection else (("Connection", "close"),)
        more = (*self.extra_headers, *(field for field in closing if field not in self.extra_headers))
        all_headers = (*headers, *codings, *framing, *more)
        framed = encode_chunks(coded, chunk, self.extension, self.trailers) if chunk else coded
        octets = self.encode_head(status, all_headers) + framed
        whole = HttpAnswer((octets,), status, all_headers, coded, self.ending)
        return replace(whole, pieces=split_pieces(octets), pause=0.002) if self.is_slow else whole

    def encode_head(self, status: int, headers: Headers) -> bytes:
        """Encode the status line and the headers."""
        lines = [f"{self.format_name(name)}{self.separator}{value}" for name, value in headers]
        return "\r\n".join([f"HTTP/1.1 {status} -", *lines, "", ""]).encode("latin-1")


def encode_chunks(body: bytes, size: int, extension: str = "", trailers: Headers = ()) -> bytes:
    """Encode a body in chunks of `size` bytes (the last may be shorter), with the terminating chunk."""
    parts = [body[start : start + size] for start in range(0, len(body), size)]
    chunks = [f"{len(part):x}{extension}\r\n".encode() + part + b"\r\n" for part in parts]
    behind = "".join(f"{name}: {value}\r\n" for name, value in trailers)
    return b"".join(chunks) + f"0\r\n{behind}\r\n".encode()


def split_pieces(octets: bytes) -> tuple[bytes, ...]:
    """Split bytes into about 24 equal pieces, but at least 23 bytes each, and the last five bytes one by one."""
    step = max(_STEP, len(octets) // _PIECES)
    edges: Sequence[int] = sorted({*range(0, len(octets), step), *range(max(0, len(octets) - 5), len(octets) + 1)})
    return tuple(octets[start:end] for start, end in pairwise(edges))


PLAIN: Final = Delivery()


def make_json_answer(status: int, document: Mapping[str, Any], received: ClientRequest) -> HttpAnswer:
    """Return an answer with a JSON body and without an inference header."""
    return PLAIN.answer(status, (("Content-Type", "application/json"),), json.dumps(document).encode(), received)
