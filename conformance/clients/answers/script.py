"""What a scripted peer does in answer to an inference: the words that peers, answers and checks share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
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
