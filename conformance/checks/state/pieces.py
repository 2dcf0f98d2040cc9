"""Bodies and the places at which they are cut, for TCP segments and for chunks alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from conformance.checks.state.three_forms import NEEDS, AnyForm, SaltedRequest, make_form_request
from conformance.roles.model import Model
from conformance.spec.check import Row
from conformance.spec.fit import ANY, JSON, Fit
from conformance.wire.request import Message
from conformance.wire.tensor import Tensor


@dataclass(frozen=True, slots=True)
class Cut:
    """A request and where its body is cut.

    Attributes:
        name: the row's id.
        role: of the model that it goes to; None where that is a deployed one alone.
        sent: the request, and its inputs.
        places: offsets in the body.
        form: in which the inputs travel.
        slow: there are many pieces, sent with a pause after each.
        fit: the deployed models that it can be sent to.
    """

    name: str
    role: str | None
    sent: Callable[[Model], SaltedRequest]
    places: Callable[[Message], Sequence[int]]
    form: AnyForm = "binary"
    slow: bool = False
    fit: Fit | None = None

    def row(self) -> Row:
        """Return the row of a check that sends it."""
        return Row(self.name, (self,), role=self.role, thorough=self.slow, needs=NEEDS[self.form], fit=self.fit)


def make_cut_rows(cuts: Iterable[Cut]) -> list[Row]:
    """Return a row for each."""
    return [cut.row() for cut in cuts]


def _as_json(model: Model, tensors: Sequence[Tensor] | None = None) -> SaltedRequest:
    request = model.request(tensors, send="json")
    return request.message(), [item.tensor for item in request.inputs]


def _as_binary(model: Model, tensors: Sequence[Tensor] | None = None) -> SaltedRequest:
    request = model.request(tensors, want=model.plain_want)
    return request.message(), [item.tensor for item in request.inputs]


def _as_raw(model: Model) -> SaltedRequest:
    return make_form_request(model, "raw", 24, 1)


def _first(message: Message) -> int:
    """Return where the first binary tensor begins."""
    return message.spans[0][2]


def _nowhere(message: Message) -> Sequence[int]:  # noqa: ARG001
    return ()


WHOLE: tuple[Cut, ...] = (
    Cut("whole-json", "identity_int32", _as_json, _nowhere, form="json", fit=JSON),
    Cut("whole", "cast_int32_fp32", _as_binary, _nowhere, fit=ANY),
    Cut("whole-raw", "identity_uint8", _as_raw, _nowhere, form="raw"),
)
CUTS: tuple[Cut, ...] = (
    Cut("inside-the-json", "identity_int32", _as_json, lambda m: (m.json_length // 2,), form="json"),
    Cut("behind-the-first-byte", None, _as_json, lambda m: (1, m.json_length // 2), form="json", fit=JSON),
    Cut("every-16-bytes-of-json", "multi", _as_json, lambda m: range(16, m.json_length, 16), form="json"),
    Cut("inside-a-character", "identity_bytes", _as_json, lambda m: (m.body.index(b"\xc3") + 1,), form="json"),
    Cut("inside-the-json-before-binary-data", "cast_int32_fp32", _as_binary, lambda m: (m.json_length // 2,)),
    Cut("at-the-end-of-the-json", "cast_int32_fp32", _as_binary, lambda m: (m.json_length,), fit=ANY),
    Cut("around-the-end-of-the-json", "string_length", _as_binary, lambda m: (_first(m) - 1, _first(m) + 1)),
    Cut("inside-a-length-prefix", "string_length", _as_binary, lambda m: (_first(m) + 2,)),
    Cut("after-a-length-prefix", "string_length", _as_binary, lambda m: (_first(m) + 4,)),
    Cut("inside-an-element", "cast_int32_fp32", _as_binary, lambda m: (_first(m) + 6,)),
    Cut("between-tensors", "raw_two_inputs", _as_binary, lambda m: [start for _, _, start, _ in m.spans]),
    Cut("inside-a-raw-body", "identity_uint8", _as_raw, lambda _: (7,), form="raw"),
    Cut("every-4-bytes-of-a-raw-body", "identity_uint8", _as_raw, lambda m: range(4, len(m.body), 4), form="raw"),
    Cut(
        "binary-data-byte-by-byte",
        "string_length",
        lambda model: _as_binary(model, [model.tensor(["ab", "", "c"])]),
        lambda m: range(_first(m), len(m.body)),
        slow=True,
    ),
    Cut(
        "json-byte-by-byte",
        "identity_int8",
        lambda model: _as_json(model, [model.tensor([-7])]),
        lambda m: range(1, len(m.body)),
        form="json",
        slow=True,
    ),
)
