"""What a profile demands of a report, on reports made by hand, and on a server whose failing model is left out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from conformance.certification.profiles import standing, unmet
from conformance.terms.outcome import CONFORMANT, INTEROPERABLE, ReasonKind
from conformance.transport.reference import ReferenceServer
from tests.support.certifying import certified

Document = dict[str, Any]


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
NO_MODEL, NOT_OFFERED = ReasonKind.NO_MODEL, ReasonKind.NOT_OFFERED


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
        ("full", report("pass", NO_MODEL, "fixed"), ["no model fills 1 role: fixed"]),
        ("full", report("pass", NO_MODEL, "rank0"), []),
        ("full", report("pass", NO_MODEL, "cast_bf16_fp32"), []),
    ],
)
def test_what_a_profile_demands(profile: str, given: Document, expected: list[str]) -> None:
    assert unmet(profile, given) == expected


@pytest.mark.parametrize(
    ("verdict", "interoperable", "given", "expected"),
    [
        ("conformant", True, report("pass"), CONFORMANT),
        ("nonconformant", True, report("fail", concern="refusal"), INTEROPERABLE),
        ("incomplete", True, report("blocked", concern="refusal"), INTEROPERABLE),
        ("conformant", True, report("not_applicable", ReasonKind.TOO_LARGE, concern="refusal"), INTEROPERABLE),
        ("conformant", True, report("not_applicable", ReasonKind.TOO_LARGE, concern="transport"), None),
        ("nonconformant", False, report("fail"), None),
        ("nonconformant", None, report("fail", concern="refusal"), None),
        ("nonconformant", True, report("fail", NO_MODEL, "fixed", concern="refusal"), None),
    ],
)
def test_as_what_a_server_can_be_certified(
    verdict: str, interoperable: bool | None, given: Document, expected: str | None
) -> None:
    assert standing("full", given | {"verdict": verdict, "interoperable": interoperable}) == expected


def test_many_musts_are_one_line_for_each_reason() -> None:
    one = report("not_applicable")["requirements"][0]
    entries = [*({**one, "id": f"N{k}"} for k in range(9)), {**one, "id": "F", "verdict": "fail"}]
    assert unmet("full", report("pass") | {"requirements": entries}) == [
        "9 MUSTs are not judged: N0, N1, N2, N3, N4, N5, N6, N7 and 1 more",
        "1 MUST is not met: F",
    ]


def test_a_requirement_without_any_row_is_demanded() -> None:
    assert unmet("binary", report("not_applicable") | {"rows": []}) == ["1 MUST is not judged: A"]


def test_a_model_that_is_left_out_is_missed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    server = ReferenceServer()
    names = ["identity_int32", "scores_labelled"]
    table = "\n".join(f'{name} = "{name}"' for name in names)
    (tmp_path / "t.toml").write_text(f'url = "{server.url}"\n[roles]\n{table}\n')
    try:
        assert certified(tmp_path / "c", f"--target-config={tmp_path / 't.toml'}", "--self-test") == 6
    finally:
        server.stop()
    assert " roles: identity_bool, " in capsys.readouterr().out
