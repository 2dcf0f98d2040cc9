"""What is said to differ between an answer that comes directly and one that comes through a gateway."""

from __future__ import annotations

import gzip
from dataclasses import replace
from typing import Any, cast

import pytest

from conformance.report.exchange_changes import ChangeKind, find_changes, pair_calls
from conformance.report.through import Effect, compare
from conformance.spec.report import Report
from conformance.transport.exchange import Call, Exchange, FailureKind, TransportFailure
from conformance.transport.recording import Recording
from conformance.wire.request import INFERENCE_HEADER, Message

REQUEST = Message("/v2/models/m/infer", (("Content-Type", "application/json"),), b'{"inputs":[]}')
JSON = b'{"model_name":"m","model_version":"1","outputs":[]}'
ERROR = b'{"error":"no such model"}'
PAGE = b"<html>Bad Request</html>"
BINARY = (b'{"outputs":[{"name":"O","datatype":"INT8","shape":[2],"parameters":{"binary_data_size":2}}]}', b"\x01\x02")


def answered(status: int = 200, body: bytes = JSON, **headers: str) -> Exchange:
    shown = {name.replace("_", "-"): value for name, value in headers.items()}
    lines = {"Content-Type": "application/json", "Content-Length": str(len(body)), **shown}
    return Exchange(0, REQUEST, "http://h/v2/models/m/infer", status, tuple(lines.items()), body)


def binary(octets: bytes) -> Exchange:
    whole = answered(body=BINARY[0] + octets)
    return replace(whole, headers=(*whole.headers, (INFERENCE_HEADER, str(len(BINARY[0])))))


def without_header(exchange: Exchange, name: str) -> Exchange:
    return replace(exchange, headers=tuple(header for header in exchange.headers if header[0] != name))


OTHER_NAME = replace(binary(BINARY[1]), body=binary(BINARY[1]).body.replace(b'"O"', b'"P"'))
TWO = answered(body=b'{"outputs":[{"name":"A"},{"name":"B"}]}')
CASED = replace(answered(), headers=tuple((name.lower(), value) for name, value in answered().headers))
SILENT = replace(answered(), status=None, failure=TransportFailure(FailureKind.CLOSED, "closed without an answer"))
PACKED = answered(body=gzip.compress(JSON), Content_Encoding="gzip")
CUT = b'{"model_name":"m","outputs":[]}'
SPACED = b'{"model_name": "m", "model_version": "1", "outputs": []}'


@pytest.mark.parametrize(
    ("direct", "through", "expected"),
    [
        (answered(), answered(), []),
        (answered(), answered(Date="today", Connection="close"), []),
        (answered(), CASED, [(ChangeKind.HEADER_CASE, "content-length"), (ChangeKind.HEADER_CASE, "content-type")]),
        (answered(), answered(Via="1.1 gateway"), [(ChangeKind.HEADER_ADDED, "Via")]),
        (answered(), replace(answered(), version="HTTP/1.0"), [(ChangeKind.VERSION, "HTTP/1.1 -> HTTP/1.0")]),
        (answered(Vary="*"), answered(Vary="Accept"), [(ChangeKind.HEADER_CHANGED, "Vary")]),
        (answered(body=b"\x1f", Content_Encoding="gzip"), answered(), [(ChangeKind.HEADER_LOST, "Content-Encoding")]),
        (PACKED, answered(), [(ChangeKind.HEADER_LOST, "Content-Encoding")]),
        (PACKED, answered(body=CUT),
         [(ChangeKind.HEADER_LOST, "Content-Encoding"), (ChangeKind.MEMBER_LOST, "model_version")]),
        (PACKED, replace(PACKED, body=gzip.compress(CUT)), [(ChangeKind.MEMBER_LOST, "model_version")]),
        (PACKED, replace(PACKED, body=b"cut"), [(ChangeKind.BODY, "")]),
        (answered(), answered(body=SPACED), [(ChangeKind.SERIALISED, "")]),
        (answered(), answered(body=CUT), [(ChangeKind.MEMBER_LOST, "model_version")]),
        (answered(body=CUT), answered(), [(ChangeKind.MEMBER_ADDED, "model_version")]),
        (answered(), answered(body=JSON.replace(b'"m"', b'"n"')), [(ChangeKind.MEMBER_CHANGED, "model_name")]),
        (answered(body=b'{"id":"1"}'), answered(body=b'{"id":"2"}'), []),  # of a server that makes ids of its own
        (binary(BINARY[1]), OTHER_NAME, [(ChangeKind.MEMBER_CHANGED, "outputs")]),
        (TWO, replace(TWO, body=b'{"outputs":[{"name":"B"},{"name":"A"}]}'), [(ChangeKind.ORDER, "")]),
        (answered(body=b'{"x": NaN}'), answered(body=b'{"x":NaN}'), [(ChangeKind.SERIALISED, "")]),
        (answered(), answered(body=b"OK"), [(ChangeKind.BODY, "")]),
        (binary(BINARY[1]), binary(b"\x01\x00"), [(ChangeKind.BYTES, "")]),
        (binary(BINARY[1]), without_header(binary(BINARY[1]), INFERENCE_HEADER),
         [(ChangeKind.HEADER_LOST, INFERENCE_HEADER)]),
        (answered(400, ERROR), answered(400, PAGE), [(ChangeKind.ERROR, "")]),
        (answered(400, ERROR), answered(502, PAGE),
         [(ChangeKind.ERROR, ""), (ChangeKind.STATUS, "HTTP 400 -> HTTP 502")]),
        (answered(), answered(413, PAGE), [(ChangeKind.STATUS, "HTTP 200 -> HTTP 413")]),
        (answered(), SILENT, [(ChangeKind.ANSWER, "")]),
        (SILENT, SILENT, []),
    ],
)  # fmt: skip
def test_each_difference_is_named(direct: Exchange, through: Exchange, expected: list[tuple[ChangeKind, str]]) -> None:
    found = [(change.kind, change.name) for change in find_changes(direct, through)]
    assert sorted(found) == sorted(expected)


