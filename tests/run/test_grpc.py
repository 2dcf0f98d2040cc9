"""gRPC as a user meets it: which transports are judged, what a run prints and leaves, and runs without grpcio."""

from __future__ import annotations

import os
import subprocess
import sys
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance.spec import ledger
from conformance.spec.tally import tally_report
from conformance.transport.reference import ReferenceServer
from tests.support.run_archives import read_log
from tests.support.servers import JsonOnly, judge, judge_afresh, reserve_closed_port, run_with_grpc, serve
from tests.support.valid_reports import read_valid_report

MUSTS = [entry.id for entry in ledger.load_for_party(ledger.Party.SERVER) if entry.level == "MUST"]
OVER_GRPC = [name for name in MUSTS if ledger.get_requirement(name).area == "grpc"]
INSTALL = "pip install 'oip-conformance[grpc]'"


@pytest.fixture(scope="module")
def reference() -> Iterator[ReferenceServer]:
    server = ReferenceServer(grpc=True)
    yield server
    server.stop()


@pytest.fixture
def without_the_extra(tmp_path: Path) -> str:
    """Return a PYTHONPATH on which gRPC cannot be imported."""
    (tmp_path / "path").mkdir()
    (tmp_path / "path/grpc.py").write_text('raise ImportError("not here")')
    return str(tmp_path / "path")


@pytest.fixture(scope="module")
def big_endian() -> Iterator[tuple[str, str]]:
    """URL and host:port of gRPC of a server that writes raw contents big-endian."""
    with run_with_grpc("--fault=grpc-raw-contents-are-written-big-endian") as addresses:
        yield addresses


# --- what is judged --------------------------------------------------------------------------------------------------


def test_grpc_alone(tmp_path: Path, reference: ReferenceServer) -> None:
    quick = ("--conformance-profile=quick", "--conformance-report=r.json")
    run = judge(tmp_path, f"--target-grpc={reference.grpc}", *quick)
    assert run.returncode == 0, run.stdout[-2000:]
    assert f"target      grpc://{reference.grpc}: oip-reference-server" in run.stdout
    assert "extensions  classification_grpc (listed)" in run.stdout
    both = len([name for name in OVER_GRPC if name.endswith("-SAME-AS-HTTP")])
    met = len(OVER_GRPC) - both
    report = read_valid_report(tmp_path / "r.json")
    left_out = f"{report['coverage']['left_out']} rows left out by the profile quick; {both} not applicable"
    last = f"grpc://{reference.grpc} is partial over gRPC alone: {met} of {met} MUSTs met, none failed, {left_out}"
    assert run.stdout.splitlines()[-1] == last
    assert {check["area"] for check in report["rows"]} == {"grpc"}
    assert report["target"]["extensions_offered"] == ["classification_grpc"]
    assert "classification" in report["target"]["extensions_listed"]
    assert report["target"]["url"] == report["target"]["grpc"] == f"grpc://{reference.grpc}"
    reasons = {check["message"] for check in report["rows"] if check["outcome"] == "not_applicable"}
    assert reasons == {"--target-url is not given", "the metadata of identity_int32 list version 1"}


def test_a_server_that_offers_nothing_over_http_is_judged_over_grpc(tmp_path: Path, reference: ReferenceServer) -> None:
    (tmp_path / "t.toml").write_text('[roles]\nidentity_int32 = "identity_int32"\n')
    with serve(JsonOnly) as url:
        options = (f"--target-url={url}", f"--target-grpc={reference.grpc}", "--target-config=t.toml")
        run = judge(tmp_path, *options, "--conformance-profile=quick", "--conformance-report=r.json")
    assert run.returncode == 0, run.stdout[-2000:]
    report = read_valid_report(tmp_path / "r.json")
    assert (report["target"]["url"], report["target"]["grpc"]) == (url, f"grpc://{reference.grpc}")
    over_http = [check for check in report["rows"] if check["area"] != "grpc"]
    assert {check["outcome"] for check in over_http} == {"not_applicable"}
    passed = [check["check"] for check in report["rows"] if check["outcome"] == "pass"]
    assert {"grpc.raw-tensors-come-back", "grpc.answers-are-those-of-http"} <= set(passed)
    assert "over HTTP do not apply: the target offers no extension over HTTP. The verdict covers gRPC" in run.stdout
    assert run.stdout.splitlines()[-1].startswith(f"{url} is partial over gRPC alone: ")


