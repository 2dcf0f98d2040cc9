"""Wrong requests as rows of a table: a valid request, and the edits that put one fault into it.

    Fault("input-without-name", "identity_int32", Drop("inputs.0.name"), fit=JSON)
    Fault("last-byte-missing", "identity_int32", Body(cut(1)), fit=ANY)

Edits from `wire.edits` change the JSON before the request is encoded; the inference header matches the changed JSON.
The edits of this module change the encoded request. `WrongRequest` interprets both, each kind in its order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from conformance.checks.support.refusals import Refusal
from conformance.expect.unmet import NotApplicableError
from conformance.roles.model import Model
from conformance.spec.fit import Fit
from conformance.wire.edits import DocumentEdit, ValueChange, chain, find_entry
from conformance.wire.request import INFERENCE_HEADER, InferRequest, Message
from conformance.wire.tensor import Tensor

# --- edits of an encoded request --------------------------------------------------------------------------------------

HeaderValue = str | int | Callable[[Message], object]


@dataclass(frozen=True, slots=True)
class Path:
    """Sends the request to another path."""

    path: str

    def __call__(self, message: Message) -> Message:
        """Return the changed request."""
        return replace(message, path=self.path)


@dataclass(frozen=True, slots=True)
class Header:
    """Sets a header to a value, or to several values, one header each; without a value, removes it."""

    name: str
    values: HeaderValue | tuple[HeaderValue, ...] = ()

    def __call__(self, message: Message) -> Message:
        """Return the changed request."""
        values = self.values if isinstance(self.values, tuple) else (self.values,)
        headers = [(self.name, str(value(message) if callable(value) else value)) for value in values]
        plain = message.with_header(self.name, None)
        return replace(plain, headers=(*plain.headers, *headers))


@dataclass(frozen=True, slots=True)
class Body:
    """Replaces the body by these bytes, or by those that a function computes from it."""

    value: bytes | ValueChange

    def __call__(self, message: Message) -> Message:
        """Return the changed request."""
        return message.with_body(_compute_bytes(self.value, message.body))


@dataclass(frozen=True, slots=True)
class Data:
    """Replaces the binary data of one input, but no size; None stands for all inputs, else `of` is as in a path."""

    value: bytes | ValueChange
    of: str | None = "0"

    def __call__(self, message: Message) -> Message:
        """Return the changed request."""
        if self.of is None:
            return message.with_body(message.body[: message.json_length] + _compute_bytes(self.value, b""))
        entries = [{"name": name, "datatype": datatype} for name, datatype, *_ in message.spans]
        index = range(len(entries))[find_entry(entries, self.of)]
        name, datatype, start, end = message.spans[index]
        data = _compute_bytes(self.value, message.body[start:end])
        by = start + len(data) - end
        later = [(name, datatype, start + by, end + by) for name, datatype, start, end in message.spans[index + 1 :]]
        spans = (*message.spans[:index], (name, datatype, start, end + by), *later)
        return replace(message, body=message.body[:start] + data + message.body[end:], spans=spans)


MessageEdit = Path | Header | Body | Data
Edit = DocumentEdit | MessageEdit


def _compute_bytes(value: bytes | ValueChange, old: bytes) -> bytes:
    return value if isinstance(value, bytes) else bytes(value(old))


def set_length(*values: HeaderValue) -> Header:
    """Return an edit that sets the inference header, or several; without a value, removes it."""
    return Header(INFERENCE_HEADER, values)


def of_json(change: ValueChange = int) -> HeaderValue:
    """Return the length of the JSON as a value of a header, changed by a function."""
    return lambda message: change(message.json_length)


def of_body(change: ValueChange = int) -> HeaderValue:
    """Return the length of the body as a value of a header, changed by a function."""
    return lambda message: change(len(message.body))


# --- valid requests to start from -------------------------------------------------------------------------------------

Start = Callable[[Model], InferRequest | Message]
InputsBuilder = Callable[[Model], Sequence[Tensor]]


def send_json(model: Model) -> InferRequest:
    """Return a request with the sample inputs as JSON."""
    return model.request(send="json")


def send_binary(model: Model) -> InferRequest:
    """Return a request with the sample inputs as binary data."""
    return model.request(outputs=model.build_outputs_member())


def send_raw(model: Model) -> Message:
    """Return a raw request with the first sample input."""
    return model.raw(bytes(model.sample()[0].to_bytes()))


def sample_inputs(model: Model) -> Sequence[Tensor]:
    """Return the inputs of `send_json` and `send_binary`."""
    return model.sample()


# --- rows -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WrongRequest:
    """Builds a request with one fault: a valid request, changed by edits."""

    start: Start
    edits: tuple[Edit, ...] = ()

    def __call__(self, model: Model) -> Message:
        """Return the wrong request to a model.

        Raises:
            NotApplicable: the request to a deployed model lacks a member that an edit changes.
        """
        valid = self.start(model)
        document_edits = [edit for edit in self.edits if not isinstance(edit, MessageEdit)]
        try:
            message = valid.encode_with(chain(*document_edits)) if isinstance(valid, InferRequest) else valid
        except LookupError as error:
            if not model.is_own_oracle:
                raise
            raise NotApplicableError(f"the fault does not apply to {model.name}: {error}") from error
        for edit in self.edits:
            message = edit(message) if isinstance(edit, MessageEdit) else message
        return message

    def build_valid(self, model: Model) -> Message:
        """Return the request without the fault."""
        valid = self.start(model)
        return valid.message() if isinstance(valid, InferRequest) else valid


@dataclass(frozen=True, slots=True)
class Fault:
    """A row of a table of wrong requests.

    Attributes:
        name: names the fault, in words joined by hyphens; the row's id.
        role: the role of the model that receives the request; None if only deployed models receive it.
        edits: put the fault into the valid request.
        fit: the deployed models that receive the request; None for none.
        start: builds the valid request; None for that of the table.
        tensors: see `Refusal.tensors`; None for those of the table.
        needs: see `Refusal.needs`.
    """

    name: str
    role: str | None
    edits: Edit | tuple[Edit, ...] = ()
    fit: Fit | None = None
    start: Start | None = None
    tensors: InputsBuilder | None = None
    needs: tuple[str, ...] = ()

    def build_request(self, start: Start) -> WrongRequest:
        """Return the wrong request of this row of a table."""
        return WrongRequest(self.start or start, self.edits if isinstance(self.edits, tuple) else (self.edits,))


def make_refusals(
    requirement: str, start: Start, faults: Iterable[Fault], tensors: InputsBuilder | None = None
) -> tuple[Refusal, ...]:
    """Return a refusal for each row of a table; `start` and `tensors` apply to rows without their own."""
    return tuple(
        Refusal(
            fault.name,
            requirement,
            fault.role,
            fault.build_request(start),
            fault.needs,
            tensors=fault.tensors or tensors,
            fit=fault.fit,
        )
        for fault in faults
    )
