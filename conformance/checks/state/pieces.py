"""Bodies and the places at which they are cut, for TCP segments and for chunks alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from conformance.roles.model import Model
from conformance.terms.check import Row
from conformance.wire.request import InferRequest, Message


@dataclass(frozen=True, slots=True)
class Cut:
    """A request and where its body is cut.

    Attributes:
        name: the row's id.
        places: offsets in the body.
        binary: the request carries binary data.
        slow: there are many pieces, sent with a pause after each.
    """

    name: str
    role: str
    request: Callable[[Model], InferRequest]
    places: Callable[[Message], Sequence[int]]
    binary: bool = True
    slow: bool = False

    def row(self) -> Row:
        """Return the row of a check that sends it."""
        needs = ("binary_tensor_data",) if self.binary else ()
        return Row(self.name, (self,), role=self.role, thorough=self.slow, needs=needs)


def cut_rows(cuts: Iterable[Cut]) -> list[Row]:
    """Return a row for each."""
    return [cut.row() for cut in cuts]


def _as_json(model: Model) -> InferRequest:
    return model.request(send="json")


def _as_binary(model: Model) -> InferRequest:
    return model.request()


def _first(message: Message) -> int:
    """Return where the first binary tensor begins."""
    return message.spans[0][2]


def _nowhere(message: Message) -> Sequence[int]:  # noqa: ARG001
    return ()


WHOLE: tuple[Cut, ...] = (
    Cut("whole-json", "identity_int32", _as_json, _nowhere, binary=False),
    Cut("whole", "cast_int32_fp32", _as_binary, _nowhere),
)
CUTS: tuple[Cut, ...] = (
    Cut("inside-the-json", "identity_int32", _as_json, lambda m: (m.json_length // 2,), binary=False),
    Cut("every-16-bytes-of-json", "multi", _as_json, lambda m: range(16, m.json_length, 16), binary=False),
    Cut("inside-a-character", "identity_bytes", _as_json, lambda m: (m.body.index(b"\xc3") + 1,), binary=False),
    Cut("inside-the-json-before-binary-data", "cast_int32_fp32", _as_binary, lambda m: (m.json_length // 2,)),
    Cut("at-the-end-of-the-json", "cast_int32_fp32", _as_binary, lambda m: (m.json_length,)),
    Cut("around-the-end-of-the-json", "string_length", _as_binary, lambda m: (_first(m) - 1, _first(m) + 1)),
    Cut("inside-a-length-prefix", "string_length", _as_binary, lambda m: (_first(m) + 2,)),
    Cut("after-a-length-prefix", "string_length", _as_binary, lambda m: (_first(m) + 4,)),
    Cut("inside-an-element", "cast_int32_fp32", _as_binary, lambda m: (_first(m) + 6,)),
    Cut("between-tensors", "raw_two_inputs", _as_binary, lambda m: [start for _, _, start, _ in m.spans]),
    Cut(
        "binary-data-byte-by-byte",
        "string_length",
        lambda model: model.request([model.tensor(["ab", "", "c"])]),
        lambda m: range(_first(m), len(m.body)),
        slow=True,
    ),
    Cut(
        "json-byte-by-byte",
        "identity_int8",
        lambda model: model.request([model.tensor([-7])], send="json"),
        lambda m: range(1, len(m.body)),
        binary=False,
        slow=True,
    ),
)
