"""Packs: one that is named is judged beside the suite, and a broken one is one line."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tritonclient.grpc import service_pb2

from conformance import checks, judge
from conformance.api import JudgeError
from conformance.api.pack_testing import find_unmet, judge_pack
from conformance.commands import main
from conformance.discovery.config_tables import format_roles_table
from conformance.judging import packs
from conformance.pages import explanations
from conformance.report import formats, report_file
from conformance.report.comparison import compare
from conformance.report.matrix import build_matrix
from conformance.roles import roles
from conformance.roles.placement import Placement
from conformance.spec import ledger
from conformance.spec.data_files import compute_digest
from reference_server import app, grpc_methods, models
from reference_server.grpc_server import GrpcServer
from tests.support.few_rows import FEW_ROWS
from tests.support.installed_packs import FILES, write_pack
from tests.support.servers import judge as run_suite


@pytest.fixture(autouse=True)
def _forget_packs(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(packs, "_LOADED", {})
    monkeypatch.setattr(roles, "_OF_PACKS", {})
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] == "oip_little_pack"]:
        del sys.modules[name]


def install(place: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, str], **names: str) -> None:
    write_pack(place, changes, **names)
    monkeypatch.syspath_prepend(str(place))


# A claim over both transports; a check over gRPC alone; the requirements of both; a role.
CLAIM = """
    from conformance.expect.unmet import UnmetError
    from conformance.spec.check import check, claim
    from conformance.wire.request import Message

    @claim("little.is-live", requirements="LITTLE-LIVE", role="little_texts")
    def is_live(target, model):
        \"\"\"The model computes texts.\"\"\"
        if not target.infer(model.request(send="json")).answer.output("TEXTS"):
            raise UnmetError("TEXTS", "nothing")
"""
CALL = """
    @check("little.is-ready", requirements="LITTLE-READY/grpc", over=("grpc",))
    def is_ready(target):
        \"\"\"The server is ready.\"\"\"
        reply = target.send(Message("/inference.GRPCInferenceService/ServerReady", (), b"", "GRPC"))
        if reply.body != bytes([8, 1]):
            raise UnmetError("a ready server", reply.body.hex(), reply)
"""
OVER_GRPC = """
    [LITTLE-LIVE]
    level = "MUST"
    concern = "exchange"
    basis = "literal"
    statement = "The server is live."
    sources = ["little-doc.live"]
    grpc = {}
    ["LITTLE-READY/grpc"]
    level = "MUST"
    concern = "exchange"
    basis = "literal"
    statement = "The server is ready."
    sources = ["little-doc.live"]
"""
ROLE = """
    [little_texts]
    purpose = "integers as texts"
    compute = "text"
    inputs = [{ name = "INPUT", datatype = "INT32", shape = [-1] }]
    outputs = [
        { name = "ECHO", datatype = "INT32", shape = [-1] },
        { name = "TEXTS", datatype = "BYTES", shape = [-1] },
    ]
