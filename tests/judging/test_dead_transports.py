"""A transport that answers nothing is named once; the rest is judged over the other one, or has one clear reason."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest

from conformance.judging.run_start import ALL_MODELS, MissingKind, discover_subjects, start_run
from conformance.judging.selection import ROLES, Subjects, find_row
from conformance.judging.session import Session
from conformance.spec.outcome import INCOMPLETE, Outcome
from conformance.transport.settings import make_settings
from conformance.transport.target import Target
from reference_server.errors import InferenceError
from reference_server.faults import Fault, switch_on
from tests.support.servers import JsonOnly, reserve_closed_port, run_with_grpc, serve
from tests.support.sightings import judge_fault, run_server

MODEL = "identity_int32"
ROWS = (
    ("json.metadata-have-status-200", "server"),
    ("json.plain-request-is-answered", MODEL),
    ("json.health-is-told", "live"),
    ("grpc.metadata-have-status-200", "server"),
    ("grpc.answers-are-those-of-http", MODEL),
)


@pytest.fixture(scope="module")
def living_grpc() -> Iterator[str]:
    with run_with_grpc(f"--model={MODEL}") as (_, address):
        yield address


def make_handler(status: int, *, infers: bool) -> type[JsonOnly]:
    """Return a server over HTTP that answers every request with a status, or every request except inferences."""

    def refuse(handler: JsonOnly) -> None:
        handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
        handler.send_response(status)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    return type("Dead", (JsonOnly,), {"do_GET": refuse} if infers else {"do_GET": refuse, "do_POST": refuse})


def judge(url: str, address: str, subjects: Subjects) -> tuple[bool, list[Outcome]]:
    """Return whether the server is dead over HTTP, and the outcomes of `ROWS`, on a deployed model if there is one."""
    names = subjects.models
    with Session(Target(make_settings(url, grpc=address))) as session:
        _, nothing = discover_subjects(session, subjects)
        rows = [find_row(check, f"deployed@{MODEL}" if names and row == MODEL else row, names) for check, row in ROWS]
        found = [session.judge(row) for row in rows if row]
    assert nothing is None
    assert {result.failure.requirement for result in found if result.failure} == {"OIP-ENDPOINTS"}
    return session.discovery_result.is_dead_over_http, [result.outcome for result in found]


@pytest.mark.parametrize("subjects", [ROLES, Subjects((MODEL,))], ids=["role", "deployed"])
@pytest.mark.parametrize("status", [404, 405, 500, 501])
def test_nothing_over_http_is_one_unmet_requirement(living_grpc: str, status: int, subjects: Subjects) -> None:
    with serve(make_handler(status, infers=False)) as url:
        is_dead, outcomes = judge(url, living_grpc, subjects)
    assert is_dead
    assert outcomes == [Outcome.FAIL, Outcome.BLOCKED, Outcome.BLOCKED, Outcome.PASS, Outcome.BLOCKED]


def test_one_inference_over_http_is_enough_to_be_judged_there(living_grpc: str) -> None:
    with serve(make_handler(404, infers=True)) as url, Session(Target(make_settings(url, grpc=living_grpc))) as session:
        discover_subjects(session)
    assert not session.discovery_result.is_dead_over_http
    assert MODEL in session.discovery_result.roles


@pytest.mark.parametrize("status", [401, 403])
def test_a_refusal_by_a_gateway_accuses_nobody(living_grpc: str, status: int) -> None:
    handler = make_handler(status, infers=False)
    with serve(handler) as url, Session(Target(make_settings(url, grpc=living_grpc))) as session:
        _, nothing = discover_subjects(session)
    assert nothing is not None
    assert nothing.lack is MissingKind.METADATA


@pytest.mark.parametrize("is_http", [False, True])
def test_an_address_without_a_grpc_server_accuses_nobody(is_http: bool) -> None:
    with serve(JsonOnly) as url, reserve_closed_port() as port:
        address = url.removeprefix("http://") if is_http else f"127.0.0.1:{port}"
        with Session(Target(make_settings(url, grpc=address, timeout=1.0))) as session:
            _, conclusion = start_run(session, (), ROLES, {})
    assert conclusion is not None
    assert conclusion.verdict.verdict == INCOMPLETE


class AnyMethod(grpc.GenericRpcHandler):  # type: ignore[misc]
    """Raises in every method."""

    def service(self, _: object) -> object:
        def fail(*_: object) -> bytes:
            raise ValueError

        return grpc.unary_unary_rpc_method_handler(fail)


@pytest.mark.parametrize("subjects", [ROLES, Subjects((MODEL,)), Subjects((ALL_MODELS,))], ids=["role", "one", "all"])
@pytest.mark.parametrize(("handlers", "code"), [((), "UNIMPLEMENTED"), ((AnyMethod(),), "UNKNOWN")])
def test_no_method_over_grpc_alone_is_the_reason(handlers: Sequence[object], code: str, subjects: Subjects) -> None:
    server = grpc.server(ThreadPoolExecutor(2), handlers=handlers, options=[("grpc.so_reuseport", 0)])
    address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    with Session(Target(make_settings("", grpc=address))) as session:
        _, nothing = discover_subjects(session, subjects)
    server.stop(None).wait()
    assert nothing is not None
    assert nothing.lack is MissingKind.METHODS
    assert nothing.details[0].startswith(f"{code}: ")
    assert session.target.answered


# The code of every call of ModelInfer, and whether HTTP infers -> the requirement that fails; None: the row is blocked.
PLAIN_CALLS = [
    ("INTERNAL", True, "OIP-ANSWER/grpc"),
    ("INVALID_ARGUMENT", True, "OIP-ANSWER/grpc"),
    ("UNIMPLEMENTED", True, "OIP-ENDPOINTS/grpc"),
    ("NOT_FOUND", True, None),
    ("PERMISSION_DENIED", True, None),
    ("INTERNAL", False, None),
]


@pytest.mark.parametrize(("code", "infers", "requirement"), PLAIN_CALLS)
def test_a_model_without_plain_calls_is_named_if_http_infers(code: str, infers: bool, requirement: str | None) -> None:
    def fail_call(original: Callable[..., object], *_: object) -> object:
        if original.__name__ == "get_status":
            return grpc.StatusCode[code], "no"
        raise InferenceError("no")

    async def infer(original: Callable[..., Awaitable[object]], service: object, http: object) -> object:
        if infers:
            return await original(service, http)
        raise InferenceError("no")

    calls = Fault("", ("grpc_methods.model_infer", "grpc_server.get_status"), (), fail_call)
    row = find_row("grpc.plain-request-is-answered", "weighted_sum")
    assert row is not None
    with run_server() as server, switch_on(calls), switch_on(Fault("", ("app.Service.infer",), (), infer)):
        server.replace()
        (result,) = judge_fault(server, calls, [row])
    named = result.failure.requirement if result.failure else None
    assert (result.outcome, named) == (Outcome.FAIL if requirement else Outcome.BLOCKED, requirement)


@pytest.mark.parametrize(("status", "requirement"), [(400, "OIP-ANSWER"), (401, None), (403, None), (407, None)])
def test_a_model_that_wants_credentials_is_not_judged(status: int, requirement: str | None) -> None:
    async def refuse(*_: object) -> object:
        raise InferenceError("no", status=status)

    row = find_row("json.plain-request-is-answered", "weighted_sum")
    assert row is not None
    fault = Fault("", ("app.Service.infer",), (), refuse)
    with run_server() as server, switch_on(fault):
        (result,) = judge_fault(server, fault, [row])
    named = result.failure.requirement if result.failure else None
    assert (result.outcome, named) == (Outcome.FAIL if requirement else Outcome.BLOCKED, requirement)


# An endpoint, and a row about it -> the requirement that fails if the endpoint is missing.
ENDPOINT_ROWS = {
    ("server_metadata", "metadata.server-metadata-is-well-formed", ""): "OIP-ENDPOINTS",
    ("server_metadata", "metadata.classification-is-listed", ""): "OIP-ENDPOINTS",
    ("server_metadata", "json.metadata-have-status-200", "server"): "OIP-ENDPOINTS",
    ("server_metadata", "json.absent-members-are-left-out", "server-metadata"): "OIP-ENDPOINTS",
    ("model_metadata", "metadata.model-metadata-describes-the-model", "weighted_sum"): "OIP-ENDPOINTS",
    ("live", "json.health-is-told", "live"): "OIP-HEALTH",
    ("model_ready", "json.health-is-told", "model"): "OIP-HEALTH",
}


@pytest.mark.parametrize("status", [403, 404])
@pytest.mark.parametrize(("endpoint", "check", "row"), ENDPOINT_ROWS)
def test_a_missing_endpoint_is_one_requirement_and_a_restricted_one_none(
    endpoint: str, check: str, row: str, status: int
) -> None:
    async def refuse(*_: object) -> object:
        raise InferenceError("no", status=status)

    case = find_row(check, row)
    assert case is not None
    fault = Fault("", (f"app.Service.{endpoint}",), (), refuse)
    with run_server() as server, switch_on(fault):
        (result,) = judge_fault(server, fault, [case])
    named = result.failure.requirement if result.failure else None
    expected = (Outcome.FAIL, ENDPOINT_ROWS[endpoint, check, row]) if status == 404 else (Outcome.BLOCKED, None)
    assert (result.outcome, named) == expected
