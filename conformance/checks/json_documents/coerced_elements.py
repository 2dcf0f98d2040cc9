"""JSON data with elements of another type or in another spelling."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from conformance.checks.support.changed_tensors import fill_strings
from conformance.checks.support.datatypes import get_identity_role
from conformance.checks.support.inputs import choose_revealing_inputs
from conformance.expect.expectation import expect
from conformance.expect.refusals import is_refused
from conformance.expect.unmet import UnmetError, block_if, is_met
from conformance.roles.model import Model
from conformance.spec.check import Row, check, rows
from conformance.spec.fit import SCORE_DATATYPES, Fit
from conformance.transport.exchange import Reply
from conformance.transport.target import Target
from conformance.wire.datatypes import INTEGERS
from conformance.wire.json_writing import write_escaped
from conformance.wire.request import Message
from conformance.wire.tensor import Tensor

# --- elements of a deployed model in another spelling -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ElementRewriting:
    """An alternative JSON spelling for elements of some datatypes, applied to the inputs of a deployed model.

    Attributes:
        misread: returns the value that a parser without support for this spelling reads; None if it cannot read one.
        adapt: returns a tensor with elements that this spelling can express.
    """

    datatypes: frozenset[str]
    write: Callable[[Any], str]
    misread: Callable[[Any], Any] | None
    adapt: Callable[[Tensor], Tensor] = lambda tensor: tensor

    def build_message(self, model: Model) -> tuple[Message, Sequence[Tensor]]:
        """Return a request in this spelling and its inputs; the answer shows whether the server misreads them."""
        drawn = model.sample() if self.misread is None else choose_revealing_inputs(model, self._misread_tensors)
        tensors = [self.adapt(tensor) if tensor.datatype in self.datatypes else tensor for tensor in drawn]
        return self._write_elements(model, tensors), tensors

    def _write_elements(self, model: Model, tensors: Sequence[Tensor]) -> Message:
        """Return a JSON request in which the elements of some datatypes have this spelling."""
        texts: list[tuple[bytes, bytes]] = []

        def rewrite_data(document: dict[str, Any]) -> None:
            for entry in document["inputs"]:
                if entry["datatype"] in self.datatypes:
                    mark = f"@elements-{len(texts)}@"
                    texts.append((json.dumps(mark).encode(), f"[{','.join(map(self.write, entry['data']))}]".encode()))
                    entry["data"] = mark

        message = model.request(tensors, send="json").encode_with(rewrite_data)
        for mark, text in texts:
            message = message.with_json(message.body.replace(mark, text))
        return message

    def _misread_tensors(self, tensors: Sequence[Tensor]) -> Sequence[Tensor]:
        """Return the tensors as a parser without support for this spelling reads them."""
        return [self._misread_tensor(tensor) if tensor.datatype in self.datatypes else tensor for tensor in tensors]

    def _misread_tensor(self, tensor: Tensor) -> Tensor:
        """Return the tensor as a parser without support for this spelling reads it."""
        values = [self.misread(value) if self.misread else value for value in tensor.to_json()]
        return Tensor.from_values(tensor.name, tensor.datatype, values, tensor.shape)


def _format_with_exponent(value: float) -> str:
    """Return a number as JSON text with an exponent."""
    mantissa, exponent = f"{value:.16e}".split("e")
    return f"{mantissa.rstrip('0').rstrip('.')}E{int(exponent):+}"


WITH_EXPONENTS = ElementRewriting(
    frozenset({"FP32", "FP64"}),
    _format_with_exponent,
    lambda value: float(_format_with_exponent(value).partition("E")[0]),
)
AS_INTEGERS = ElementRewriting(
    frozenset({"FP32", "FP64"}), lambda value: str(int(value)), None, lambda t: replace(t, array=np.round(t.array))
)
ESCAPED = ElementRewriting(frozenset({"BYTES"}), write_escaped, lambda text: write_escaped(text)[1:-1])
ESCAPED_CAPITALS = replace(ESCAPED, adapt=lambda tensor: fill_strings([tensor], [b"INPUT", b"A", b"xLz"])[0])
WITH_A_POINT = ElementRewriting(frozenset(INTEGERS), lambda value: f"{value}.0", lambda value: value // 10)


# --- elements of another type -----------------------------------------------------------------------------------------
# Each entry lists all valid results of coercion. There is no row if there are too many results, as for a string among
# booleans or a number among strings.

# kind, datatype, an element of the declared type, an element of another type, and the values that it may be read as.
ELEMENTS: tuple[tuple[str, str, Any, Any, tuple[Any, ...]], ...] = (
    ("fraction", "UINT32", 5, 1.5, (1, 2)),
    ("fraction", "INT64", -5, -2.5, (-2, -3)),
    ("true", "INT32", 5, True, (1,)),
    ("digits-in-a-string", "INT32", 5, "7", (7,)),
    ("digits-in-a-string", "UINT8", 5, "7", (7,)),
    ("one", "BOOL", False, 1, (True,)),
    ("zero", "BOOL", True, 0, (False,)),
    ("decimal-in-a-string", "FP32", 0.5, "1.5", (1.5,)),
    ("true", "FP64", 0.5, True, (1.0,)),
)


Tensors = Sequence[Tensor]


class Coercion(NamedTuple):
    """A request in which the elements of one input have another JSON type.

    Attributes:
        tensors: the inputs before the elements are replaced.
        candidates: the inputs that the server may read if it coerces the elements.
        input_index: the index of the input with replaced elements.
    """

    tensors: Tensors
    data: list[Any]
    candidates: list[Tensors]
    input_index: int = 0


CoercionBuilder = Callable[[Model], Coercion]


def _insert_other_element(own: Any, other: Any, values: tuple[Any, ...]) -> CoercionBuilder:
    """Return a builder of data with an element of another type between two elements of the declared type."""

    def build_coercion(model: Model) -> Coercion:
        plain, *coerced = ([model.tensor([own, value, own])] for value in (own, *values))
        return Coercion(plain, [own, other, own], list(coerced))

    return build_coercion


def _write_numbers_as_strings(model: Model) -> Coercion:
    """Return a coercion with strings for numbers; the answer shows whether a server reads all as the same number."""
    tensors = choose_revealing_inputs(model, lambda drawn: [_fill_with_minimum(drawn[0]), *drawn[1:]])
    return Coercion(tensors, list(map(str, tensors[0].to_json())), [tensors])


def _write_booleans_as_numbers(model: Model) -> Coercion:
    """Return a coercion with 0 and 1 for booleans; the answer shows whether a server reads all as false."""
    input_index = next(index for index, spec in enumerate(model.sample()) if spec.datatype == "BOOL")
    tensors = choose_revealing_inputs(
        model,
        lambda drawn: [_fill_with_minimum(tensor) if k == input_index else tensor for k, tensor in enumerate(drawn)],
    )
    return Coercion(tensors, list(map(int, tensors[input_index].to_json())), [tensors], input_index)


def _fill_with_minimum(tensor: Tensor) -> Tensor:
    """Return the tensor with its minimum in every element."""
    return replace(tensor, array=np.full_like(tensor.array, tensor.array.min()))


@check("json.element-of-another-type-is-coerced-or-refused", requirements="OIP-COERCE")
@rows(
    *[
        Row(f"{kind}-among-{datatype}", (_insert_other_element(own, other, values),), role=get_identity_role(datatype))
        for kind, datatype, own, other, values in ELEMENTS
    ],
    Row("numbers-in-strings", (_write_numbers_as_strings,), fit=Fit(inputs=SCORE_DATATYPES, is_json=True)),
    Row("booleans-in-numbers", (_write_booleans_as_numbers,), fit=Fit(some_input=frozenset({"BOOL"}), is_json=True)),
)
def element_of_another_type_is_coerced_or_refused(target: Target, model: Model, build_coercion: CoercionBuilder) -> str:
    """The server coerces a JSON element of another type to the datatype, or refuses it."""
    tensors, data, candidates, input_index = build_coercion(model)
    plain = model.request(tensors, send="json")
    reply = target.send(
        plain.encode_with(lambda document: document["inputs"][input_index].update(data=data)), fresh=True
    )
    if is_refused(target, model, reply, advises_status=True):
        return f"refused with {reply.status}"
    coerced = [model.expected(candidate) for candidate in candidates]

    def is_wrong_with_declared_type() -> bool:
        right = model.expected(tensors)
        return not is_met(lambda: expect(target.send(plain.message(), fresh=True)).tensors(right))

    with block_if(is_wrong_with_declared_type, "the answer to elements of the declared type is also wrong"):
        wrong = [unmet for expected in coerced if (unmet := _find_wrong_output(reply, expected))]
        if len(wrong) == len(coerced):
            raise wrong[0]
    return "coerced"


def _find_wrong_output(reply: Reply, expected: Sequence[Tensor]) -> UnmetError | None:
    """Return the error for the first wrong output; None if all outputs are correct."""
    try:
        expect(reply, "OIP-COERCE").tensors(expected)
    except UnmetError as unmet:
        return unmet
    return None
