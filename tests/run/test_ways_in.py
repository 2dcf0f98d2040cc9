"""The first minute: whatever server somebody has, a run says what to do next, and `doctor` and `init` do as well."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import pytest

from conformance.transport import config
from conformance.transport.reference import ReferenceServer
from tests.support import renamed_server
from tests.support.servers import JsonOnly, judge, reserve_closed_port, run_command, run_with_grpc, serve


class OrdinaryServer(JsonOnly):
    """Models that fill no role, in an index: they add one, and `custom` has metadata without tensors.

    Its list has a model that is not loaded as well.
    """

    index: ClassVar[list[str]] = ["iris", "custom"]
    tensor: ClassVar[dict[str, Any]] = {"name": "X", "datatype": "INT32", "shape": [-1]}

    def do_GET(self) -> None:  # noqa: N802
        name = self.path.rpartition("/")[2]
        if self.path == "/v2":
            self._answer(200, {"name": "ordinary", "version": "3", "extensions": []})
        elif self.path == "/v2/models":
            self._answer(200, {"models": [*self.index, "unloaded"]})
        elif name in self.index:
            inputs = [self.tensor] if name == "iris" else []
            self._answer(200, {"name": name, "platform": "", "inputs": inputs, "outputs": inputs})
        else:
            self._answer(404, {"error": "unknown"})

    def do_POST(self) -> None:  # noqa: N802
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        try:
            tensor = json.loads(body)["inputs"][0]
            output = {**self.tensor, "shape": tensor["shape"], "data": [value + 1 for value in tensor["data"]]}
        except (ValueError, TypeError, LookupError):
            self._answer(400, {"error": "not an inference request"})
        else:
            name = self.path.split("/")[3]
            document = {"model_name": name, "outputs": [output]} if name in self.index else {"error": "unknown"}
            self._answer(200 if name in self.index else 404, document)


class BinaryInputServer(OrdinaryServer):
    """Takes binary inputs, too, and answers JSON all the same."""

    index: ClassVar[list[str]] = ["iris"]

    def do_POST(self) -> None:  # noqa: N802
        length = self.headers.get("Inference-Header-Content-Length")
        if length is None:
            super().do_POST()
            return
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        try:
            tensor, octets = json.loads(body[: int(length)])["inputs"][0], body[int(length) :]
            data = [1 + int.from_bytes(octets[at : at + 4], "little", signed=True) for at in range(0, len(octets), 4)]
            output = {**self.tensor, "shape": tensor["shape"], "data": data}
        except (ValueError, TypeError, LookupError):
            self._answer(400, {"error": "not an inference request"})
        else:
            self._answer(200, {"model_name": "iris", "outputs": [output]})


class SilentServer(JsonOnly):
    """Takes every connection and never answers."""

    end = threading.Event()

    def do_GET(self) -> None:  # noqa: N802
        self.end.wait(60)

    def do_POST(self) -> None:  # noqa: N802
        self.do_GET()


FEW_ROWS = ("--conformance-profile=quick", "-k", "headers or json")


@contextmanager
def silent() -> Iterator[str]:
    SilentServer.end.clear()
    with serve(SilentServer) as url:
        try:
            yield url
        finally:
            SilentServer.end.set()


# --- a server with ordinary models ------------------------------------------------------------------------------------


def test_the_run_names_the_models_and_the_command(tmp_path: Path) -> None:
    with serve(OrdinaryServer) as url:
        run = judge(tmp_path, f"--target-url={url}")
    last = run.stdout.splitlines()[-1]
    assert run.returncode == 6
    assert last.endswith("it serves iris, custom: judge with --target-model iris, or --target-model all")


def test_all_models_are_judged(tmp_path: Path) -> None:
    options = ("--target-model=all", "--target-extension=protocol", "--conformance-report=r.json", "-n", "2")
    with serve(OrdinaryServer) as url:
        run = judge(tmp_path, f"--target-url={url}", *options, *FEW_ROWS)
    report = json.loads((tmp_path / "r.json").read_text())
    outcomes = {(check["row"].partition("@")[2], check["outcome"]) for check in report["rows"]}
    assert report["options"]["models"] == ["iris", "custom"]
    assert outcomes >= {("iris", "pass"), ("custom", "not_applicable")}
    assert "blocked" not in {outcome for _, outcome in outcomes}  # nobody named custom, so its inputs are not asked for
    passed = {
        check["check"] for check in report["rows"] if (check["outcome"], check["row"][-7:]) == ("pass", "@custom")
    }
    assert passed == {"json.metadata-have-status-200", "json.unknown-model-is-not-ready"}  # which infer nothing
    assert "the metadata of custom list no inputs" in run.stdout


def test_rerun_names_all_models_as_the_user_did(tmp_path: Path) -> None:
    class NumberedServer(OrdinaryServer):
        index: ClassVar[list[str]] = ["iris"]

        def _answer(self, status: int, document: dict[str, Any]) -> None:
            super()._answer(status, document | {"model_version": 1} if "outputs" in document else document)

    named = ("--target-model=all", "--target-extension=protocol")
    with serve(NumberedServer) as url:
        run = judge(tmp_path, f"--target-url={url}", *named, "-k", "OIP-MODEL-VERSION")
    assert f"pytest --target-url={url} {' '.join(named)} -k OIP-MODEL-VERSION" in run.stdout, run.stdout


def test_all_models_of_a_server_that_lists_none(tmp_path: Path) -> None:
    with serve(JsonOnly) as url:
        run = judge(tmp_path, f"--target-url={url}", "--target-model=all")
    assert run.returncode == 6
    assert "lists no models" in run.stdout.splitlines()[-1]
    assert run.stdout.splitlines()[-1].endswith("name the models to judge with --target-model NAME")


def test_init_of_a_server_without_models_says_so(tmp_path: Path) -> None:
    class Bare(JsonOnly):
        def do_GET(self) -> None:  # noqa: N802
            self._answer(404, {"error": "unknown"})

    with serve(Bare) as url:
        done = run_command(tmp_path, "init", "--target-url", url)
    assert done.returncode == 2
    assert "lists no models (POST /v2/repository/index: HTTP 4" in done.stderr
    assert "), and none has the name of a role: name a model with --target-model NAME" in done.stderr


def test_roles_and_models_of_a_file_are_both_judged(tmp_path: Path, reference: str) -> None:
    text = f'url = "{reference}"\n[roles]\nidentity_int32 = "identity_int32"\n[models.add_sub]\n'
    (tmp_path / "t.toml").write_text(text)
    run = judge(tmp_path, "--target-config=t.toml", "--conformance-report=r.json", *FEW_ROWS)
    report = json.loads((tmp_path / "r.json").read_text())
    passed = {(check["area"], check["row"].partition("@")[2]) for check in report["rows"] if check["outcome"] == "pass"}
    assert run.returncode == 0, run.stdout[-2000:]
    assert passed >= {(area, model) for area in ("headers", "json") for model in ("", "add_sub")}
    assert report["target"]["roles"] == {"identity_int32": "identity_int32"}
    assert "roles       1 of 59 filled" in run.stdout
    assert "models      add_sub: B INT32 [3], A INT32 [3] -> SUM, DIFFERENCE" in run.stdout


def test_a_datatype_that_is_given_has_to_be_that_of_the_metadata(tmp_path: Path) -> None:
    table = '[models.iris.inputs.X]\ndatatype = "FP32"\nshape = [2]\ndata = [7, 8]\n'
    with serve(OrdinaryServer) as url:
        (tmp_path / "t.toml").write_text(f'url = "{url}"\n{table}')
        run = judge(tmp_path, "--target-config=t.toml")
    said = "incomplete: --target-config: models.iris.inputs.X: datatype FP32, but INT32 in the metadata"
    assert run.stdout.splitlines()[-1] == said


# --- extensions -------------------------------------------------------------------------------------------------------


def test_binary_inputs_are_offered_though_answers_are_json(tmp_path: Path) -> None:
    with serve(BinaryInputServer) as url:
        run = judge(tmp_path, f"--target-url={url}", "--target-model=iris", "--conformance-report=r.json", *FEW_ROWS)
    report = json.loads((tmp_path / "r.json").read_text())
    assert report["target"]["extensions_offered"] == ["binary_tensor_data"]
    assert run.returncode == 1
    assert "raw is not offered: " in run.stdout
    assert "classification is not offered: " in run.stdout


# --- a silent server --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_a_silent_server_ends_the_survey(tmp_path: Path, workers: tuple[str, ...]) -> None:
    with silent() as url:
        run = judge(tmp_path, f"--target-url={url}", "--target-timeout=0.3", *workers)
    assert run.returncode == 6
    assert run.stdout.splitlines()[0].startswith("=")
    said = f"incomplete: {url} is silent: 3 requests in a row had no complete answer in 0.3 s"
    assert run.stdout.splitlines()[-1] == said


# --- doctor -----------------------------------------------------------------------------------------------------------


def test_doctor_of_a_server_with_roles(tmp_path: Path, reference: str) -> None:
    done = run_command(tmp_path, "doctor", reference)
    lines = done.stdout.splitlines()
    assert done.returncode == 0
    assert len(lines) <= 10
    assert lines[0].startswith("server              oip-reference-server ")
    assert lines[0].endswith("; live, ready")
    assert "binary_tensor_data  listed" in lines
    assert lines[-2:] == [
        f"next                oip-conformance run {reference} --conformance-profile=quick",
        f"then                oip-conformance run {reference}",
    ]


def test_doctor_of_a_server_with_ordinary_models(tmp_path: Path) -> None:
    with serve(OrdinaryServer) as url:
        done = run_command(tmp_path, "doctor", url)
    assert done.returncode == 0
    assert "nothing to judge" not in done.stdout
    assert len(done.stdout.splitlines()) <= 10
    assert "models              2 listed: iris, custom" in done.stdout
    assert done.stdout.splitlines()[-1].endswith(f"run {url} --target-model=all --target-extension=protocol")


def test_doctor_of_a_model_that_answers(tmp_path: Path, reference: str) -> None:
    done = run_command(tmp_path, "doctor", reference, "--target-model=add_sub")
    lines = done.stdout.splitlines()
    assert (done.returncode, len(lines)) == (0, 10)
    assert "add_sub             answers B INT32 [3], A INT32 [3] -> SUM, DIFFERENCE" in lines
    assert {"binary_tensor_data  works on add_sub", "classification      works on add_sub"} < set(lines)
    assert lines[3] == "raw                 not on add_sub: no request of this extension fits"
    assert lines[-1] == f"then                oip-conformance run {reference} --target-model=add_sub"


def test_doctor_says_what_works_and_not_what_is_listed(tmp_path: Path) -> None:
    class Boasting(OrdinaryServer):
        def _answer(self, status: int, document: dict[str, Any]) -> None:
            listed = {"extensions": ["binary_tensor_data", "classification"]} if "extensions" in document else {}
            super()._answer(status, document | listed)

    with serve(Boasting) as url:
        lines = run_command(tmp_path, "doctor", url, "--target-model=iris").stdout.splitlines()
    assert lines[1] == "lists               binary_tensor_data, classification"
    assert lines[2].startswith("binary_tensor_data  not on iris: HTTP 400")
    assert lines[4] == "classification      not on iris: the server ignores its parameters"


MODELS_OF_DOCTOR = {
    "iris": "run {url} --target-model=iris --target-extension=protocol",
    "custom": "init {url} --target-model=custom -o target.toml, fill in the inputs there, and: ",
    "all": "run {url} --target-model=all --target-extension=protocol",
}


@pytest.mark.parametrize("name", MODELS_OF_DOCTOR)
def test_doctor_of_a_model_says_what_to_run(tmp_path: Path, name: str) -> None:
    with serve(OrdinaryServer) as url:
        done = run_command(tmp_path, "doctor", url, f"--target-model={name}")
    named = list(OrdinaryServer.index) if name == "all" else [name]
    said = {"iris": "answers X INT32 [3] -> X", "custom": "the metadata of custom list no inputs"}
    lines = done.stdout.splitlines()
    assert lines[6 : 6 + len(named)] == [f"{each:20}{said[each]}" for each in named]
    (command,) = [line for line in lines if line.startswith("next ")]
    assert command.startswith("next                oip-conformance " + MODELS_OF_DOCTOR[name].format(url=url))
    assert done.returncode == (6 if name == "custom" else 0)


@pytest.fixture(scope="module")
def both() -> Iterator[ReferenceServer]:
    server = ReferenceServer("--model=scores", grpc=True)
    yield server
    server.stop()


def test_doctor_looks_at_grpc(tmp_path: Path, both: ReferenceServer) -> None:
    url, over_grpc = both.url, f"--target-grpc={both.grpc}"
    listed = "lists binary_tensor_data, model_configuration, statistics, classification"
    found = [f"over gRPC           oip-reference-server 0.1.0; live, ready; {listed}", "classification_grpc listed"]
    roles = "roles over gRPC     1 of 59 filled"
    command = f"then                oip-conformance run {url} --target-grpc={both.grpc}"
    lines = run_command(tmp_path, "doctor", url, over_grpc).stdout.splitlines()
    assert lines[-5:-2] + lines[-1:] == [*found, roles, command]
    lines = run_command(tmp_path, "doctor", over_grpc, "--target-model=scores").stdout.splitlines()
    then = f"then                oip-conformance run --target-grpc={both.grpc} --target-model=scores"
    assert lines[:2] + lines[3:4] + lines[-1:] == [*found, roles, then]
    assert lines[2].startswith("scores              answers ")


def test_doctor_of_a_server_without_grpc_proposes_no_grpc(tmp_path: Path, both: ReferenceServer) -> None:
    with reserve_closed_port() as port:
        done = run_command(tmp_path, "doctor", both.url, f"--target-grpc=127.0.0.1:{port}")
    assert f"\nover gRPC           cannot connect to grpc://127.0.0.1:{port}: " in done.stdout
    assert done.stdout.splitlines()[-1] == f"then                oip-conformance run {both.url}"


def test_doctor_over_grpc_alone_does_not_propose_the_model_it_was_given(tmp_path: Path) -> None:
    with run_with_grpc(program=(str(renamed_server.__file__),)) as (_, address):
        done = run_command(tmp_path, "doctor", f"--target-grpc={address}", "--target-model=nobody")
    start = (
        "next                oip-conformance init -o target.toml, fill in the address and the inputs of nobody there"
    )
    assert done.stdout.splitlines()[-1].startswith(start)
    assert done.returncode == 6


def test_doctor_asks_models_one_by_one(tmp_path: Path) -> None:
    with serve(OrdinaryServer) as url:
        done = run_command(tmp_path, "doctor", url, "--target-model=nobody", "--target-model=iris")
    lines = done.stdout.splitlines()
    assert f'nobody              {url} does not describe a model nobody: HTTP 404: {{"error": "unknown"}}' in lines
    assert lines[-1].endswith(f"run {url} --target-model=iris --target-extension=protocol")


class RememberingServer(OrdinaryServer):
    """Answers `[]` about each model that it does not have, and lists it from then on, as Pinferencia does."""

    index: ClassVar[list[str]] = ["iris"]
    asked: ClassVar[dict[str, None]] = {}

    def do_GET(self) -> None:  # noqa: N802
        parts = self.path.split("/")
        if self.path == "/v2/models":
            self._answer(200, {"models": [*self.index, *self.asked]})
        elif parts[2:3] == ["models"] and parts[3] != "iris":
            self.asked[parts[3]] = None
            self._send(200, b"[]")
        else:
            super().do_GET()


@pytest.mark.parametrize(("command", "named"), [("doctor", "--target-model=iris "), ("init", "[models.iris]")])
def test_models_that_the_suite_has_asked_for_are_none(tmp_path: Path, command: str, named: str) -> None:
    RememberingServer.asked.clear()
    with serve(RememberingServer) as url:
        done = run_command(tmp_path, command, url)
    assert named in done.stdout
    assert "identity_int32" in RememberingServer.asked
    assert "identity_int32" not in done.stdout


def test_doctor_of_a_server_without_a_list_of_models(tmp_path: Path) -> None:
    class Unlisted(JsonOnly):
        def do_GET(self) -> None:  # noqa: N802
            self._answer(200 if self.path == "/v2" else 404, {"name": "small", "version": "1"})

        def do_POST(self) -> None:  # noqa: N802
            self._answer(403, {"error": "restricted\x1b"})

    with serve(Unlisted) as url:
        done = run_command(tmp_path, "doctor", url)
    answers = 'POST /v2/repository/index: HTTP 403: {"error": "restricted\\u001b"};'
    answers += ' GET /v2/models: HTTP 404: {"name": "small", "version": "1"}'
    assert done.returncode == 6
    assert done.stdout.splitlines() == [
        "server              small 1; not live, not ready",
        "lists               no extensions",
        "binary_tensor_data  not tried: no model that answers requests",
        "raw                 not tried: no model with one input",
        "classification      not tried: no model with a numeric output",
        f"models              the server lists no models: {answers}",
        "roles               0 of 59 filled",
        f"nothing to judge    {url} serves none of the suite's model roles (`oip-conformance roles` prints them), and"
        " lists no models: to judge one, name it with --target-model NAME",
        f"next                oip-conformance run {url} --conformance-profile=quick --target-model=NAME,"
        " or deploy roles: oip-conformance models export --help",
    ]


def test_doctor_of_a_url_with_the_version_suggests_the_url_without_it(tmp_path: Path) -> None:
    with serve(OrdinaryServer) as url:
        done = run_command(tmp_path, "doctor", f"{url}/v2/")
    assert done.returncode == 6
    assert done.stdout.count("; leave out /v2 at the end of the URL)") == 2
    assert done.stdout.splitlines()[-1] == f"next                oip-conformance doctor {url}"


@pytest.mark.parametrize(
    ("url", "message"),
    [("http://127.0.0.1:9", "cannot connect to"), ("ftp://x", "--target-url 'ftp://x' is not an http")],
)
def test_doctor_of_nobody_is_one_line(tmp_path: Path, url: str, message: str) -> None:
    done = run_command(tmp_path, "doctor", url)
    assert done.returncode == 2
    assert done.stderr.startswith(f"oip-conformance: error: {message}")
    assert done.stderr.count("\n") == 1


def test_the_file_of_a_model_without_inputs(tmp_path: Path) -> None:
    (tmp_path / "t.toml").write_text("[models.iris]\n")
    assert config.load(tmp_path / "t.toml").models == {"iris": {}}
