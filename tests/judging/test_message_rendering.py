"""The exchange that a report keeps, and the JSON that a failure shows: short, and whatever it is."""

from __future__ import annotations

import hashlib
import json
from base64 import b64decode

import pytest

from conformance.judging.message_rendering import MAX_ARRAY_ITEMS, MAX_BODY_BYTES, render_exchange, shorten_json
from conformance.report.findings import get_failure
from conformance.report.json_report import build_rows
from conformance.spec.outcome import Outcome
from conformance.spec.result import CheckResult, Failure
from conformance.transport.exchange import Exchange, FailureKind, Reply, TransportFailure
from conformance.wire.request import Message, frame
from conformance.wire.tensor import Tensor

REQUEST = frame(
    "/v2/models/m/infer",
    {"inputs": [{"name": "IN0", "shape": [2], "datatype": "INT32", "parameters": {"binary_data_size": 8}}]},
    [Tensor.from_values("IN0", "INT32", [1, 2])],
)
HEAD = b'{"outputs":[{"name":"OUT0","datatype":"INT16","shape":[1],"parameters":{"binary_data_size":2}}]}'
HIDDEN = "s3cret-of-the-user"


def reply(body: bytes = HEAD + b"\x01\x00", message: Message = REQUEST, *headers: tuple[str, str]) -> Reply:
    own = (("Inference-Header-Content-Length", str(len(HEAD))), *headers)
    return Reply(Exchange(0, message, "http://h/v2/models/m/infer", 200, own, body))


def test_bodies_come_with_their_parts() -> None:
    shown = render_exchange(reply(), ())
    sent = shown["request"]
    assert b64decode(sent["body_base64"]) == REQUEST.body
    assert sent["sha256"] == hashlib.sha256(REQUEST.body).hexdigest()
    end = REQUEST.json_length
    assert sent["fields"] == [[0, end, "JSON"], [end, end + 8, "tensor 0 IN0 INT32", 4]]
    came = shown["answer"]
    assert came["length"] == len(HEAD) + 2
    assert came["fields"] == [[0, len(HEAD), "JSON"], [len(HEAD), len(HEAD) + 2, "tensor 0 OUT0 INT16", 2]]


def test_heads_are_lines() -> None:
    shown = render_exchange(reply(), ())
    assert shown["request"]["head"][0] == "POST /v2/models/m/infer"
    assert f"Inference-Header-Content-Length: {REQUEST.json_length}" in shown["request"]["head"]
    assert shown["answer"]["head"] == ["HTTP 200", f"Inference-Header-Content-Length: {len(HEAD)}"]


def test_what_went_wrong_on_the_way_is_a_line() -> None:
    failure = TransportFailure(FailureKind.CLOSED, "connection closed without an answer")
    shown = render_exchange(Reply(Exchange(0, REQUEST, "http://h", failure=failure)), ())
    assert shown["answer"]["head"] == ["no answer", "(connection closed without an answer)"]
    assert "body_base64" not in shown["answer"]


@pytest.mark.parametrize(("length", "is_kept"), [(MAX_BODY_BYTES, True), (MAX_BODY_BYTES + 1, False)])
def test_a_long_body_is_named_by_its_digest(length: int, is_kept: bool) -> None:
    body = b"x" * length
    came = render_exchange(reply(body), ())["answer"]
    assert ("body_base64" in came, "fields" in came) == (is_kept, is_kept)
    assert (came["length"], came["sha256"]) == (length, hashlib.sha256(body).hexdigest())


def test_secrets_are_hidden_wherever_a_server_repeats_them() -> None:
    body = b'{"error": "not with %s"}' % HIDDEN.encode()
    came = render_exchange(reply(body, REQUEST, ("X-Echo", f"Bearer {HIDDEN}")), (HIDDEN,))["answer"]
    assert b64decode(came["body_base64"]) == body.replace(HIDDEN.encode(), b"*" * len(HIDDEN))
    assert came["head"][-1] == f"X-Echo: Bearer {'*' * len(HIDDEN)}"
    assert came["sha256"] != hashlib.sha256(body).hexdigest(), (
        "the digest of a secret would be one more thing to guess by"
    )


def test_cookies_are_not_shown() -> None:
    came = render_exchange(reply(HEAD, REQUEST, ("Set-Cookie", "id=1")), ())["answer"]
    assert came["head"][-1] == "Set-Cookie: ..."


def test_what_a_server_writes_is_safe_and_bounded() -> None:
    many = [(f"X-{n}", "\x1b[31m" + "y" * 9000) for n in range(500)]
    came = render_exchange(reply(HEAD, REQUEST, *many), ())["answer"]
    assert len(came["head"]) < 60
    assert all(line.isprintable() and len(line) < 500 for line in came["head"])


def test_a_report_keeps_the_first_exchange_of_a_check_and_a_requirement() -> None:
    def row(check: str, name: str, requirement: str) -> CheckResult:
        failure = Failure(requirement, "MUST", "", "", "a", "b", evidence=render_exchange(reply(), ()))
        return CheckResult(check, name, "", "a", "e", Outcome.FAIL, [requirement], failure=failure)

    rows = [row("a.x", "1", "R"), row("a.x", "2", "R"), row("a.x", "3", "S"), row("a.y", "1", "R")]
    kept = ["evidence" in get_failure(entry) for entry in build_rows(rows)]
    assert kept == [True, False, True, True]
    without = CheckResult("a.z", "", "", "a", "e", Outcome.FAIL, ["R"], failure=Failure("R", "MUST", "", "", "a", "b"))
    (entry,) = build_rows([without])
    assert "evidence" not in get_failure(entry)


def test_an_exchange_travels_with_its_result() -> None:
    failure = Failure("R", "MUST", "", "", "a", "b", evidence=render_exchange(reply(), ()))
    result = CheckResult("a.x", "", "", "a", "e", Outcome.FAIL, ["R"], failure=failure)
    assert CheckResult.from_dict(result.to_dict()) == result


# --- JSON on a line ---------------------------------------------------------------------------------------------------


def test_long_arrays_lose_their_tail() -> None:
    shown = json.loads(shorten_json(json.dumps({"data": list(range(100)), "shape": [100]}).encode()))
    assert shown == {"data": [*range(MAX_ARRAY_ITEMS), "... 94 more"], "shape": [100]}


def test_long_texts_and_many_members_are_cut() -> None:
    shown = json.loads(shorten_json(json.dumps({"id": "x" * 100 + "y" * 40, **{str(n): n for n in range(9)}}).encode()))
    assert shown["id"] == "x" * 80 + " ... " + "y" * 40 + " (140 characters)"
    assert shown["..."] == "4 more"


@pytest.mark.parametrize("text", [b"", b"no JSON", b"[" * 5000, b"\xff\xfe", b"{}" * 3])
def test_what_is_no_json_is_shown_as_it_begins(text: bytes) -> None:
    assert shorten_json(text) == text.decode("utf-8", "replace")


def test_what_is_deep_ends() -> None:
    assert shorten_json(b"[" * 40 + b"]" * 40).count("[") == 8
