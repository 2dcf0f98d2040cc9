"""What a profile demands of a report, on reports made by hand."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.certification.profiles import find_nearest, find_standing, list_unmet_musts
from conformance.spec.outcome import CONFORMANT, INTEROPERABLE, PARTIAL, ReasonKind

Document = Any  # a part of a report


def report(verdict: str, reason: ReasonKind | None = None, subject: str = "", *, level: str = "MUST",
           extension: str = "protocol", area: str = "json", judged: tuple[str, ...] = (),
           concern: str = "exchange") -> Document:  # fmt: skip
    """Return a report of one requirement with one row."""
    requirement = {
        "id": "A", "level": level, "concern": concern, "extension": extension, "area": area, "verdict": verdict
    }  # fmt: skip
    return {
        "options": {"extensions": list(judged)},
        "requirements": [requirement],
        "rows": [{"requirements": ["A"], "reason": reason and {"kind": reason, "subject": subject}}],
    }


BINARY, RAW, GRPC = "binary_tensor_data", "raw", "classification_grpc"
NO_ADDRESS = ReasonKind.TRANSPORT_NOT_GIVEN
NO_MODEL, NOT_OFFERED, TOO_LARGE = ReasonKind.NO_MODEL, ReasonKind.NOT_OFFERED, ReasonKind.TOO_LARGE


@pytest.mark.parametrize(
    ("profile", "given", "expected"),
    [
        ("full", report("pass"), []),
        ("full", report("fail"), ["1 MUST is not met: A"]),
        ("full", report("known_failure"), ["1 MUST is known not to be met: A"]),
        ("full", report("blocked", ReasonKind.SIMPLER_IS_WRONG), ["1 MUST is blocked: A"]),
        ("full", report("not_applicable", ReasonKind.TOO_LARGE), ["1 MUST is not judged: A"]),
        ("full", report("advisory", level="SHOULD"), []),
        ("binary", report("fail", extension=RAW), []),
        ("binary+raw", report("fail", extension=RAW), ["1 MUST is not met: A"]),
        ("binary", report("not_applicable", NOT_OFFERED, RAW, extension=BINARY), []),
        ("full", report("not_applicable", NOT_OFFERED, RAW, extension=BINARY), ["1 MUST is not judged: A"]),
        ("classification", report("not_applicable", ReasonKind.NO_JSON_FORM, "cast_bf16_fp32"), []),
        ("full", report("not_applicable", ReasonKind.NO_JSON_FORM, "cast_bf16_fp32"), ["1 MUST is not judged: A"]),
        ("full", report("not_applicable", area="grpc"), []),
        ("full", report("not_applicable", area="grpc", judged=(GRPC,)), ["1 MUST is not judged: A"]),
        ("grpc-alone", report("not_applicable", area="grpc", judged=(GRPC,)), ["1 MUST is not judged: A"]),
        ("grpc-alone", report("not_applicable", NO_ADDRESS, "http", area="grpc", judged=(GRPC,)), []),
        ("grpc-alone", report("not_applicable", area="json", judged=(GRPC,)), []),
        ("full", report("not_applicable", NO_ADDRESS, "http", judged=(GRPC,)), ["1 MUST is not judged: A"]),
    ],
)
def test_what_a_profile_demands(profile: str, given: Document, expected: list[str]) -> None:
    assert list_unmet_musts(profile, given) == expected


UNJUDGED = report("not_applicable", NO_MODEL, "fixed")


@pytest.mark.parametrize(
    ("verdict", "interoperable", "given", "gate", "expected"),
    [
        ("conformant", True, report("pass"), None, CONFORMANT),
        ("conformant", True, report("pass"), INTEROPERABLE, CONFORMANT),
        ("nonconformant", True, report("fail", concern="refusal"), INTEROPERABLE, INTEROPERABLE),
        ("nonconformant", True, report("fail", concern="refusal"), None, None),
        ("incomplete", True, report("blocked", concern="refusal"), INTEROPERABLE, INTEROPERABLE),
        ("conformant", True, report("not_applicable", TOO_LARGE, concern="refusal"), INTEROPERABLE, INTEROPERABLE),
        ("conformant", True, report("not_applicable", TOO_LARGE, concern="transport"), INTEROPERABLE, None),
        ("nonconformant", False, report("fail"), INTEROPERABLE, None),
        ("nonconformant", None, report("fail", concern="refusal"), INTEROPERABLE, None),
        ("partial", None, UNJUDGED, None, PARTIAL),
        ("partial", None, UNJUDGED, CONFORMANT, None),
        ("partial", None, UNJUDGED, INTEROPERABLE, None),
        ("partial", True, report("not_applicable", NO_MODEL, concern="refusal"), INTEROPERABLE, INTEROPERABLE),
        ("partial", True, report("not_applicable", NO_MODEL, concern="refusal"), None, PARTIAL),
        ("incomplete", None, report("blocked"), None, None),
    ],
)
def test_as_what_a_server_is_certified(
    verdict: str, interoperable: bool | None, given: Document, gate: str | None, expected: str | None
) -> None:
    assert find_standing("full", given | {"verdict": verdict, "interoperable": interoperable}, gate) == expected


def test_many_musts_are_one_line_for_each_reason() -> None:
    one = report("not_applicable")["requirements"][0]
    entries = [*({**one, "id": f"N{k}"} for k in range(9)), {**one, "id": "F", "verdict": "fail"}]
    assert list_unmet_musts("full", report("pass") | {"requirements": entries}) == [
        "9 MUSTs are not judged: N0, N1, N2, N3, N4, N5, N6, N7 and 1 more",
        "1 MUST is not met: F",
    ]


@pytest.mark.parametrize(
    ("profile", "unmet", "expected"),
    [
        ("full", {"R": RAW}, ("binary", [])),
        ("full", {"B": BINARY, "R": RAW}, ("classification", [])),
        ("full", {"P": "protocol", "R": RAW}, ("binary", ["P"])),
        ("full", {"P": "protocol"}, None),
        ("classification", {"C": "classification"}, None),
    ],
)
def test_the_nearest_profile(profile: str, unmet: dict[str, str], expected: tuple[str, list[str]] | None) -> None:
    one = report("fail")
    entries = [one["requirements"][0] | {"id": name, "extension": extension} for name, extension in unmet.items()]
    assert find_nearest(profile, one | {"requirements": entries}) == expected


def test_a_requirement_without_any_row_is_demanded() -> None:
    assert list_unmet_musts("binary", report("not_applicable") | {"rows": []}) == ["1 MUST is not judged: A"]
