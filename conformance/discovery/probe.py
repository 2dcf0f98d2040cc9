"""One request that uses an extension, and what its answer says of whether the server has it.

Refused means not offered; answered means offered, and to be judged, however wrong the answer is. Inputs in a form that
a server does not know cannot be answered; an option that it does not know may be ignored, as any parameter may. So an
answer that is what the request without the option gets says nothing. What is neither refused nor answered, because the
server broke, is no refusal either: `Target.broken` has it.
"""

from __future__ import annotations

from dataclasses import dataclass

from conformance.transport.exchange import Reply
from conformance.transport.target import Target
from conformance.wire.request import INFERENCE_HEADER, InferRequest, Message


@dataclass(frozen=True, slots=True)
class Probe:
    """An answer to a request that uses an extension.

    Attributes:
        plain: the answer to the same request without it, where a server might have ignored it; else None.
    """

    reply: Reply
    plain: Reply | None = None

    @property
    def is_recognized(self) -> bool:
        """Whether the server took notice of the extension, rightly or wrongly."""
        return is_answered(self.reply) and (self.plain is None or _gist(self.reply) != _gist(self.plain))


def send_probe(target: Target, request: InferRequest | Message, plain: InferRequest | Message) -> Probe:
    """Send a request with an option, and the plain one where that is answered."""
    reply = target.infer(request)
    return Probe(reply, target.infer(plain) if is_answered(reply) else None)


def is_answered(reply: Reply) -> bool:
    """Whether an answer came that is no refusal; it need not be whole."""
    return reply.status is not None and 200 <= reply.status < 300


def _gist(reply: Reply) -> tuple[object, ...]:
    """Return what of an answer is the same in two of one form."""
    answer = reply.answer
    outputs = [(output.name, output.datatype, output.shape, output.binary) for output in answer.outputs]
    outputs.sort(key=str)
    kinds = sorted({finding.kind for finding in answer.findings})
    return reply.status, reply.header(INFERENCE_HEADER), outputs, kinds, reply.exchange.failure
