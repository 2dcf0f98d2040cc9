"""A claim is a check over HTTP and one over gRPC, whose id, requirements and rows follow from the first."""

from __future__ import annotations

from conformance.spec.check import RAW_ALONE, Check, Only, Row, claim, rows
from conformance.spec.extensions import BINARY, CLASSES, CLASSES_OVER_GRPC, GRPC, HTTP, RAW

FORM = Only(HTTP, "calls cannot ask for the form of an output")


@claim("json.answer-is-large", requirements=("OIP-ID", "OIP-JSON"), over_grpc=("OIP-REFUSAL/grpc",))
@rows(
    Row("a", (1,), role="multi", requirements=("OIP-MODEL-NAME",)),
    Row("infinite", (2, "binary"), role="multi", needs=BINARY),
    Row("classes", (3,), role="scores", needs=CLASSES),
    Row("raw", (4,), role="multi", needs=RAW),
    Row("form", (5,), role="multi", only=FORM),
    Row("call", (6,), role="multi", only=Only(GRPC, "a path has a name")),
    Row("deployed", (7,)),
)
def answer_is_large(target: object, model: object, count: int, send: str = "json", last: int = 0) -> None:
    """The answer is large."""
    del target, model, count, send, last


CALLS = answer_is_large.also[0]


def list_values(check: Check) -> dict[str, tuple[object, ...]]:
    return {row.id: row.values for row in check.rows}


def test_the_id_and_the_requirements_over_grpc_follow_from_those_over_http() -> None:
    assert (answer_is_large.id, answer_is_large.over) == ("json.answer-is-large", (HTTP,))
    assert (CALLS.id, CALLS.over) == ("grpc.answer-is-large", (GRPC,))
    assert CALLS.requirements == ("OIP-REFUSAL/grpc", "OIP-ID/grpc")
    assert CALLS.rows[0].requirements == ("OIP-OUTPUT-MEMBERS/grpc",)


def test_rows_of_one_transport_run_over_that_one() -> None:
    assert list(list_values(answer_is_large)) == ["a", "infinite", "classes", "raw", "form", "deployed"]
    assert {row.id: row.only for row in answer_is_large.rows}["raw"] is RAW_ALONE


def test_a_row_with_a_role_is_sent_in_typed_and_in_raw_contents() -> None:
    assert list_values(CALLS) == {
        "a-typed": (1, "json", 0),
        "a-raw": (1, "binary", 0),
        "infinite-typed": (2, "json", 0),
        "infinite-raw": (2, "binary", 0),
        "classes-typed": (3, "json", 0),
        "classes-raw": (3, "binary", 0),
        "call-typed": (6, "json", 0),
        "call-raw": (6, "binary", 0),
        "deployed": (7,),
    }


def test_needs_over_grpc_are_those_of_calls() -> None:
    needs = {row.id: row.needs for row in CALLS.rows}
    assert (needs["infinite-raw"], needs["classes-raw"]) == ((), CLASSES_OVER_GRPC)
