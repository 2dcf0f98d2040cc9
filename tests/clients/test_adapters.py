"""Adapters as programs: of the honest client, of real clients that need no more than tests do, of the documentation.

`tox -e clients` has all rows of all real clients.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from conformance.clients.adapter import AdapterProcess
from conformance.clients.peer.peer import Peer
from conformance.judging.client_session import ClientJudge
from conformance.spec import data_files
from conformance.spec.outcome import Outcome
from tests.clients.sightings import collect_rows

ROOT = Path(__file__).parents[2]
PROGRAM = (sys.executable, "-m", "tests.clients.honest")
WANTED = {
    "http": ("client.reads-every-datatype", "INT8-binary"),
    "grpc": ("client-grpc.reads-every-datatype", "INT8-raw"),
}
HELLO = {"seq": 1, "command": "hello", "protocol": 1}


@pytest.mark.parametrize("transport", ["http", "grpc"])
@pytest.mark.parametrize(
    ("options", "outcome"),
    [
        ((), Outcome.PASS),
        (("--variation", "classes-divided"), Outcome.PASS),
        (("--fault", "int8-as-uint8"), Outcome.FAIL),
    ],
    ids=["honest", "variation", "fault"],
)
def test_rows_judge_the_program(peer: Peer, transport: str, options: tuple[str, ...], outcome: Outcome) -> None:
    wanted = WANTED[transport]
    (case,) = [one for one in collect_rows((transport,)) if (one[0].id, one[1].id) == wanted]
    with closing(AdapterProcess((*PROGRAM, *options))) as adapter:
        result = ClientJudge(adapter, adapter.introduction, peer)(case)
    assert result.outcome is outcome
    if outcome is Outcome.FAIL:
        assert result.failure
        assert result.failure.requirement.partition("/")[0] == "CLIENT-READS-VALUES"


def test_its_lines_fit_the_schema() -> None:
    schema = json.loads((data_files.find_folder("schemas") / "adapter.schema.json").read_text(encoding="utf-8"))
    tensor = {"name": "IN", "datatype": "UINT8", "shape": [2], "data": "AQI=", "form": "binary"}
    ask = {"seq": 2, "command": "infer", "transport": "http", "address": "http://127.0.0.1:1", "timeout_s": 1}
    inferences = [{"model": "m", "inputs": [tensor]}, {"model": "m", "inputs": [tensor, tensor], "raw": True}]
    said = answers_of(HELLO, {**ask, "at_once": True, "inferences": inferences})
    for line in said:
        Draft202012Validator(schema).validate(line)
    assert said[0]["client"]["name"] == "honest"
    assert [set(result) for result in said[1]["results"]] == [{"error"}, {"cannot"}]


def answers_of(*commands: dict[str, object]) -> list[dict[str, Any]]:
    text = "".join(json.dumps(command) + "\n" for command in commands)
    done = subprocess.run(PROGRAM, input=text, capture_output=True, text=True, cwd=ROOT, timeout=60, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_an_unknown_fault_is_one_line_and_a_status() -> None:
    asked = (*PROGRAM, "--fault", "none-such")
    done = subprocess.run(asked, capture_output=True, text=True, cwd=ROOT, timeout=60, check=False)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


# --- the adapter of the documentation ---------------------------------------------------------------------------------


DOCS = Path(__file__).parents[2] / "docs" / "clients.md"


def test_the_adapter_of_the_docs_is_judged(tmp_path: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "adapter.py").write_text(code, encoding="utf-8")
    rows = "client.reads-every-datatype or client.reads-classes or client.keeps-answers-apart"
    run = subprocess.run(
        [sys.executable, "-m", "pytest", f"--client-adapter={sys.executable} adapter.py", "-k", rows],
        check=False,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.returncode == 0, run.stdout
    assert "tritonclient.http" in run.stdout
    assert run.stdout.rstrip().endswith(" rows, none failed")
    assert int(re.findall(r"(\d+) passed", run.stdout)[0]) > 30


# --- real clients -----------------------------------------------------------------------------------------------------


CLIENTS = Path(__file__).parents[2] / "targets" / "clients"
ADAPTERS = {
    "tritonclient.http": ("http", sys.executable, "adapters/tritonclient_http.py"),
    "tritonclient.http.aio": ("http", sys.executable, "adapters/tritonclient_http_aio.py"),
    "tritonclient.grpc": ("grpc", sys.executable, "adapters/tritonclient_grpc.py"),
    "tritonclient.grpc.aio": ("grpc", sys.executable, "adapters/tritonclient_grpc_aio.py"),
    "oip-node": ("http", shutil.which("node") or "node", "node/adapter.mjs"),
}
ROWS = {
    "http": {
        ("client.reads-every-datatype", "INT64-json"): Outcome.PASS,
        ("client.sends-inputs-in-order", "C-B-A"): Outcome.PASS,
        ("client.gives-each-caller-its-own-answer", "32-binary"): Outcome.PASS,
        ("client.reads-every-datatype", "BYTES-binary"): Outcome.PASS,
    },
    "grpc": {
        ("client-grpc.reads-every-datatype", "INT64-raw"): Outcome.PASS,
        ("client-grpc.reads-every-datatype", "INT64-typed"): Outcome.FAIL,
    },
}


@pytest.mark.parametrize("name", ADAPTERS)
def test_a_real_client_is_judged(peer: Peer, name: str) -> None:
    transport, program, adapter = ADAPTERS[name]
    with closing(AdapterProcess((program, str(CLIENTS / adapter)))) as opened:
        assert (opened.introduction.name, opened.introduction.transports) == (name, (transport,))
        judge = ClientJudge(opened, opened.introduction, peer)
        cases = {(one[0].id, one[1].id): one for one in collect_rows((transport,))}
        found = {row: judge(cases[row]).outcome for row in ROWS[transport]}
    assert found == ROWS[transport]
