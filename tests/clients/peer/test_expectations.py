"""What is expected of clients: what passes, what does not, which requirement is named, and what the message says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from conformance.checks.support.client_rows import (
    list_request_requirements,
    make_small_inference,
    make_small_script,
    make_tensor,
)
from conformance.clients.client import Observation
from conformance.clients.error_expectations import (
    expect_error,
    expect_error_text,
    expect_no_output,
    expect_timely_return,
)
from conformance.clients.expectations import (
    attribute_failures_to,
    expect_classes,
    expect_correct_requests,
    expect_outputs,
)
from conformance.clients.inference import Class, ClientOutput, RequestedOutput, Result
from conformance.clients.peer.scenario import ReceivedRequest
from conformance.expect.unmet import BlockedError, NotApplicableError, UnmetError
from conformance.wire.client_request import ClientRequest
from conformance.wire.tensor import Tensor
from tests.clients.honest.lines import asked
from tests.clients.honest.request import request

INFERENCE = make_small_inference("expect", outputs=(RequestedOutput("OUT0", "binary"),))
OUTPUT = Tensor.from_values("OUT0", "INT32", [7, -8])
SENT = request(asked(INFERENCE.to_dict()))


def received(edit: Callable[[dict[str, str]], object] = bool, body: bytes | None = None) -> ClientRequest:
    """Return the request of an honest client, with its headers or its body edited."""
    octets = SENT.body if body is None else body
    headers = dict(SENT.headers) | {"Content-Length": str(len(octets))}
    edit(headers)
    return ClientRequest("POST", SENT.target, tuple(headers.items()), octets)


def seen(result: Result, *requests: ClientRequest) -> Observation:
    script = make_small_script(INFERENCE)
    heard = [
        ReceivedRequest(one, script.http(one, INFERENCE, (OUTPUT,)), "http://x", number)
        for number, one in enumerate(requests or (received(),))
    ]
    return Observation(INFERENCE, result, tuple(heard), (OUTPUT,))


def given(*values: int, name: str = "OUT0", datatype: str = "INT32") -> Result:
    return Result((ClientOutput(name, Tensor.from_values(name, datatype, list(values))),))


ERROR = Result(error="broken", status="503")


@pytest.mark.parametrize(
    ("result", "expected", "actual"),
    [
        (given(7, 8), "OUT0 INT32 [2] = [7, -8]", "[7, 8]: element 1 differs"),
        (given(7, -8, datatype="INT64"), "OUT0 with datatype INT32", "datatype INT64"),
        (given(7), "OUT0 with shape [2]", "shape [1]"),
        (given(7, -8, name="OUT1"), "output OUT0 INT32 [2]", "no output of that name"),
        (Result(()), "output OUT0 INT32 [2]", "no output of that name"),
        (ERROR, "the outputs of the answer", "an error: broken"),
        (Result((ClientOutput("OUT0", trouble="5 bytes"),)), "OUT0 INT32 [2]", "invalid bytes: 5 bytes"),
    ],
)
def test_outputs_that_are_not_those_of_the_answer(result: Result, expected: str, actual: str) -> None:
    with pytest.raises(UnmetError) as raised:
        expect_outputs(seen(result))
    assert (raised.value.expected, raised.value.actual) == (expected, actual)
    assert raised.value.reply is not None


@pytest.mark.parametrize(
    ("others", "requirement"),
    [
        ((Tensor.from_values("OUT0", "INT32", [1, 2]),), "CLIENT-READS-OWN"),
        ((Tensor.from_values("OUT5", "INT32", [1, 2]),), "CLIENT-READS-OWN"),
        ((Tensor.from_values("OUT0", "INT32", [1, 3]),), None),
        ((Tensor.from_values("OUT0", "INT32", [1, 2], (1, 2)),), None),
        ((), None),
    ],
)
def test_a_tensor_of_another_answer_is_recognised(others: tuple[Tensor, ...], requirement: str | None) -> None:
    with pytest.raises(UnmetError) as raised:
        expect_outputs(replace(seen(given(1, 2)), others=others))
    assert raised.value.requirement == requirement
    with pytest.raises(UnmetError) as raised, attribute_failures_to("CLIENT-GOES-ON"):
        expect_outputs(replace(seen(given(1, 2)), others=others))
    assert raised.value.requirement == (requirement or "CLIENT-GOES-ON")


def test_short_tensor_is_not_attributed_to_other_answer() -> None:
    short = replace(seen(given(1, datatype="INT16")), outputs=(Tensor.from_values("OUT0", "INT16", [2]),))
    with pytest.raises(UnmetError) as raised:
        expect_outputs(replace(short, others=(Tensor.from_values("OUT0", "INT16", [1]),)))
    assert raised.value.requirement is None


def test_outputs_of_the_answer_are_right_whatever_else_is_given() -> None:
    right = given(7, -8)
    expect_outputs(seen(replace(right, outputs=(*(right.outputs or ()), ClientOutput("MORE", OUTPUT)))))


def test_a_client_that_sends_nothing_is_told_so() -> None:
    silent = replace(seen(ERROR), requests=())
    with pytest.raises(UnmetError, match="none arrived; the client returned an error: broken to its caller") as raised:
        expect_correct_requests(silent)
    assert raised.value.requirement == "CLIENT-SENDS-VALUES"


READING = (
    expect_outputs,
    lambda one: expect_classes(one, ["1:2"]),
    lambda one: expect_error(one, "it is wrong"),
    lambda one: expect_no_output(one, "OUT1"),
)


@pytest.mark.parametrize("expectation", READING)
def test_what_a_client_reads_is_not_judged_where_it_sends_nothing(expectation: Callable[[Observation], None]) -> None:
    unsent = replace(seen(ERROR), requests=())
    unfinished = seen(ERROR, replace(received(), trouble="the rest never came"))
    for one, why in ((unsent, "none arrived; the client returned"), (unfinished, "the rest never came")):
        with pytest.raises(BlockedError, match=why):
            expectation(one)


def test_outputs_without_request_are_unmet() -> None:
    with pytest.raises(
        UnmetError, match="none arrived; the client returned outputs nevertheless to its caller"
    ) as raised:
        expect_outputs(replace(seen(given(7, -8)), requests=()))
    assert raised.value.requirement is None


# --- outputs that a library cannot read -------------------------------------------------------------------------------

UNREADABLE = Result((ClientOutput("OUT0", cannot="no accessor"),))


@pytest.mark.parametrize("expectation", READING[:3])
def test_an_output_that_a_library_cannot_read_is_not_judged(expectation: Callable[[Observation], None]) -> None:
    with pytest.raises(NotApplicableError, match="the client cannot read OUT0: no accessor"):
        expectation(seen(UNREADABLE))


def test_the_other_outputs_are_judged() -> None:
    two = replace(seen(ERROR), outputs=(OUTPUT, replace(OUTPUT, name="OUT1")))
    (first,) = given(7, -8).outputs or ()
    unreadable = ClientOutput("OUT1", cannot="no accessor")
    expect_outputs(replace(two, result=Result((first, unreadable))))
    (wrong,) = given(7, 9).outputs or ()
    with pytest.raises(UnmetError, match="element 1 differs"):
        expect_outputs(replace(two, result=Result((wrong, unreadable))))


# --- codes of gRPC ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "status", "is_code"),
    [
        ("failed", "UNKNOWN", True),
        ("failed", "Unknown", True),
        ("failed", "StatusCode.UNKNOWN", True),
        ("failed", "2", True),
        ("rpc error: code = Unknown desc = ", "", True),
        ("2 lamps", "", False),
        ("failed", "12", False),
        ("failed", "INTERNAL", False),
    ],
)
def test_a_code_is_read_in_any_spelling(message: str, status: str, is_code: bool) -> None:
    told = seen(Result(error=message, status=status))
    if is_code:
        expect_error_text(told, "UNKNOWN")
        return
    with pytest.raises(UnmetError):
        expect_error_text(told, "UNKNOWN")


def test_a_status_of_http_is_read_as_it_is() -> None:
    with pytest.raises(UnmetError):
        expect_error_text(seen(Result(error="failed", status="50")), "500")


# --- requests ---------------------------------------------------------------------------------------------------------


def without(name: str) -> Callable[[dict[str, str]], object]:
    return lambda headers: headers.pop(name)


def test_a_request_that_keeps_the_rules_is_one() -> None:
    expect_correct_requests(seen(given(7, -8)), list_request_requirements(INFERENCE))


@pytest.mark.parametrize(
    ("request_", "own", "requirement"),
    [
        (received(without("Inference-Header-Content-Length")), (), "CLIENT-SENDS-HEADER"),
        (received(without("Content-Type")), ("CLIENT-SENDS-CONTENT-TYPE",), "CLIENT-SENDS-CONTENT-TYPE"),
        (received(body=SENT.body[:-8] + bytes(8)), (), "CLIENT-SENDS-VALUES"),
    ],
)
def test_the_requirement_of_a_miss_is_named(request_: ClientRequest, own: tuple[str, ...], requirement: str) -> None:
    with pytest.raises(UnmetError) as raised:
        expect_correct_requests(seen(given(7, -8), request_), own)
    assert raised.value.requirement == requirement
    assert raised.value.reply is not None


def test_violated_should_is_ignored_in_rows_about_musts() -> None:
    expect_correct_requests(seen(given(7, -8), received(without("Content-Type"))))


def test_violated_must_precedes_violated_should() -> None:
    request_ = received(lambda headers: headers.update({"Content-Type": "text/plain"}), SENT.body[:-8] + bytes(8))
    with pytest.raises(UnmetError) as raised:
        expect_correct_requests(seen(given(7, -8), request_), ("CLIENT-SENDS-CONTENT-TYPE", "CLIENT-SENDS-VALUES"))
    assert raised.value.requirement == "CLIENT-SENDS-VALUES"


def test_every_request_of_an_inference_is_judged() -> None:
    with pytest.raises(UnmetError) as raised:
        expect_correct_requests(seen(given(7, -8), received(), received(without("Inference-Header-Content-Length"))))
    assert raised.value.reply is not None
    assert raised.value.reply.exchange.number == 1


# --- classes ----------------------------------------------------------------------------------------------------------


def classes(*made: Class) -> Observation:
    tensor_of_texts = Tensor.from_values("OUT0", "BYTES", ["0.750000:3:a:b", "-2:0"])
    return replace(seen(Result((ClientOutput("OUT0", classes=made),))), outputs=(tensor_of_texts,))


TEXTS = ("0.750000:3:a:b", "-2:0")


@pytest.mark.parametrize(
    "made", [(Class("0.750000", 3, "a:b"), Class("-2", 0)), (Class("0.75", 3, "a:b"), Class("-2.0", 0, ""))]
)
def test_classes_may_be_spelled_otherwise(made: tuple[Class, ...]) -> None:
    expect_classes(classes(*made), TEXTS)


@pytest.mark.parametrize(
    ("made", "message"),
    [
        ((Class("0.75", 3, "a"), Class("-2", 0)), "label 'a:b', got value 0.75, index 3, label 'a'"),
        ((Class("0.75", 0, "a:b"), Class("-2", 0)), "index 3"),
        ((Class("0.8", 3, "a:b"), Class("-2", 0)), "value 0.750000"),
        ((Class("0.75", 3, "a:b"), Class("-2", 0, "cat")), "class 1 with value -2, index 0, no label"),
        ((Class("0.75", 3, "a:b"),), "expected 2 classes, got 1"),
    ],
)
def test_classes_that_are_not_those_of_the_answer(made: tuple[Class, ...], message: str) -> None:
    with pytest.raises(UnmetError, match=message):
        expect_classes(classes(*made), TEXTS)


def test_classes_may_be_given_as_the_elements_that_came() -> None:
    whole = classes()
    expect_classes(replace(whole, result=Result((ClientOutput("OUT0", whole.outputs[0]),))), TEXTS)


# --- errors -----------------------------------------------------------------------------------------------------------


def test_an_error_is_what_a_wrong_answer_comes_to() -> None:
    expect_error(seen(ERROR), "it is wrong")
    with pytest.raises(UnmetError, match=r"an error, since it is wrong, got outputs: OUT0 INT32 \[2\] = \[7, -8\]"):
        expect_error(seen(given(7, -8)), "it is wrong")


def test_an_output_that_is_not_there_is_not_given() -> None:
    for result in (ERROR, given(7, -8), Result(())):
        expect_no_output(seen(result), "OUT1")
    with pytest.raises(UnmetError, match="no output OUT1"):
        expect_no_output(seen(given(0, name="OUT1")), "OUT1")


def test_an_error_comes_in_time() -> None:
    expect_timely_return(replace(seen(replace(ERROR, elapsed=2.9)), timeout=1.0))
    with pytest.raises(UnmetError, match=r"an error within 1 s, got one after 3.1 s"):
        expect_timely_return(replace(seen(replace(ERROR, elapsed=3.1)), timeout=1.0))


@pytest.mark.parametrize(("text", "is_said"), [("broken", True), ("503", True), ("404", False)])
def test_an_error_holds_the_message_or_the_status(text: str, is_said: bool) -> None:
    if is_said:
        expect_error_text(seen(ERROR), text)
    else:
        with pytest.raises(UnmetError, match="an error that contains '404', got broken 503"):
            expect_error_text(seen(ERROR), text)


@pytest.mark.parametrize(
    ("datatype", "options", "expected"),
    [
        ("INT32", {}, "VALUES LITTLE-ENDIAN SIZE SIZES-FILL"),
        ("BYTES", {}, "VALUES SIZE SIZES-FILL BYTES"),
        ("BOOL", {}, "VALUES SIZE SIZES-FILL BOOL"),
        ("FP16", {}, "VALUES LITTLE-ENDIAN SIZE SIZES-FILL FP16"),
        ("INT32", {"forms": ("json",)}, "VALUES DATA ELEMENTS"),
        ("INT32", {"is_raw": True}, "VALUES RAW"),
    ],
)
def test_list_request_requirements(datatype: str, options: Any, expected: str) -> None:
    made = replace(INFERENCE, inputs=(make_tensor("owed", "IN0", datatype, (2,)),), **options)
    assert list_request_requirements(made) == tuple(f"CLIENT-SENDS-{name}" for name in expected.split())
