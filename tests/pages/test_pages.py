"""What a page says of a requirement: its example, its checks, its faults, and what real servers do."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from conformance import checks
from conformance.pages import examples, pages, recorded_exchanges, requirement_facts, servers
from conformance.pages.examples import Example
from conformance.pages.servers import ServerResult
from conformance.roles import golden_calls, golden_requests
from conformance.spec import ledger
from conformance.spec.check import Case, Check
from conformance.spec.ledger import Basis, Concern, Level, Party, Requirement
from conformance.transport import reference_faults
from reference_server import faults
from tests.support.small_reports import report, requirement
from tests.support.tables import on_each

CLASSES = '"7.75:2:bird", "3.0:3:fish", "0.25:0:cat", "-1.5:1:dog"'
CASES: dict[str, golden_requests.Case | golden_calls.GrpcCase] = {
    **{f"{'valid' if case.valid else 'invalid'}/{case.name}": case for case in golden_requests.load_all()},
    **{f"grpc/{case.name}": case for case in golden_calls.load_all()},
}


def entry(area: str = "raw", extension: str = "raw") -> Requirement:
    cited = ("rfc9110.field-names",)
    return Requirement("RAW-A", Level.MUST, extension, area, Basis.LITERAL, "A.", cited, Concern.EXCHANGE, area)


# --- examples ---------------------------------------------------------------------------------------------------------


@on_each(examples.load().items())
def test_an_example_names_its_requirement_and_fits_the_page(requirement_id: str, example: Example) -> None:
    of_client = ledger.get_requirement(requirement_id).party is Party.CLIENT
    assert of_client or requirement_id in CASES[example.path].requirements
    assert example.request
    assert example.answer
    assert [line for line in (*example.request, *example.answer) if len(line) > 120] == []
    assert [line for line in (*example.request, *example.answer) if "```" in line or "\n" in line] == []


def test_every_requirement_that_a_case_names_has_an_example() -> None:
    of_clients = {entry.id for entry in ledger.load_for_party(Party.CLIENT)}
    assert set(examples.load()) - of_clients == {name for case in CASES.values() for name in case.requirements}


def test_chosen_cases_are_taken() -> None:
    chosen = {entry.id: entry.example for entry in ledger.load().values() if isinstance(entry.example, str)}
    assert len(chosen) > 50
    assert {name: examples.load()[name].path.partition("/")[2] for name in chosen} == chosen


def test_an_example_of_binary_data_shows_its_bytes() -> None:
    assert examples.load()["RAW-HEADER-ZERO"].request == (
        "POST /v2/models/documented_raw/infer",
        "Content-Type: application/octet-stream",
        "Content-Length: 16",
        "Inference-Header-Content-Length: 0",
        "",
        "<input FP32 [4], 16 bytes = 1.5, -2.25, 3.0, 0.5>",
        "  00 00 c0 3f  00 00 10 c0  00 00 40 40  00 00 00 3f",
    )


def test_folded_json_is_the_json_that_is_sent() -> None:
    example = examples.load()["BIN-LITTLE-ENDIAN-I"]
    case = CASES[example.path]
    assert isinstance(case, golden_requests.Case)
    begin = example.request.index("") + 1
    lines = [line for line in example.request[begin:] if not line.startswith(("<", "  "))]
    assert "".join(lines).encode() == case.body[: case.json_length]


@pytest.mark.parametrize(
    ("requirement_id", "answer"),
    [
        ("BIN-BODY-SHORT", ("HTTP status 400 to 499", '{"error": "..."}')),
        ("GRPC-SIZE-WRONG", ("any status except OK; preferably INVALID_ARGUMENT",)),
        (
            "BIN-HEADER-ON-EMPTY",
            (
                *("HTTP status 200", "<OUTPUT INT32 [2, 0], binary data, 0 bytes>"),
                *("", "or a refusal:", "", "HTTP status 400 to 499", '{"error": "..."}'),
            ),
        ),
        ("CLS-LABEL", ("HTTP status 200", "<SCORES BYTES [4], in the JSON, classes>", f"  {CLASSES}")),
    ],
)
def test_answers(requirement_id: str, answer: tuple[str, ...]) -> None:
    assert examples.load()[requirement_id].answer == answer


# --- checks and faults ------------------------------------------------------------------------------------------------


def test_faults_are_those_of_the_server() -> None:
    known = reference_faults.load()
    assert list(known) == list(faults.load())
    for name, fault in faults.load().items():
        assert (known[name].summary, known[name].breaks) == (fault.summary, fault.breaks)


def test_a_server_that_does_not_list_its_faults(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(reference_faults.NoFaultsError, match="does not list its faults"):
        reference_faults.load.__wrapped__()


def test_faults_of_a_requirement_are_about_it_or_about_another() -> None:
    found = requirement_facts.find_faults("BIN-ORDER-O")
    assert "binary-outputs-in-reverse" in {fault.name for fault in found.about}
    assert {fault.breaks[0] for fault in found.about} == {"BIN-ORDER-O"}
    assert "BIN-ORDER-O" not in {fault.breaks[0] for fault in found.beside}


def test_a_check_is_counted_by_the_rows_that_answer() -> None:
    for name, found in requirement_facts.map_checks().items():
        for each in found:
            assert each.rows
            assert all(name in Case(each.check, row).requirements for row in each.rows)


def test_the_clearest_check_is_about_the_requirement_and_part_of_every_run() -> None:
    found = requirement_facts.find_clearest_check("OIP-ISOLATION")
    assert found is not None
    assert Case(found.check, found.rows[0]).requirements[0] == "OIP-ISOLATION"
    assert not found.check.explores
    assert requirement_facts.find_clearest_check("NOTHING") is None


# --- real servers -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("verdicts", "offered", "over", "requirement", "word"),
    [
        ({"RAW-A": "pass"}, {"raw"}, {"http"}, entry(), "pass"),
        ({"RAW-A": "advisory"}, {"raw"}, {"http"}, entry(), "advice"),
        ({"RAW-A": "not_applicable"}, set(), {"http"}, entry(), "not offered"),
        ({"RAW-A": "not_applicable"}, {"raw"}, {"http"}, entry(), "not judged"),
        ({"RAW-A": "not_applicable"}, set(), {"http"}, entry("grpc", "classification_grpc"), "not judged"),
        ({"RAW-A": "not_applicable"}, set(), {"http", "grpc"}, entry("grpc", "classification_grpc"), "not offered"),
        ({}, {"raw"}, {"http"}, entry(), "no result yet"),
    ],
)
def test_what_a_server_does(
    verdicts: dict[str, str], offered: set[str], over: set[str], requirement: Requirement, word: str
) -> None:
    assert ServerResult("s", frozenset(offered), frozenset(over), verdicts).describe_outcome(requirement) == word


def test_reports_are_read_without_that_of_the_bundled_server(tmp_path: Path) -> None:
    unmet = [requirement("RAW-A", "MUST", "fail")]
    for name in ("b", "reference"):
        (tmp_path / f"{name}.json").write_text(json.dumps(report(None, None, requirements=unmet)))
    judged = report("server", "2.0", requirements=unmet)
    judged["target"]["grpc"] = "grpc://h:1"
    (tmp_path / "a.json").write_text(json.dumps(judged))
    named, unnamed = servers.load(tmp_path)
    assert (named.name, set(named.over)) == ("server 2.0", {"http", "grpc"})
    assert (unnamed.name, set(unnamed.over), set(unnamed.offered)) == ("b", {"http"}, {"binary_tensor_data"})
    assert pages.describe_servers(entry(), [named, unnamed]) == "fail: server 2.0, b"


# --- text -------------------------------------------------------------------------------------------------------------


def test_ids_in_a_text_become_links_but_not_in_code_and_not_its_own() -> None:
    text = "As RAW-ONE-INPUT says, and `RAW-ONE-INPUT`, unlike BIN-NOT-CHUNKED, not BIN-CONTENT-LENGTH."
    assert pages.link_ids(text, "BIN-CONTENT-LENGTH") == (
        "As [RAW-ONE-INPUT](raw.md#RAW-ONE-INPUT) says, and `RAW-ONE-INPUT`, "
        "unlike [BIN-NOT-CHUNKED](headers.md#BIN-NOT-CHUNKED), not BIN-CONTENT-LENGTH."
    )


def test_kinds_of_notes_stand_out() -> None:
    assert pages.format_note("Contested: two. Decision: one.") == "**Contested:** two. **Decision:** one."


def test_a_pipe_does_not_end_a_cell() -> None:
    assert pages.escape_cell("a|b") == "a\\|b"


def test_every_extension_has_a_title() -> None:
    entries = ledger.load().values()
    assert {entry.extension for entry in entries} <= set(pages.EXTENSIONS)


# --- recorded exchanges -----------------------------------------------------------------------------------------------


def test_every_requirement_has_an_example_a_golden_one_or_a_recorded_one() -> None:
    of_servers = {entry.id for entry in ledger.load_for_party(Party.SERVER)}
    assert of_servers <= set(examples.load()) | set(recorded_exchanges.load())
    assert set(examples.load()) & set(recorded_exchanges.load()) == set()
    chosen = {entry.id for entry in ledger.load().values() if isinstance(entry.example, int)}
    assert chosen <= set(recorded_exchanges.load())


@on_each([entry.id for entry in ledger.load_for_party(Party.SERVER) if entry.id not in examples.load()])
def test_a_recorded_exchange_is_whole_and_fits_the_page(requirement_id: str) -> None:
    exchange = recorded_exchanges.load()[requirement_id]
    check = _check(exchange.check)
    assert requirement_id in {name for case in check.cases for name in case.requirements}
    assert exchange.request
    assert exchange.answer[0].startswith(("HTTP ", "status "))
    assert [line for line in (*exchange.request, *exchange.answer) if len(line) > 120 or "```" in line] == []


def _check(check_id: str) -> Check:
    (found,) = (check for check in checks.load() if check.id == check_id)
    return found


def test_a_recorded_exchange_is_that_of_the_row() -> None:
    nan = recorded_exchanges.load()["CLS-NAN"]
    assert (nan.check, nan.row, nan.before) == ("classification.nan-somewhere", "first", 0)
    assert nan.request[:4] == (
        "POST /v2/models/scores/infer",
        "Content-Type: application/octet-stream",
        "Inference-Header-Content-Length: 160",
        "Content-Length: 176",
    )
    assert nan.request[-2:] == ("<octets, 16 bytes>", "  00 00 c0 7f 00 00 80 3f 00 00 00 40 00 00 40 40")
    assert nan.answer[-1] == '"shape":[4],"data":["3.0:3","2.0:2","1.0:1","nan:0"]}]}'


def test_a_recorded_call_is_shown_as_text() -> None:
    call = recorded_exchanges.load()["OIP-REFUSAL/grpc"]
    inputs = ("inputs {", '  name: "INPUT"', '  datatype: "INT32"', "  shape: 3", "  contents {")
    elements = ("    int_contents: 108199", "    int_contents: -112568", "    int_contents: 116937", "  }", "}")
    named = ("ModelInfer of inference.GRPCInferenceService", "", 'model_name: "there-is-no-such-model"')
    assert call.request == (*named, *inputs, *elements)
    assert call.answer[0].startswith("status NOT_FOUND: ")


def test_a_recorded_exchange_names_no_port() -> None:
    lines = [line for found in recorded_exchanges.load().values() for line in (*found.request, *found.answer)]
    assert {port for line in lines for port in re.findall(r"127\.0\.0\.1:(\d+)", line)} == {"8000"}