def test_texts_show_both_sides() -> None:
    (change,) = find_changes(answered(), answered(body=CUT))
    assert (change.direct, change.through) == ("model_version: 1", "no model_version")


def recorded(url: str, *messages: Message) -> Recording:
    calls = {
        ("check[row]", place): Call("check[row]", place, (each,), (replace(answered(), message=each),))
        for place, each in enumerate(messages)
    }
    return Recording(url, calls, None)  # type: ignore[arg-type]


def test_only_answers_to_one_request_are_compared() -> None:
    other_body = replace(REQUEST, body=b"{}")
    other_header = replace(REQUEST, headers=(("Content-Type", "text/plain"),))
    further_header = replace(REQUEST, headers=(*REQUEST.headers, ("Authorization", "...")))
    other_url = replace(REQUEST, path="http://gateway/base/v2/models/renamed/infer")
    other_method = replace(REQUEST, method="GET")
    direct = recorded("http://h", *[REQUEST] * 5)
    through = recorded("http://gateway", other_body, other_header, further_header, other_url, other_method)
    (pairs,) = pair_calls(direct, through).values()
    assert [pair[1].message for pair in pairs] == [further_header, other_url]


# --- two reports ------------------------------------------------------------------------------------------------------

MUST, OTHER = "BIN-ORDER-O", "OIP-ERROR"


def made(**outcomes: str) -> Report:
    """Return a report with a row of MUST for each name, and one row of another requirement that is met."""
    rows: list[Any] = [
        {
            "check": "check", "row": name, "outcome": outcome, "requirements": [MUST], "message": f"is {outcome}",
            "observation": "", "failure": {"requirement": MUST} if outcome in ("fail", "advisory") else None,
        }
        for name, outcome in outcomes.items()
    ]  # fmt: skip
    verdict = next((each for each in ("fail", "error", "pass") if each in outcomes.values()), "not_applicable")
    entries = [{"id": MUST, "level": "MUST", "verdict": verdict}, {"id": OTHER, "level": "MUST", "verdict": "pass"}]
    report: Any = {"rows": rows, "requirements": entries}
    return cast("Report", report)


@pytest.mark.parametrize(
    ("direct", "through", "effect", "status"),
    [
        (made(a="pass"), made(a="pass"), None, 0),
        (made(a="pass"), made(a="fail"), Effect.BROKEN, 1),
        (made(a="pass"), made(a="advisory", b="pass"), Effect.ADVISED, 0),
        (made(a="pass", b="pass"), made(a="not_applicable", b="pass"), Effect.UNJUDGED, 0),
        (made(a="pass"), made(a="not_applicable"), Effect.UNJUDGED, 6),
        (made(a="pass"), made(a="error"), Effect.UNJUDGED, 6),
        (made(a="pass"), made(), Effect.UNJUDGED, 6),
        (made(a="pass", b="fail"), made(a="fail", b="fail"), Effect.WORSE, 0),
        (made(a="fail"), made(a="fail"), None, 0),
        (made(a="fail"), made(a="pass"), Effect.MENDED, 0),
        (made(a="not_applicable"), made(a="fail"), None, 0),
        (made(a="error"), made(a="fail"), None, 6),
    ],
)
def test_what_a_gateway_does_to_a_requirement(
    direct: Report, through: Report, effect: Effect | None, status: int
) -> None:
    found = compare(direct, through, {})
    assert [kind for kind in Effect if MUST in found.select(kind)] == ([effect] if effect else [])
    assert found.exit_status == status


def test_a_server_that_fails_now_and_then_is_no_gateway_that_breaks() -> None:
    steady, failing = made(a="pass"), made(a="fail")
    assert compare(steady, failing, {}, made(a="pass")).exit_status == 1
    again = compare(steady, failing, {}, failing)
    assert (again.exit_status, list(again.unmet)) == (0, [MUST])


def test_rows_that_are_not_judged_for_one_reason_are_one_entry() -> None:
    lines = list(compare(made(a="pass", b="pass"), made(a="error", b="error"), {}).format_lines())
    assert lines[:4] == [
        "met directly, not judged through the gateway:",
        "  BIN-ORDER-O: 2 rows, check [a], check [b]",
        "      directly  met",
        "      through   is error",
    ]
    assert lines[-1] == "incomplete: not judged in both ways: BIN-ORDER-O"
