"""Answers over HTTP: honest ones say what they are to say, each wrong one is wrong, golden bytes are met."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import h11
import numpy as np
import pytest
from tritonclient.http import InferResult

from conformance.checks.client.deliveries import CODED_DELIVERIES, DELIVERIES, WRITING_STYLES
from conformance.checks.client.wrong_answers import make_outputs
from conformance.checks.support.client_rows import make_small_inference, make_tensor
from conformance.clients.answers.errors import ERRORS, PLACES, make_truncated_script
from conformance.clients.answers.honest import Style, encode_binary, encode_elements
from conformance.clients.answers.script import Delivery, Ending, HttpAnswer, Tensors
from conformance.clients.answers.wrong import FALSE_CODING, WRONG_BINARY, WRONG_JSON
from conformance.clients.inference import Inference, RequestedOutput
from conformance.roles.corner_values import from_bits
from conformance.spec import data_files
from conformance.wire.client_request import ClientRequest
from conformance.wire.datatypes import DATATYPES, OIP_DATATYPES
from conformance.wire.request import Form
from conformance.wire.response import parse
from conformance.wire.tensor import Tensor, find_first_difference
from tests.support.tables import on_each

DECODERS: dict[str, Callable[[bytes], bytes]] = {"gzip": gzip.decompress, "deflate": zlib.decompress}


@dataclass(frozen=True)
class ReceivedAnswer:
    """An answer that has arrived whole."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def decoded(self) -> bytes:
        return DECODERS.get(self.headers.get("content-encoding", ""), bytes)(self.body)


def parse_answer(answer: HttpAnswer) -> ReceivedAnswer:
    """Return the answer; raises h11.RemoteProtocolError where it is not whole."""
    parser = h11.Connection(h11.CLIENT)
    parser.send(h11.Request(method="POST", target="/", headers=[("Host", "x"), ("Content-Length", "0")]))
    parser.send(h11.EndOfMessage())
    for piece in answer.pieces:
        parser.receive_data(piece)
    parser.receive_data(b"")
    head = parser.next_event()
    assert isinstance(head, h11.Response)
    body = b""
    while not isinstance(event := parser.next_event(), h11.EndOfMessage):
        assert isinstance(event, h11.Data), event
        body += bytes(event.data)
    return ReceivedAnswer(head.status_code, {name.decode(): value.decode() for name, value in head.headers}, body)


HEADER = "inference-header-content-length"
BY_DEFAULT = {"parameters": {"binary_data_output": True}}
POST = ClientRequest("POST", "/v2/models/m/infer")
EVERY_STYLE = {
    **WRITING_STYLES,
    **{name: Style(delivery=delivery) for name, delivery in (*DELIVERIES.items(), *CODED_DELIVERIES.items())},
    "nested": Style(nested=True),
    "with-header": Style(header="always"),
}


def asked(tensors: Tensors, form: Form) -> Inference:
    return make_small_inference("answer", outputs=tuple(RequestedOutput(one.name, form) for one in tensors))


@on_each(list(product(EVERY_STYLE, ("binary", "json"))))
def test_an_honest_answer_has_no_findings_and_its_own_tensors(name: str, form: Form) -> None:
    tensors = (*make_outputs("honest"), make_tensor("honest", "OUT2", "FP64", (2, 3)))
    got = parse_answer(EVERY_STYLE[name](POST, asked(tensors, form), tensors))
    taken = parse(got.decoded, got.headers.get(HEADER))
    assert (got.status, taken.findings) == (200, ())
    for one in tensors:
        output = taken.output(one.name)
        assert output is not None
        assert output.binary == (form == "binary")
        assert output.shape == one.shape
        assert output.array is not None
        assert find_first_difference(one.array, output.array, one.datatype) is None


@pytest.mark.parametrize("datatype", OIP_DATATYPES)
def test_tritonclient_reads_the_same(datatype: str) -> None:
    one = make_tensor("triton", "OUT0", datatype, (2, 3))
    got = parse_answer(Style()(POST, asked((one,), "binary"), (one,)))
    read = InferResult.from_response_body(got.body, header_length=int(got.headers[HEADER]))
    assert np.array_equal(read.as_numpy("OUT0"), one.array)


@pytest.mark.parametrize("name", [*WRONG_BINARY, *WRONG_JSON])
def test_a_wrong_answer_is_wrong(name: str) -> None:
    tensors = make_outputs("wrong")
    form: Form = "binary" if name in WRONG_BINARY else "json"
    script = {**WRONG_BINARY, **WRONG_JSON}[name]
    got = parse_answer(script(POST, asked(tensors, form), tensors))
    assert parse(got.decoded, got.headers.get(HEADER)).findings != ()
    honest = parse_answer(Style(form=form)(POST, asked(tensors, form), tensors))
    assert got.body != honest.body or got.headers != honest.headers