def test_http_alone_knows_nothing_of_grpc(tmp_path: Path, reference: ReferenceServer, without_the_extra: str) -> None:
    options = (f"--target-url={reference.url}", "-k", "ordering", "--conformance-report=r.json")
    run = judge_afresh(tmp_path, *options, PYTHONPATH=without_the_extra)
    assert run.returncode == 0, run.stdout
    assert "gRPC" not in run.stdout
    report = read_valid_report(tmp_path / "r.json")
    assert tally_report(report).applying == len(MUSTS) - len(OVER_GRPC)
    assert not report["extensions"]["classification_grpc"]["offered"]


def test_two_workers_judge_grpc_too(tmp_path: Path, reference: ReferenceServer) -> None:
    options = (f"--target-url={reference.url}", f"--target-grpc={reference.grpc}", "-k", "grpc.highest-come-first")
    run = judge(tmp_path, *options, "-n", "2")
    assert run.returncode == 0, run.stdout
    assert f"gRPC        grpc://{reference.grpc}" in run.stdout


def test_metadata_are_sent_and_shown_nowhere(tmp_path: Path, reference: ReferenceServer) -> None:
    options = (f"--target-grpc={reference.grpc}", "--target-header=Authorization: Bearer tok-in-header")
    judge(tmp_path, *options, "-k", "id_is", "--conformance-evidence=e", "--conformance-report=r.json")
    entries = read_log(tmp_path / "e/run.har.xz")["entries"]
    assert {"name": "Authorization", "value": "..."} in entries[0]["request"]["headers"]
    assert b"tok-in" not in b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


# --- usage -----------------------------------------------------------------------------------------------------------


def test_without_the_extra_an_address_is_an_error_that_says_what_to_install(
    tmp_path: Path, without_the_extra: str
) -> None:
    run = judge_afresh(tmp_path, "--target-grpc=127.0.0.1:1", PYTHONPATH=without_the_extra)
    assert run.returncode == 4
    assert f"--target-grpc needs the extra grpc: {INSTALL}" in run.stderr
    assert "Traceback" not in run.stdout + run.stderr


def test_without_the_extra_http_alone_is_judged_of_the_bundled_server(tmp_path: Path, without_the_extra: str) -> None:
    run = judge_afresh(tmp_path, "--target-url=reference", "-k", "ordering", PYTHONPATH=without_the_extra)
    assert run.returncode == 0, run.stdout
    assert f"gRPC        not judged: {INSTALL}" in run.stdout


def test_an_unreachable_door_is_one_line_and_status_6(tmp_path: Path) -> None:
    with reserve_closed_port() as port:
        run = judge(tmp_path, f"--target-grpc=127.0.0.1:{port}", "--target-timeout=0.5")
    assert run.returncode == 6
    assert run.stdout.splitlines()[-1].startswith(f"incomplete: cannot connect to grpc://127.0.0.1:{port}")


# --- evidence --------------------------------------------------------------------------------------------------------


def test_a_failure_shows_message_bytes_and_how_to_repeat_it(tmp_path: Path, big_endian: tuple[str, str]) -> None:
    url, address = big_endian
    selection = ("-k", "grpc.raw-tensors-come-back and FP64")
    run = judge(tmp_path, f"--target-url={url}", f"--target-grpc={address}", *selection)
    (repeat, *_) = [line.partition("Repeat    ")[2] for line in run.stdout.splitlines() if "Repeat    " in line]
    command = repeat.replace("python -c", f"{sys.executable} -c")
    again = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True)
    assert run.returncode == 1
    assert 'Sent      ModelInfer over gRPC, 59 bytes: model_name: "identity_fp64" inputs { name: "INPUT"' in run.stdout
    assert "<- tensor 0 OUTPUT FP64 element 0" in run.stdout
    assert f"Rerun     pytest --target-url={url} --target-grpc={address} -k " in run.stdout
    assert again.stdout.startswith(r"b'\n\ridentity_fp64\x12\x011*\x11\n\x06OUTPUT\x12\x04FP64")