"""
WHOLE = {"requirements.toml": OVER_GRPC, "live.py": CLAIM + CALL, "roles.toml": ROLE}

BROKEN = {
    "raises": ({"live.py": "1 / 0"}, "ZeroDivisionError: division by zero"),
    "exits": ({"__init__.py": "raise SystemExit('bye')"}, "SystemExit: bye"),
    "several-lines": ({"__init__.py": "raise OSError('one\\ntwo\\x1b[31m')"}, "OSError: one\\ntwo\\x1b[31m"),
    "no-syntax": ({"live.py": "def"}, "SyntaxError: invalid syntax (live.py, line 1)"),
    "no-interface": ({"__init__.py": "#"}, "it has INTERFACE = None, and this suite has 1: see docs/develop/packs.md"),
    "newer": ({"__init__.py": "INTERFACE = 2"}, "it has INTERFACE = 2, and this suite has 1: update oip-conformance"),
    "no-file": ({"requirements.toml": ""}, "requirements.toml: No such file or directory"),
    "no-toml": ({"sentences.toml": "]"}, "sentences.toml: not TOML: "),
    "not-the-schema": ({"sentences.toml": "[a]\ntitle = 1"}, "sentences.toml: $.a"),
    "foreign-document": (
        {"sentences.toml": FILES["sentences.toml"].replace("little-doc", "oip-rest")},
        "sentences.toml: there is another document oip-rest",
    ),
    "foreign-id": (
        {"requirements.toml": FILES["requirements.toml"].replace("LITTLE-LIVE", "OIP-ALIVE")},
        "requirements.toml: OIP-ALIVE does not begin with LITTLE-",
    ),
    "extension": (
        {"requirements.toml": FILES["requirements.toml"].replace("concern", "extension")},
        "requirements.toml: LITTLE-LIVE: the keys of a requirement are ",
    ),
    "unknown-sentence": (
        {"requirements.toml": FILES["requirements.toml"].replace("little-doc.live", "little-doc.dead")},
        "requirements.toml: LITTLE-LIVE cites little-doc.dead, which no document has",
    ),
    "unknown-role": (
        {"live.py": FILES["live.py"].replace("identity_int32", "identity_int33")},
        "little.is-fast needs the role identity_int33, which neither the suite nor roles.toml has",
    ),
    "foreign-check": (
        {"live.py": FILES["live.py"].replace("little.is-live", "sizes.is-live")},
        "the check sizes.is-live is not `little.` and some words, over HTTP or gRPC, on rows of its own",
    ),
    "foreign-requirement": (
        {"live.py": FILES["live.py"].replace("LITTLE-LIVE", "OIP-ALIVE")},
        "little.is-live [live] cites OIP-ALIVE: cite what requirements.toml has",
    ),
    "twice": (
        {"live.py": FILES["live.py"].replace("little.is-fast", "little.is-live")},
        "the suite is invalid: two checks have the id little.is-live: ",
    ),
    "no-check": ({"live.py": ""}, "no check cites LITTLE-LIVE"),
    "no-requirement-over-grpc": (
        {"live.py": CLAIM, "roles.toml": ROLE},
        "little.is-live-over-grpc cites LITTLE-LIVE/grpc: cite what requirements.toml has",
    ),
    "other-transport": (
        {**WHOLE, "live.py": CLAIM + CALL.replace("LITTLE-READY/grpc", "LITTLE-LIVE")},
        "little.is-ready cites LITTLE-LIVE: cite requirements with /grpc over gRPC alone",
    ),
    "over-both": (
        {**WHOLE, "live.py": CLAIM + CALL.replace('over=("grpc",)', 'over=("http", "grpc")')},
        "the check little.is-ready is not `little.` and some words, over HTTP or gRPC, on rows of its own",
    ),
    "extension-over-grpc": (
        {"requirements.toml": OVER_GRPC.replace("grpc = {}", 'grpc = { extension = "raw" }')},
        "requirements.toml: LITTLE-LIVE: the keys of a requirement are ",
    ),
    "twice-over-grpc": (
        {"requirements.toml": OVER_GRPC.replace("LITTLE-READY", "LITTLE-LIVE")},
        "requirements.toml: there is another requirement LITTLE-LIVE/grpc",
    ),
    "roles-no-toml": ({"roles.toml": "["}, "roles.toml: not TOML: "),
    "role-of-the-suite": (
        {"roles.toml": ROLE.replace("little_texts", "identity_int32")},
        "roles.toml: identity_int32 does not begin with little_",
    ),
    "role-of-no-schema": ({"roles.toml": ROLE.replace('"text"', '"guess"')}, "roles.toml: $."),
    "role-that-cannot-be-computed": (
        {"roles.toml": ROLE.replace('"INPUT"', '"OTHER"')},
        "roles.toml: little_texts: its tensors do not fit the computation text: KeyError: 'INPUT'",
    ),
    "role-of-other-shapes": (
        {"roles.toml": ROLE.replace('"BYTES", shape = [-1]', '"BYTES", shape = [-1, 1]')},
        "roles.toml: little_texts: TEXTS of text has the shape [3]",
    ),
    "role-with-labels-of-nothing": (
        {"roles.toml": ROLE + 'labels = { NUMBERS = ["a"] }'},
        "roles.toml: little_texts: there are labels of NUMBERS, which is no output",
    ),
}


@pytest.mark.parametrize(("changes", "line"), BROKEN.values(), ids=BROKEN)
def test_a_broken_pack_is_one_line(
    changes: dict[str, str], line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, monkeypatch, changes)
    with pytest.raises(packs.PackError) as raised:
        packs.load("little")
    assert str(raised.value).startswith(f"the pack little of oip_little_pack 0.5 cannot be used: {line}")
    assert "\n" not in str(raised.value)
    assert packs.list_loaded() == ()
    with pytest.raises(ledger.UnknownRequirementError):
        ledger.get_requirement("LITTLE-NOTHING")


@pytest.mark.parametrize("name", ["raw", "sizes", "Little", "li-ttle", "robustness", "must", "over_http"])
def test_a_name_of_the_suite_or_of_another_form_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, monkeypatch, {}, name=name)
    with pytest.raises(packs.PackError, match="it cannot be called"):
        packs.load(name)


def test_two_packs_of_one_name_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path / "one", monkeypatch, {})
    install(tmp_path / "two", monkeypatch, {}, package="oip_other_pack")
    with pytest.raises(packs.PackError, match=r"two packs have one name: little of oip_little_pack 0\.5 and little"):
        packs.load("little")


def test_an_unknown_name_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, {})
    with pytest.raises(JudgeError, match=r"^extensions: unknown 'litle'; give one of binary_.*\(installed: .*little"):
        judge("http://127.0.0.1:9", extensions=["litle"])


def test_a_pack_changes_nothing_of_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small: str) -> None:
    """Neither does one that fails, and that is named, nor one that is only installed."""
    install(tmp_path, monkeypatch, {})
    version, requirements, rows = ledger.compute_version(), dict(ledger.load()), checks.load()
    without, beside = (judge(small, extensions=names) for names in (["protocol"], ["protocol", "little"]))
    theirs, ours = ({**report.to_dict()} for report in (without, beside))
    (found,) = ours.pop("packs")
    for report in (theirs, ours):
        for name in ("started", "finished", "footer"):
            del report[name]
        for row in report["rows"]:
            del row["duration_s"]
    assert ours == theirs
    assert (ledger.compute_version(), dict(ledger.load()), checks.load()) == (version, requirements, rows)
    assert (found["name"], found["version"], found["verdict"]) == ("little", "0.5", "nonconformant")
    assert {entry["id"]: entry["verdict"] for entry in found["requirements"]} == {
        "LITTLE-LIVE": "fail",
        "LITTLE-FAST": "advisory",
    }


def run_pytest(place: Path, server: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_suite(place, "-q", f"--target-url={server}", "-o", f"pythonpath={place}", *arguments)


def test_a_run_has_a_section_and_files_that_show_the_pack(tmp_path: Path, small: str) -> None:
    write_pack(tmp_path, {})
    path = tmp_path / "report.json"
    done = run_pytest(tmp_path, small, "--target-extension=little", "-k", "little", f"--conformance-report={path}")
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1].endswith("; pack little: nonconformant")
    assert "= pack little 0.5 =" in done.stdout
    report = report_file.read(path)
    assert report["packs"][0]["digest"] == compute_digest((tmp_path / "oip_little_pack",))
    page, markdown = (formats.FORMATS[suffix](report) for suffix in (".html", ".md"))
    for text in (page, markdown):
        assert "LITTLE-LIVE" in text
        assert "It does not affect the verdict." in text or "it does not affect the verdict" in text
        assert "\x1b" not in text
    assert "<b>this one" not in page
    matrix = build_matrix(compare([("report", report)]), [("report", report)])
    kinds = {row.id: row.cells[0].kind for row in matrix.rows if row.extension == "little"}
    assert kinds == {"LITTLE-LIVE": "fail", "LITTLE-FAST": "advisory"}


def test_a_bug_report_is_about_an_installed_pack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], small: str
) -> None:
    install(tmp_path, monkeypatch, {})
    own = (f"--conformance-report={tmp_path}/r.json", f"--conformance-evidence={tmp_path}/e")
    run_pytest(tmp_path, small, "--target-extension=little", "-k", "little", *own)
    for source in ("r.json", "e"):
        assert main.main(["bug-report", str(tmp_path / source)]) == 0
        assert "- Requirement: [LITTLE-LIVE](https://example.org/little#live) (MUST)" in capsys.readouterr().out
        assert main.main(["bug-report", str(tmp_path / source), "little-fast"]) == 0
        assert "- Requirement: [LITTLE-FAST]" in capsys.readouterr().out


def test_rows_of_a_pack_run_in_no_other_process(tmp_path: Path, small: str) -> None:
    write_pack(tmp_path, {})
    done = run_pytest(tmp_path, small, "--target-extension=little", "-n", "2")
    assert done.returncode == 4
    assert "--target-extension little cannot be combined with -n: the rows of a pack run alone" in done.stderr


def test_a_baseline_has_the_rows_of_a_pack(tmp_path: Path, small: str) -> None:
    write_pack(tmp_path, {})
    baseline = f"--conformance-baseline={tmp_path / 'baseline.toml'}"
    asked = (
        "--target-extension=protocol",
        "--target-extension=little",
        "--conformance-profile=quick",
        baseline,
        *FEW_ROWS,
    )
    assert run_pytest(tmp_path, small, *asked, "--conformance-update-baseline").returncode == 0
    assert "little.is-live" in (tmp_path / "baseline.toml").read_text(encoding="utf-8")
    assert run_pytest(tmp_path, small, *asked).returncode == 0


@pytest.mark.parametrize(
    ("source", "status", "said"),
    [
        ("1 / 0", 4, "ERROR: the pack little of oip_little_pack 0.5 cannot be used: ZeroDivisionError: "),
        (FILES["live.py"].replace("UnmetError(", "SystemExit("), 1, "the suite failed: SystemExit"),
    ],
)
def test_a_hostile_pack_ends_no_run(source: str, status: int, said: str, tmp_path: Path, small: str) -> None:
    write_pack(tmp_path, {"live.py": source})
    done = run_pytest(tmp_path, small, "--target-extension=little", "--target-extension=protocol", "-k", "little", "-v")
    assert (done.returncode, said in done.stdout + done.stderr) == (status, True)


def test_explain_and_baseline_check_know_an_installed_pack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install(tmp_path, monkeypatch, {})
    assert "Statement  The server is live." in explanations.explain("little-live")
    assert "--target-extension=little -k little.is-live" in explanations.explain("little.is-live")
    file = tmp_path / "baseline.toml"
    entry: dict[str, Any] = {"check": "little.is-live", "requirement": "LITTLE-LIVE", "reason": "known"}
    lines = [f"{key} = {json.dumps(value)}" for key, value in entry.items()]
    file.write_text("\n".join(["schema = 1", "[[known]]", *lines]), encoding="utf-8")
    main.main(["baseline", "check", str(file)])
    assert "no such check" not in "".join(capsys.readouterr())


# --- roles, and claims over both transports ---------------------------------------------------------------------------


def load_models(*names: str) -> dict[str, Any]:
    """Return a few models of the bundled server, and those of the pack, if it is installed."""
    served = models.load(*names)
    return {name: model for name, model in served.items() if name in ("identity_int32", "little_texts")}


def list_verdicts(entry: Any) -> dict[str, str]:
    return {one["id"]: one["verdict"] for one in entry["requirements"]}


def list_outcomes(entry: Any) -> dict[str, str]:
    return {row["check"]: row["outcome"] for row in entry["rows"]}


def test_a_role_of_another_pack_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    roles.add_roles_of_pack({"little_texts": replace(roles.load()["multi"], name="little_texts", pack="other")})
    install(tmp_path, monkeypatch, WHOLE)
    with pytest.raises(packs.PackError, match=r"roles\.toml: there is another role little_texts"):
        packs.load("little")


def test_a_map_of_roles_is_the_same_whatever_packs_are_loaded() -> None:
    placed = {name: Placement(name) for name in ("little_texts", "multi")}
    before = format_roles_table(placed)
    roles.add_roles_of_pack({"little_texts": replace(roles.load()["multi"], name="little_texts", pack="little")})
    assert format_roles_table(placed) == before
    assert "# 1 of " in before
    assert before.index("multi = ") < before.index("little_texts = ")


def test_a_claim_is_judged_over_each_transport_with_a_role_of_the_pack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, monkeypatch, WHOLE)
    served = load_models("little")
    with GrpcServer(served, "127.0.0.1", 0, max_message=2**20) as server:
        entry = judge_pack(app.create(served), "little", grpc=server.address)
        assert (entry["verdict"], list_verdicts(entry)) == (
            "conformant",
            {"LITTLE-LIVE": "pass", "LITTLE-LIVE/grpc": "pass", "LITTLE-READY/grpc": "pass"},
        )
        assert list_outcomes(entry).keys() == {"little.is-live", "little.is-live-over-grpc", "little.is-ready"}
        monkeypatch.setattr(grpc_methods, "server_ready", lambda *_: service_pb2.ServerReadyResponse(ready=False))
    with GrpcServer(served, "127.0.0.1", 0, max_message=2**20) as server:
        entry = judge_pack(app.create(served), "little", grpc=server.address)
    assert find_unmet(entry) == {"LITTLE-READY/grpc"}


def test_without_grpc_or_the_role_rows_do_not_apply(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, WHOLE)
    entry = judge_pack(app.create(load_models()), "little")
    assert set(list_outcomes(entry).values()) == {"not_applicable"}
    entry = judge_pack(app.create(load_models("little")), "little")
    assert list_outcomes(entry) == {
        "little.is-live": "pass",
        "little.is-live-over-grpc": "not_applicable",
        "little.is-ready": "not_applicable",
    }


def test_a_grpc_server_without_the_service_blocks_the_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grpc_methods, "get_methods", dict)
    install(tmp_path, monkeypatch, WHOLE)
    served = load_models("little")
    with GrpcServer(served, "127.0.0.1", 0, max_message=2**20) as server:
        entry = judge_pack(app.create(served), "little", grpc=server.address)
    assert list_outcomes(entry) == {
        "little.is-live": "pass",
        "little.is-live-over-grpc": "blocked",
        "little.is-ready": "blocked",
    }


@pytest.mark.parametrize(
    ("change", "outcome"),
    [
        (("if not", "if 1 / 0 or not"), "error"),
        (('if not target.infer(model.request(send="json")).answer.output("TEXTS")', "if True"), "fail"),
    ],
)
def test_a_claim_of_a_pack_affects_its_own_requirements_alone(
    change: tuple[str, str], outcome: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, monkeypatch, {**WHOLE, "live.py": CLAIM.replace(*change) + CALL})
    served = load_models("little")
    with GrpcServer(served, "127.0.0.1", 0, max_message=2**20) as server:
        report = judge(app.create(served), profile="quick", grpc=server.address, extensions=["protocol", "little"])
    entry = report.document["packs"][0]
    assert list_outcomes(entry) == {
        "little.is-live": outcome,
        "little.is-live-over-grpc": outcome,
        "little.is-ready": "pass",
    }
    assert not any(requirement["id"].startswith("LITTLE-LIVE") for requirement in report.document["requirements"])
    assert not any(row["outcome"] in ("fail", "error") for row in report.document["rows"])


def test_a_role_of_a_pack_is_looked_for_only_if_the_pack_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, monkeypatch, WHOLE)
    packs.load("little")  # for another run of this process
    server = app.create(load_models("little"))
    found = [judge(server, profile="quick", extensions=["protocol", *names]).document for names in ((), ("little",))]
    assert [sorted(report["target"]["roles"]) for report in found] == [
        ["identity_int32"],
        ["identity_int32", "little_texts"],
    ]
    assert found[0]["target"]["extensions_offered"] == found[1]["target"]["extensions_offered"]
    assert [(row["check"], row["outcome"]) for row in found[0]["rows"]] == [
        (row["check"], row["outcome"]) for row in found[1]["rows"]
    ]


def test_what_a_role_of_a_pack_shows_in_discovery_is_no_failure_of_the_suite(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, monkeypatch, WHOLE)
    served = app.create(load_models("little"))

    async def breaks_metadata_of_the_role(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and scope["path"] == "/v2/models/little_texts":
            await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"9")]})
            await send({"type": "http.response.body", "body": b"{"})
            return
        await served(scope, receive, send)

    report = judge(breaks_metadata_of_the_role, profile="quick", extensions=["protocol", "little"])
    assert not any(row["outcome"] == "fail" for row in report.document["rows"])


def test_a_target_file_places_the_role_of_a_pack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, WHOLE)
    served = load_models("little")
    served["texts"] = replace(served.pop("little_texts"), name="texts")
    file = tmp_path / "target.toml"
    text = 'extensions = ["protocol", "little"]\n[roles]\nidentity_int32 = "identity_int32"\nlittle_texts = "texts"\n'
    file.write_text(text, encoding="utf-8")
    report = judge(app.create(served), profile="quick", config=file).document
    assert list_outcomes(report["packs"][0])["little.is-live"] == "pass"
    assert report["target"]["roles"] == {"identity_int32": "identity_int32", "little_texts": "texts"}
    monkeypatch.setattr(packs, "_LOADED", {})
    monkeypatch.setattr(roles, "_OF_PACKS", {})
    file.write_text(text.replace(', "little"', ""), encoding="utf-8")
    with pytest.raises(JudgeError, match=r"roles: there is no role 'little_texts'.*name the pack of a role in"):
        judge(app.create(served), config=file)


def test_commands_show_export_and_serve_the_role_of_a_pack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install(tmp_path, monkeypatch, WHOLE)
    assert main.main(["roles"]) == 0
    assert "little_texts" not in capsys.readouterr().out
    assert main.main(["roles", "little_texts"]) == 0
    assert "TEXTS[k] = INPUT[k] in decimal digits" in capsys.readouterr().out
    assert main.main(["roles", "--target-extension=little"]) == 0
    assert "little_texts: integers as texts" in capsys.readouterr().out
    out = tmp_path / "out"
    made = ["models", "export", "--format=python", "--role=little_texts", "--target-extension=little", str(out)]
    assert main.main(made) == 0
    assert 'extensions = ["little"]' in (out / "target.toml").read_text(encoding="utf-8")
    assert 'little_texts = "little_texts"' in (out / "target.toml").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[", "roles.toml: TOMLDecodeError: "),
        (ROLE.replace("inputs", "input"), "roles.toml: KeyError: 'inputs'"),
        (ROLE.replace("little_texts", "multi"), "roles.toml: the role multi is another one's"),
    ],
)
def test_the_bundled_server_refuses_the_roles_of_a_broken_pack(
    text: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, monkeypatch, {**WHOLE, "roles.toml": text, "live.py": "1 / 0"})  # it imports nothing
    with pytest.raises(ValueError, match="^pack little: .*" + re.escape(why)):
        models.load("little")
    with pytest.raises(ValueError, match=r'^no pack "litle" is installed$'):
        models.load("litle")


def test_a_run_of_the_bundled_server_has_the_roles_of_the_pack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_pack(tmp_path, WHOLE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    done = run_pytest(tmp_path, "reference", "--target-extension=little", "-k", "little")
    assert done.returncode == 0
    assert "3 passed" in done.stdout
    assert done.stdout.splitlines()[-1].endswith("; pack little: conformant")


@pytest.mark.parametrize(
    ("identity", "name"),
    [
        ("little.is-live", "little"),
        ("LITTLE-LIVE/grpc", "little"),
        ("little_more.is-live", "little_more"),
        ("LITTLE-MORE-LIVE", "little_more"),
        ("little_more_texts", "little_more"),
    ],
)
def test_the_pack_of_an_id_is_the_one_with_the_longest_name(
    identity: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path / "one", monkeypatch, {})
    install(tmp_path / "two", monkeypatch, {}, name="little_more", package="oip_other_pack")
    loaded: list[str] = []
    monkeypatch.setattr(packs, "load", loaded.append)
    packs.load_pack_of_id(identity)
    assert loaded == [name]


def test_the_suite_has_no_rows_for_the_role_of_a_pack(tmp_path: Path) -> None:
    """Checks have a row for each role; here they are imported after the pack was loaded."""
    write_pack(tmp_path, WHOLE)
    program = (
        "from conformance.judging import packs; from conformance import checks; packs.load('little'); "
        "print([row.id for check in checks.load() for row in check.rows if row.role == 'little_texts'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[]\n"
