"""Describe requests that a server has to refuse; `errors` and `grpc_calls` also judge how it refuses them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from conformance.expect.refusals import expect_refusal, expect_refusal_or_right
from conformance.expect.unmet import NotApplicableError
from conformance.roles.model import MessageBuilder, Model
from conformance.spec import ledger
from conformance.spec.check import Row
from conformance.spec.extensions import EXTENSIONS
from conformance.spec.fit import Fit
from conformance.transport.any_target import AnyTarget
from conformance.transport.broken_request import BUSY_STATUSES
from conformance.transport.client_names import find_refused_names, is_client_refused
from conformance.transport.exchange import Reply
from conformance.wire.request import Message
from conformance.wire.tensor import Tensor

# Statuses of a server that is overloaded or limits bodies; they do not show that it mixes up requests.
LIMIT_STATUSES = (413, *BUSY_STATUSES)


def require_client_served(target: AnyTarget, reply: Reply, message: Message) -> None:
    """Require that the reply to `message` under a client's name is no refusal of this client.

    Raises NotApplicableError: the server refuses the client, and serves other clients.
    """
    if is_client_refused(reply) and find_refused_names(target.send, message):
        raise NotApplicableError(f"the server refuses this client by its name: {reply.status_line}")


# requirement -> the part of the request that is faulty; a row's id names only the fault itself.
SUBJECTS: Mapping[str, str] = {
    "BIN-HEADER-MISSING": "binary data without Inference-Header-Content-Length",
    **{
        f"BIN-HEADER-{fault}": "its Inference-Header-Content-Length"
        for fault in ("TOO-LONG", "SPELLING", "WRONG", "WRONG-ON-JSON", "TWICE")
    },
    **dict.fromkeys(("BIN-BODY-SHORT", "BIN-SIZE-WRONG", "BIN-SIZE-FALSE", "BIN-SIZE-TYPE"), "its binary_data_size"),
    "BIN-BODY-LONG": "bytes after the data of the last input",
    "BIN-DATA-AND-SIZE": "an input with both data and binary_data_size",
    "BIN-SIZE-MISSING": "an input with neither data nor binary_data_size",
    "BIN-BYTES-MISFRAMED": "the length prefixes of its BYTES elements",
    "BIN-PARAMETER-TYPE": "a parameter that is not a boolean",
    "RAW-SEVERAL-INPUTS": "a raw request to a model with several inputs",
    "RAW-TWO-VARIABLES": "a raw request to an input with several variable dimensions",
    "RAW-BYTES-SHAPE": "a raw request to a BYTES input of another shape than [1]",
    "RAW-SIZE": "a raw body that does not fit the input",
    "RAW-BATCH-OF-ONE": "a raw request with two batch items",
    "CLS-COUNT-WRONG": "its parameter classification",
    "OIP-JSON-STRICT": "syntax that is not JSON",
    "OIP-SIGNATURE": "an input that contradicts the model's metadata",
    "OIP-DIMENSION-NEGATIVE": "a shape with a negative dimension",
    "OIP-NESTING": "data whose nesting does not fit their shape",
}


@dataclass(frozen=True, slots=True)
class Refusal:
    """A request with one fault, which a server has to refuse, or should refuse if it has `tensors`.

    Attributes:
        fault: names the fault, in words joined by hyphens; the row's id.
        requirement: the id of the requirement that servers refuse the request.
        role: the role of the model that receives the request; None if only deployed models receive it.
        needs: extensions that the server must support, so that a refusal has no other cause.
        tensors: returns the inputs of a request that a server may also answer correctly. For such a request, a refusal
            is only advice; the requirement with the suffix -SAFE demands a refusal or a correct answer. None if the
            server has to refuse the request.
        unknown: the request names something unknown, or cannot be parsed: over gRPC, codes other than INVALID_ARGUMENT
            are accepted as well.
        fit: the deployed models that can receive the request; None for none.
    """

    fault: str
    requirement: str
    role: str | None
    message: MessageBuilder
    needs: tuple[str, ...] = ()
    unknown: bool = False
    tensors: Callable[[Model], Sequence[Tensor]] | None = None
    fit: Fit | None = None

    def __post_init__(self) -> None:
        """Restrict requests that contradict metadata to deployed models whose metadata list inputs."""
        if self.fit and self.requirement.startswith("OIP-SIGNATURE"):
            object.__setattr__(self, "fit", replace(self.fit, is_described=True))

    @property
    def extensions(self) -> tuple[str, ...]:
        """The extensions that the request uses; a server without these extensions may not understand the request."""
        own = ledger.get_requirement(self.requirement).extension
        return tuple(dict.fromkeys((*((own,) if own in EXTENSIONS else ()), *self.needs)))

    @property
    def described(self) -> str:
        """The fault in words, for messages."""
        subject = SUBJECTS.get(self.requirement)
        words = re.sub("right in ([0-9]+) bits", r"right only modulo 2^\1", self.fault.replace("-", " "))
        words = re.sub("2 to the ([0-9]+)", r"2^\1", words)
        return f"{subject}: {words}" if subject else words

    def list_tensors(self, model: Model) -> Sequence[Tensor]:
        """Return the inputs whose correct outputs a server may also return; empty if it has to refuse the request."""
        return self.tensors(model) if self.tensors else ()

    def make_row(self) -> Row:
        """Return the row of a check that sends this request."""
        answers = (f"{self.requirement}-SAFE", self.requirement) if self.tensors else (self.requirement,)
        return Row(self.fault, (self,), role=self.role, requirements=answers, needs=self.needs, fit=self.fit)


def expect_fault_refused(target: AnyTarget, model: Model, refusal: Refusal) -> None:
    """Expect the server to refuse a request; if the refusal has `tensors`, a correct answer meets the MUST as well."""
    message, fault, should = refusal.message(model), refusal.described, refusal.requirement
    if refusal.tensors is None:
        expect_refusal(target, model, message, fault)
    else:
        expect_refusal_or_right(
            target, model, message, refusal.tensors(model), fault, must=f"{should}-SAFE", should=should
        )


def make_refusal_rows(refusals: Iterable[Refusal], *requirements: str) -> list[Row]:
    """Return a row for each refusal; if requirements are given, only for the refusals that one of them demands."""
    return [refusal.make_row() for refusal in refusals if not requirements or refusal.requirement in requirements]
