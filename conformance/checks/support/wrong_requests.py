"""Wrong requests as rows of a table: a valid request, and the edits that put one fault into it.

    Fault("input-without-name", "identity_int32", Drop("inputs.0.name"), fit=JSON)
    Fault("last-byte-missing", "identity_int32", Body(cut(1)), fit=ANY)

Edits from `wire.edits` change the JSON before the request is encoded; the inference header matches the changed JSON.
Edits from `wire.message_edits` change the encoded request. A table of gRPC calls has the same rows and edits of fields.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from conformance.checks.support.inputs import InputsBuilder
from conformance.checks.support.refusals import Refusal
from conformance.expect.unmet import NotApplicableError
from conformance.roles.model import Model
from conformance.spec.fit import Fit
from conformance.wire.edits import NO_EDIT, DocumentEdit
from conformance.wire.grpc_request import make_infer_message
from conformance.wire.message_edits import Edit, encode_edited
from conformance.wire.request import SAME_NAMES, InferRequest, Message

# --- valid requests to start from -------------------------------------------------------------------------------------

Start = Callable[[Model], InferRequest | Message]


def send_json(model: Model) -> InferRequest:
    """Return a request with the sample inputs as JSON."""
    return model.request(send="json")


def send_binary(model: Model) -> InferRequest:
    """Return a request with the sample inputs as binary data."""
    return model.request(outputs=model.build_outputs_member())


def send_raw(model: Model) -> Message:
    """Return a raw request with the first sample input."""
    return model.raw(bytes(model.sample()[0].to_bytes()))


def send_typed_contents(model: Model) -> InferRequest:
    """Return a request with the sample inputs in typed contents, for a gRPC call."""
    return model.request(send="json")


def send_raw_contents(model: Model) -> InferRequest:
    """Return a request with the sample inputs in raw contents, for a gRPC call."""
    return model.request()


def with_own_names(start: Start) -> Start:
    """Return a builder of the same request, for edits that change the case of a name.

    The builder raises `NotApplicableError` for a model with other tensor names than the role's: one may be the edited name.
    """

    def build_request(model: Model) -> InferRequest | Message:
        if model.names != SAME_NAMES:
            raise NotApplicableError(f"{model.name} has other tensor names than the role {model.role.name}")
        return start(model)

    return build_request


# --- rows -------------------------------------------------------------------------------------------------------------


Encoder = Callable[[InferRequest, DocumentEdit], Message]


@dataclass(frozen=True, slots=True)
class WrongRequest:
    """Builds a request with one fault: a valid request, changed by edits.

    Attributes:
        start: builds the valid request.
        edits: put the fault into it.
        encode: encodes a request after an edit of its document; `make_infer_message` for a gRPC call.
    """

    start: Start
    edits: tuple[Edit, ...] = ()
    encode: Encoder = InferRequest.encode_with

    def __call__(self, model: Model) -> Message:
        """Return the wrong request to a model.

        Raises NotApplicableError: the request to a deployed model lacks a member that an edit changes.
        """
        valid = self.start(model)
        try:
            return encode_edited(partial(self._encode, valid), self.edits)
        except LookupError as error:
            if not model.is_deployed:
                raise
            raise NotApplicableError(f"the fault does not apply to {model.name}: {error}") from error

    def build_valid(self, model: Model) -> Message:
        """Return the request without the fault."""
        return self._encode(self.start(model), NO_EDIT)

    def _encode(self, valid: InferRequest | Message, edit: DocumentEdit) -> Message:
        return self.encode(valid, edit) if isinstance(valid, InferRequest) else valid


@dataclass(frozen=True, slots=True)
class Fault:
    """A row of a table of wrong requests.

    Attributes:
        name: names the fault, in words joined by hyphens; the row's id.
        role: the role of the model that receives the request; None if only deployed models receive it.
        fit: the deployed models that receive the request; None for none.
        start: builds the valid request; None for that of the table.
        tensors: see `Refusal.tensors`; None for those of the table.
        needs: see `Refusal.needs`.
        unknown: see `Refusal.unknown`.
    """

    name: str
    role: str | None
    edits: Edit | tuple[Edit, ...] = ()
    fit: Fit | None = None
    start: Start | None = None
    tensors: InputsBuilder | None = None
    needs: tuple[str, ...] = ()
    unknown: bool = False

    def build_request(self, start: Start, encode: Encoder = InferRequest.encode_with) -> WrongRequest:
        """Return the wrong request of this row of a table."""
        return WrongRequest(self.start or start, self.edits if isinstance(self.edits, tuple) else (self.edits,), encode)


def make_refusals(
    requirement: str,
    start: Start,
    faults: Iterable[Fault],
    tensors: InputsBuilder | None = None,
    encode: Encoder = InferRequest.encode_with,
) -> tuple[Refusal, ...]:
    """Return a refusal for each row of a table; `start` and `tensors` apply to rows without their own."""
    return tuple(
        Refusal(
            fault.name,
            requirement,
            fault.role,
            fault.build_request(start, encode),
            fault.needs,
            fault.unknown,
            tensors=fault.tensors or tensors,
            fit=fault.fit,
        )
        for fault in faults
    )


make_call_refusals = partial(make_refusals, encode=make_infer_message)