def test_typed_contents_are_shown_in_text_and_in_hex(tmp_path: Path) -> None:
    with run_with_grpc("--fault=grpc-typed-contents-are-read-by-columns") as (_, address):
        run = judge(tmp_path, f"--target-grpc={address}", "-k", "typed_tensors_come_back and weighted_sum")
    lines = [line.strip() for line in run.stdout.splitlines()]
    start = next(index for index, line in enumerate(lines) if line.startswith("Actual"))
    assert 'inputs { name: "INPUT" datatype: "INT32" shape: 2 shape: 3 contents { int_contents:' in lines[start - 2]
    # Field 1 of the answer, model_name: its tag, its length, its text; then field 2, model_version.
    assert lines[start + 1].startswith(
        'Answer    model_name: "weighted_sum" model_version: "1" outputs { name: "OUTPUT"'
    )
    assert lines[start + 2 : start + 4] == [
        "0000  0a 0c 77 65 69 67 68 74  ..weight",
        "0008  65 64 5f 73 75 6d 12 01  ed_sum..",
    ]


@pytest.mark.parametrize("in_file", ["url", "grpc", "neither"])
def test_rerun_has_what_is_not_in_the_file(tmp_path: Path, big_endian: tuple[str, str], in_file: str) -> None:
    addresses = dict(zip(("url", "grpc"), big_endian, strict=True))
    written = "".join(f'{name} = "{value}"\n' for name, value in addresses.items() if name == in_file)
    (tmp_path / "t.toml").write_text(written)
    options = [f"--target-{name}={value}" for name, value in addresses.items() if name != in_file]
    run = judge(tmp_path, "--target-config=t.toml", *options, "-k", "raw_tensors_come_back and FP64")
    assert f"Rerun     pytest --target-config=t.toml {' '.join(options)} -k" in run.stdout


def test_evidence_and_a_recording_that_is_judged_again(tmp_path: Path) -> None:
    options = ("-k", "raw_entries or answer_has")
    with run_with_grpc("--fault=grpc-raw-outputs-are-reversed") as (url, address):
        addresses = (f"--target-url={url}", f"--target-grpc={address}")
        live = judge(tmp_path, *addresses, *options, "--conformance-evidence=e", "--conformance-report=a.json")
        folder = tmp_path / "e/grpc.raw-entries-follow-the-outputs-none-listed"
        program = subprocess.run(
            ["sh", str(folder / "repro.sh")],
            env=os.environ | {"PYTHON": sys.executable},
            capture_output=True,
            text=True,
            check=True,
        )
        command = "import sys; from conformance.commands.main import main; sys.exit(main())"
        replay = [sys.executable, "-c", command, "replay", str(folder)]
        replayed = subprocess.run(replay, capture_output=True, text=True, check=False)
    again = judge(tmp_path, "--target-replay=e/run.har.xz", *options, "--conformance-report=b.json")
    assert (live.returncode, again.returncode) == (1, 1), again.stdout
    one, two = (read_valid_report(tmp_path / f"{name}.json")["rows"] for name in "ab")
    keys = ("check", "row", "outcome", "message", "observation")
    assert [[row[key] for key in keys] for row in one] == [[row[key] for key in keys] for row in two]
    assert (
        (folder / "request.txt")
        .read_text()
        .startswith(f"GRPC grpc://{address}/inference.GRPCInferenceService/ModelInfer")
    )
    assert (folder / "response.txt").read_text().startswith('OK\nmodel_name: "multi"')
    assert program.stdout.startswith(r"b'\n\x05multi")
    assert replayed.stdout.startswith("failed  grpc.raw-entries-follow-the-outputs")


def test_a_recording_has_calls_as_bytes(tmp_path: Path, reference: ReferenceServer) -> None:
    judge(tmp_path, f"--target-grpc={reference.grpc}", "-k", "grpc.impossible-calls", "--conformance-evidence=e")
    again = judge(tmp_path, "--target-replay=e/run.har.xz", "-k", "grpc.impossible-calls")
    assert again.returncode == 0, again.stdout
    assert "9 passed" in again.stdout
    log = read_log(tmp_path / "e/run.har.xz")
    assert log["_grpc"] == f"grpc://{reference.grpc}"
    (entry,) = [e for e in log["entries"] if e["_scope"].endswith("[unknown-model]") and e["_call"] == 0]
    assert entry["request"]["url"] == f"grpc://{reference.grpc}/inference.GRPCInferenceService/ModelInfer"
    assert (entry["request"]["method"], entry["request"]["httpVersion"]) == ("POST", "HTTP/2")
    assert b64decode(entry["request"]["postData"]["text"]).startswith(b"\x0a\x16there-is-no-such-model")
    assert entry["response"]["status"] == 404
    details = 'there is no model "there-is-no-such-model"'
    assert entry["_grpc"] == {"code": "NOT_FOUND", "details": details}