def test_a_coding_that_is_announced_and_not_applied_is_none() -> None:
    tensors = make_outputs("coding")
    got = parse_answer(FALSE_CODING(POST, asked(tensors, "binary"), tensors))
    with pytest.raises(OSError, match="gzip"):
        assert got.decoded


@pytest.mark.parametrize("ending", [Ending.CLOSE, Ending.RESET, Ending.SILENT])
@pytest.mark.parametrize("name", PLACES)
def test_an_answer_that_breaks_off_is_not_whole(name: str, ending: Ending) -> None:
    tensors = make_outputs("broken")
    answer = make_truncated_script(PLACES[name], ending)(POST, asked(tensors, "binary"), tensors)
    assert isinstance(answer, HttpAnswer)
    assert answer.ending is ending
    with pytest.raises((h11.RemoteProtocolError, AssertionError)):
        parse_answer(answer)


def test_an_answer_to_http_1_0_has_no_chunks() -> None:
    one = make_tensor("old", "OUT0", "INT32", (9,))
    received = ClientRequest("POST", "/v2/models/m/infer", version="HTTP/1.0")
    got = parse_answer(Style(delivery=Delivery(chunk_bytes=3))(received, asked((one,), "binary"), (one,)))
    assert "content-length" in got.headers
    assert "transfer-encoding" not in got.headers


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_is_one_and_says_what_it_is_to_say(name: str) -> None:
    error = ERRORS[name]
    got = parse_answer(error.answer_http(POST, make_small_inference("error"), ()))
    assert got.status >= 400
    assert error.message in (got.body.decode() if error.content_type != "application/json" else _message(got.body))


def _message(body: bytes) -> str:
    return str(json.loads(body).get("error", "")) if body else ""


# --- what stands in a form that is left open --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("document", "binary"),
    [
        ({"outputs": [{"name": "OUT0", "parameters": {"binary_data": True}}]}, True),
        ({"outputs": [{"name": "OUT0"}], **BY_DEFAULT}, True),
        ({"outputs": [{"name": "OUT0", "parameters": {"binary_data": False}}], **BY_DEFAULT}, False),
        (BY_DEFAULT, True),
        ({}, False),
        ({"outputs": 7}, False),
    ],
)
def test_a_form_that_the_caller_leaves_open_is_the_requests(document: dict[str, Any], binary: bool) -> None:
    one = make_tensor("open", "OUT0", "INT32", (2,))
    received = ClientRequest("POST", "/v2/models/m/infer", (), json.dumps(document).encode())
    got = parse_answer(Style()(received, make_small_inference("open"), (one,)))
    assert (HEADER in got.headers) == binary


# --- golden bytes -----------------------------------------------------------------------------------------------------


def golden_outputs() -> list[tuple[str, dict[str, Any], bytes]]:
    cases = [
        json.loads(path.read_text()) for path in sorted(data_files.find_folder("fixtures").glob("valid/*/case.json"))
    ]
    home = Path(str(data_files.find_folder("fixtures"))) / "valid"
    return [
        (case["name"], output, (home / case["name"] / output["binary"]).read_bytes())
        for case in cases
        for output in case["answer"]["outputs"]
        if "binary" in output and output["datatype"] != "BF16"
    ]


@on_each(golden_outputs())
def test_the_binary_form_of_golden_values_is_golden(name: str, output: dict[str, Any], octets: bytes) -> None:
    values, datatype = output["values"], output["datatype"]
    if datatype == "BYTES":
        array = np.array([_element(value) for value in values], dtype=object)
    elif all(isinstance(value, int | float) for value in values):
        array = np.array(values, DATATYPES[datatype].dtype)
    else:  # numbers that JSON cannot write
        array = np.frombuffer(octets, DATATYPES[datatype].dtype)
    assert encode_binary(Tensor.from_values(name, datatype, array, output["shape"])) == octets


def _element(value: Any) -> bytes:
    if isinstance(value, str):
        return value.encode()
    octets = bytes.fromhex(value["hex"])
    return octets * int(value.get("times", 1))


def test_half_precision_is_exact_in_json() -> None:
    assert encode_elements(from_bits("OUT0", "FP16", (0x0155, 0x8000))) == [341 / 2**24, -0.0]


def test_what_json_cannot_carry_is_an_error() -> None:
    with pytest.raises(UnicodeDecodeError):
        encode_elements(Tensor.from_values("OUT0", "BYTES", [b"\xff"]))
