"""A wrong tensor that is that of an answer before is called so."""

from __future__ import annotations

import json

import pytest

from conformance.expect.unmet import UnmetError
from conformance.judging.failure import find_earlier_answer
from conformance.transport.exchange import Exchange, Reply
from conformance.wire.request import Message
from conformance.wire.tensor import Tensor


def answered(number: int, *elements: int, name: str = "X") -> Exchange:
    output = {"name": name, "datatype": "INT32", "shape": [len(elements)], "data": elements}
    return Exchange(number, Message("/x"), "http://h/x", 200, body=json.dumps({"outputs": [output]}).encode())


RIGHT = Tensor.of("X", "INT32", [9, 9])


@pytest.mark.parametrize(
    ("exchanges", "words"),
    [
        ([answered(0, 1, 2), answered(1, 1, 2)], "; it is the tensor of the answer before"),
        (
            [answered(0, 1, 2), answered(1, 5, 6), answered(2, 1, 2)],
            "; it is the tensor of the answer 2 requests before",
        ),
        ([answered(0, 1, 2), answered(1, 2, 1)], ""),
        ([answered(0, 1, 2, name="Y"), answered(1, 1, 2)], ""),
        ([answered(0, 1, 2)], ""),
        ([answered(0), answered(1)], ""),
    ],
)
def test_whose_tensor_came(exchanges: list[Exchange], words: str) -> None:
    unmet = UnmetError("a", "b", Reply(exchanges[-1]), tensor=RIGHT)
    assert find_earlier_answer(unmet, exchanges) == words


def test_nothing_is_said_where_no_tensor_was_expected() -> None:
    exchanges = [answered(0, 1, 2), answered(1, 1, 2)]
    assert find_earlier_answer(UnmetError("a", "b", Reply(exchanges[-1])), exchanges) == ""
    assert find_earlier_answer(UnmetError("a", "b", tensor=RIGHT), exchanges) == ""
