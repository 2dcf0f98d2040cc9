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
        ("full", report("fail"), ["A is fail"]),
        ("full", report("known_failure"), ["A is known failure"]),
        ("full", report("blocked", ReasonKind.SIMPLER_IS_WRONG), ["A is blocked"]),
        ("full", report("not_applicable", ReasonKind.TOO_LARGE), ["A is not applicable"]),
        ("full", report("advisory", level="SHOULD"), []),
        ("binary", report("fail", extension=RAW), []),
        ("binary+raw", report("fail", extension=RAW), ["A is fail"]),
        ("binary", report("not_applicable", NOT_OFFERED, RAW, extension=BINARY), []),
        ("full", report("not_applicable", NOT_OFFERED, RAW, extension=BINARY), ["A is not applicable"]),
        ("classification", report("not_applicable", ReasonKind.NO_JSON_FORM, "cast_bf16_fp32"), []),
        ("full", report("not_applicable", ReasonKind.NO_JSON_FORM, "cast_bf16_fp32"), ["A is not applicable"]),
        ("full", report("not_applicable", area="grpc"), []),
        ("full", report("not_applicable", area="grpc", judged=(GRPC,)), ["A is not applicable"]),
        ("full", report("pass", NO_MODEL, "fixed"), ["no model fills the role fixed"]),
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


def test_a_requirement_without_any_row_is_demanded() -> None:
    assert unmet("binary", report("not_applicable") | {"rows": []}) == ["A is not applicable"]


def test_a_model_that_is_left_out_is_missed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    server = ReferenceServer()
    names = ["identity_int32", "scores_labelled"]
    table = "\n".join(f'{name} = "{name}"' for name in names)
    (tmp_path / "t.toml").write_text(f'url = "{server.url}"\n[roles]\n{table}\n')
    try:
        assert certified(tmp_path / "c", f"--target-config={tmp_path / 't.toml'}", "--self-test") == 6
    finally:
        server.stop()
    assert "no model fills the role identity_bool" in capsys.readouterr().out
