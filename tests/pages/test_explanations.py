"""What `oip-conformance explain` says of requirements, checks and faults."""

from __future__ import annotations

import pytest

from conformance.pages import explanations, requirement_facts
from conformance.pages.explanations import UnknownNameError, explain
from conformance.spec import ledger, links
from conformance.transport import reference_faults
from tests.support.tables import on_each, own_id


def labelled(text: str) -> dict[str, str]:
    """Return the lines of an explanation by label, without the line breaks."""
    found: dict[str, str] = {}
    label = ""
    for line in text.splitlines()[1:]:
        label = line[2:12].strip() or label
        found[label] = f"{found.get(label, '')} {line[12:].strip()}".strip()
    return found


def test_a_requirement() -> None:
    text = explain("bin-order-i")
    found = labelled(text)
    assert text.startswith("BIN-ORDER-I\n  Level      MUST, literal\n  Concern    exchange: ")
    assert found["Extension"] == "binary_tensor_data, area ordering"
    assert found["Statement"] == ledger.get_requirement("BIN-ORDER-I").statement
    assert found["Source"].startswith(
        'Triton, Binary Tensor Data Extension, "Binary Tensor Request": binary data follow the JSON'
    )
    assert [source.url in text for source in ledger.get_requirement("BIN-ORDER-I").sources] == [True, True]
    assert found["Note"] == ledger.get_requirement("BIN-ORDER-I").note
    assert "ordering.request-follows-its-json (36 rows)" in found["Checks"]


def test_a_check_of_deployed_models_alone_is_called_so() -> None:
    found = labelled(explain("OIP-OUTPUTS-ALL"))
    assert "metadata.answer-has-the-declared-outputs (1 row, with `--target-model`)" in found["Checks"]


def test_a_requirement_names_its_page_where_that_has_an_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "SITE", "")
    assert "Page" not in labelled(explain("CLS-HIGHEST/grpc"))
    monkeypatch.setattr(links, "SITE", "https://host/project")
    found = labelled(explain("CLS-HIGHEST/grpc"))
    assert found["Page"] == "https://host/project/docs/requirements/classification/#CLS-HIGHEST/grpc"


def test_a_check() -> None:
    found = labelled(explain("grpc.classes-are-those-of-http"))
    assert found["Answers"].startswith("GRPC-CLS-SAME-AS-HTTP (MUST): ")
    assert found["Over"] == "grpc and http"
    assert found["Needs"] == "classification, classification_grpc"
    assert found["Roles"].startswith("scores, scores_labelled, ")
    assert found["Run"] == (
        "pytest --target-url=http://HOST:PORT --target-grpc=HOST:PORT -k grpc.classes-are-those-of-http"
    )


@pytest.mark.parametrize(
    ("check", "label", "text"),
    [
        ("golden.valid-case-is-answered", "Needs", "raw (in some rows)"),
        ("ordering.inputs-without-elements-change-no-order", "Role", "multi"),
        ("metadata.answer-has-the-declared-outputs", "Run", " --target-model NAME -k "),
        ("walk.drawn-exchanges-are-right", "Run", " --conformance-profile=explore -k "),
    ],
)
def test_what_a_check_needs(check: str, label: str, text: str) -> None:
    assert text in labelled(explain(check))[label]


def test_a_fault() -> None:
    found = labelled(explain("binary-outputs-in-reverse"))
    assert found["Fault"] == "The server sends binary data of outputs in the reverse of the order in the JSON."
    assert found["Breaks"].startswith("BIN-ORDER-O (MUST): ")
    assert found["Serve"] == "oip-conformance serve --port 8000 --fault binary-outputs-in-reverse"
    assert found["Judge"] == "pytest --target-url=http://127.0.0.1:8000 -k BIN-ORDER-O"


def test_a_fault_over_grpc_is_served_and_judged_there() -> None:
    found = labelled(explain("grpc-raw-outputs-are-reversed"))
    assert " --grpc-port 8001 " in found["Serve"]
    assert " --target-grpc=127.0.0.1:8001 " in found["Judge"]


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("BIN-ORD", "BIN-ORDER-O"),
        ("ordering.response-follows-json", "ordering.response-follows-its-json"),
        ("Binary_outputs_in_reverse", "binary-outputs-in-reverse"),
    ],
)
def test_an_unknown_name_is_met_with_those_that_are_near(name: str, near: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        explain(name)
    assert caught.value.similar[0] == near
    assert str(caught.value).startswith(f"no requirement, check or fault is called {name!r}; did you mean {near}")


def test_nothing_is_near_to_what_is_no_name() -> None:
    with pytest.raises(UnknownNameError, match=r"is called '\?'$"):
        explain("?")


def test_names_mean_one_thing() -> None:
    names = [*ledger.load(), *(check.id for check in requirement_facts.list_checks()), *reference_faults.load()]
    assert len({name.lower() for name in names}) == len(names)


@on_each(ledger.load().values(), own_id)
def test_an_explanation_fits_a_terminal(entry: ledger.Requirement) -> None:
    lines = explanations.format_lines(entry.id, explanations.describe_requirement(entry)).splitlines()
    assert max(len(line) for line in lines if "https://" not in line and not line.startswith("  Page ")) <= 100


def test_checks_and_faults_are_all_explained() -> None:
    for check in requirement_facts.list_checks():
        assert labelled(explanations.format_lines(check.id, explanations.describe_check(check)))["Claim"]
    for fault in reference_faults.load().values():
        assert labelled(explanations.format_lines(fault.name, explanations.describe_fault(fault)))["Breaks"]


def test_a_requirement_over_grpc_leads_to_and_fro() -> None:
    found = labelled(explain("cls-highest/GRPC"))
    assert found["Extension"] == "classification_grpc, area grpc"
    assert found["Statement"] == ledger.get_requirement("CLS-HIGHEST").statement
    assert labelled(explain("CLS-HIGHEST"))["Over gRPC"] == "CLS-HIGHEST/grpc"
