"""The block that a user reads when a check fails: exactly as it should look, and safe whatever a server sent."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace

import pytest

from conformance.expect.unmet import UnmetError
from conformance.judging.failure import describe, describe_earlier_answer, format_block
from conformance.judging.repeat_command import build_curl_command, build_curl_headers, build_repeat_command
from conformance.spec import ledger
from conformance.spec.outcome import Outcome
from conformance.spec.result import CheckResult
from conformance.spec.text import escape_text
from conformance.transport.exchange import Exchange, Reply
from conformance.transport.http_request import USER_AGENT
from conformance.transport.settings import Settings
from conformance.wire.request import Message, frame
from conformance.wire.tensor import Tensor

HOST = Settings("http://h")
REQUEST = frame(
    "/v2/models/multi/infer",
    {
        "inputs": [{"name": "IN0", "shape": [2], "datatype": "INT32", "parameters": {"binary_data_size": 8}}],
        "outputs": [{"name": "OUT0", "parameters": {"binary_data": True}}],
    },
    [Tensor.from_values("IN0", "INT32", [1, 2])],
)
HEAD = b'{"outputs":[{"name":"OUT0","datatype":"INT32","shape":[2],"parameters":{"binary_data_size":8}}]}'


def exchange(body: bytes = HEAD + bytes.fromhex("03000000 61626301"), message: Message = REQUEST) -> Exchange:
    headers = (("Inference-Header-Content-Length", str(len(HEAD))),)
    return Exchange(0, message, "http://h/v2/models/multi/infer", 200, headers, body)


def result(unmet: UnmetError) -> CheckResult:
    failure = describe(unmet, "BIN-ORDER-O", HOST, build_repeat_command([[exchange()]], HOST))
    return CheckResult(
        "ordering.response-follows-its-json", "INT32-BYTES", "Bytes follow the JSON.",
        "ordering", "binary_tensor_data", Outcome.FAIL, ["BIN-ORDER-O"], failure=failure,
    )  # fmt: skip


def test_a_failure_as_it_should_look() -> None:
    unmet = UnmetError("OUT0 INT32 [2] = [1, 2]", "[3, 23290465]", Reply(exchange()), offset=len(HEAD))
    lines = format_block(result(unmet), "pytest --target-url=http://h")
    assert lines[0].startswith("FAIL  ordering.response-follows-its-json [INT32-BYTES]")
    assert lines[0].endswith("MUST  BIN-ORDER-O")
    assert lines[1] == "      Bytes follow the JSON."
    assert lines[2].startswith("      Requires  ")
    assert lines[3].startswith('      Source    Triton, Binary Tensor Data Extension, "Binary Tensor Request"')
    assert [lines[4]] == [f"                {source.url}" for source in ledger.get_requirement("BIN-ORDER-O").sources]
    assert lines.pop(5) == "      Explain   oip-conformance explain BIN-ORDER-O"
    assert lines[5:8] == [
        "      Sent      POST /v2/models/multi/infer, 164 bytes, inputs IN0 INT32 [2] binary, "
        'outputs OUT0 {"binary_data": true}, inference header 156',
        "      Expected  OUT0 INT32 [2] = [1, 2]",
        "      Actual    [3, 23290465]",
    ]
    assert lines[8:10] == [
        '      0058  65 22 3a 38 7d 7d 5d 7d  e":8}}]}',
        "      0060  03 00 00 00 61 62 63 01  ....abc.   <- tensor 0 OUT0 INT32 element 0",
    ]
    assert lines[-2].startswith("      Repeat    echo eyJp")
    assert lines[-1] == "      Rerun     pytest --target-url=http://h -k ordering.response-follows-its-json"


NASTY = "\x1b[31mred\x1b[0m \u202eevil\u2066 <script>alert(1)</script>\r\nFAIL  forged\x00"


def test_nothing_a_server_sends_reaches_the_terminal_raw() -> None:
    body = json.dumps({"error": NASTY}, ensure_ascii=False).encode() + b"\xff\x1b]0;title\x07"
    unmet = UnmetError(f"a {NASTY}", f"b {NASTY}" + "x" * 10_000_000, Reply(exchange(body)), offset=3)
    text = "\n".join(format_block(result(unmet), "pytest"))
    assert not set(text) & set("\x1b\x00\x07\r\u202e\u2066")
    assert len(text) < 5000
    assert not any(line.startswith("FAIL  forged") for line in text.splitlines())


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ü猫", "plain ü猫"),
        ("a\nb", r"a\nb"),
        ("\u202e", r"\u202e"),
        ("x" * 300 + "y" * 100, "x" * 200 + " ... " + "y" * 100 + " (400 characters)"),
    ],
)
def test_safe(text: str, shown: str) -> None:
    assert escape_text(text) == shown


def test_the_curl_line_keeps_secrets() -> None:
    settings = Settings("http://h", (("Authorization", "hunter2"), ("X-Key", "hunter3"), ("Host", "models")))
    command = build_curl_command(exchange(), settings)
    assert "hunter" not in command
    assert {"Authorization: ...", "X-Key: ...", "Host: models"} <= set(shlex.split(command))


@pytest.mark.parametrize(
    ("message", "options"),
    [
        (Message("/x", method="GET"), []),
        (Message("/x"), ["-H", "Content-Type:"]),
        (Message("/x", body=b"{}"), ["-H", "Content-Type:"]),
        (Message("/x", (("Content-Type", "a/b"), ("Empty", "")), b"{}"), ["-H", "Content-Type: a/b", "-H", "Empty;"]),
        (Message("/x", (("Content-Type", "a/b"),), b"x" * 2**20), ["-H", "Content-Type: a/b", "-H", "Expect:"]),
    ],
)
def test_curl_adds_no_headers_of_its_own(message: Message, options: list[str]) -> None:
    usual = ["-H", f"User-Agent: {USER_AGENT}", "-H", "Accept-Encoding: identity"]
    assert sorted(build_curl_headers(message, [])) == sorted([*options, *usual])


def test_a_name_that_is_not_the_cause_is_left_out() -> None:
    named = exchange(message=REQUEST.with_header("User-Agent", "axios/1.9.0"))
    assert "User-Agent: axios/1.9.0" in build_curl_command(named, HOST)
    assert "User-Agent" not in build_curl_command(named, HOST, names_client=False)


def test_a_large_body_is_not_put_into_the_command() -> None:
    assert build_curl_command(exchange(message=REQUEST.with_body(b"x" * 5000)), HOST).startswith(
        "(a body of 5000 bytes: "
    )


# --- a tensor of an earlier answer ------------------------------------------------------------------------------------


def answered(number: int, *elements: int, name: str = "X") -> Exchange:
    output = {"name": name, "datatype": "INT32", "shape": [len(elements)], "data": elements}
    asked = Message("/x", body=b"%d" % number)
    return Exchange(number, asked, "http://h/x", 200, body=json.dumps({"outputs": [output]}).encode())


RIGHT = Tensor.from_values("X", "INT32", [9, 9])


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
    assert describe_earlier_answer(unmet, exchanges) == words


@pytest.mark.parametrize(("tensor", "is_wrong"), [(RIGHT, True), (replace(RIGHT, name="Y"), False), (None, False)])
def test_a_readable_tensor_that_is_wrong_has_wrong_values(tensor: Tensor | None, is_wrong: bool) -> None:
    unmet = UnmetError("a", "b", Reply(answered(0, 1, 2)), tensor=tensor)
    assert describe(unmet, "BIN-ORDER-O", HOST).wrong_values == is_wrong


def test_nothing_is_said_of_the_same_request_sent_before() -> None:
    last = answered(1, 1, 2)
    before = replace(answered(0, 1, 2), message=last.message)
    assert describe_earlier_answer(UnmetError("a", "b", Reply(last), tensor=RIGHT), [before, last]) == ""


def test_nothing_is_said_where_no_tensor_was_expected() -> None:
    exchanges = [answered(0, 1, 2), answered(1, 1, 2)]
    assert describe_earlier_answer(UnmetError("a", "b", Reply(exchanges[-1])), exchanges) == ""
    assert describe_earlier_answer(UnmetError("a", "b", tensor=RIGHT), exchanges) == ""


def test_a_failure_names_the_requests_before_it_on_its_connection() -> None:
    exchanges = [replace(answered(number, 1, 2), connection=min(number, 1)) for number in range(7)]
    sent = [describe(UnmetError("a", "b", Reply(one)), "OIP-JSON", HOST, "", exchanges).sent for one in exchanges]
    assert not [text for text in sent[:2] if ", after " in text]
    assert sent[2].endswith(", after POST /x (HTTP 200)")
    assert sent[6].endswith(f", after 1 more, {', '.join(['POST /x (HTTP 200)'] * 4)}")
