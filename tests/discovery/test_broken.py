"""What breaks in discovery, or in the question whether a model answers, is told; an honest server is not accused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from conformance.discovery.discovery_result import DiscoveryResult
from conformance.judging.selection import Subjects, list_profile_rows
from conformance.judging.session import Session
from conformance.spec.outcome import Outcome
from conformance.spec.result import CheckResult
from conformance.transport import broken_request
from conformance.transport.settings import Settings
from conformance.transport.target import Target
from conformance.wire.request import INFERENCE_HEADER
from reference_server.errors import InferenceError
from reference_server.faults import fault, switch_on
from tests.support.servers import JsonOnly, serve
from tests.support.sightings import run_server

SURVEY = "errors.nothing-breaks-in-discovery"
Handler = type[JsonOnly]
Trouble = Callable[[JsonOnly], None]


def closes(handler: JsonOnly) -> None:
    handler.close_connection = True


def fails(status: int, **headers: str) -> Trouble:
    def trouble(handler: JsonOnly) -> None:
        handler.send_response(status)
        for name, value in {"Content-Length": "0", **headers}.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()

    return trouble


def cut_short(handler: JsonOnly) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b"{")
    handler.close_connection = True


def in_trouble(kind: str, trouble: Trouble, times: int = 1, after: int = 0) -> Handler:
    """Return a server of JSON that has trouble with the first requests of a kind: of a path, or `raw`, or `infer`.

    It answers so many requests of the kind before: `after`.
    """
    met: list[int] = []

    class Troubled(JsonOnly):
        def is_it(self) -> bool:
            if kind == "raw":
                return self.headers.get(INFERENCE_HEADER) == "0"
            return self.path.endswith(kind)

        def is_in_trouble(self) -> bool:
            if not self.is_it() or len(met) >= after + times:
                return False
            met.append(1)
            if len(met) <= after:
                return False
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            trouble(self)
            return True

        def do_GET(self) -> None:  # noqa: N802
            if not self.is_in_trouble():
                super().do_GET()

        def do_POST(self) -> None:  # noqa: N802
            if self.is_in_trouble():
                return
            if "/identity_int32/" in self.path:
                super().do_POST()
            else:
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                self._answer(404, {"error": "unknown"})

    return Troubled


def judged(handler: Handler, names: Sequence[str] = (SURVEY,), wanted: Sequence[str] = ()) -> list[CheckResult]:
    with serve(handler) as url, Session(Target(Settings(url, timeout=2))) as session:
        session.discover(wanted)
        return [session.judge(case) for case in list_profile_rows("quick") if case.check.id in names]


def judge_once(handler: Handler) -> tuple[Outcome, str]:
    (result,) = judged(handler)
    return result.outcome, result.failure.requirement if result.failure else ""


ALIVE = (Outcome.FAIL, "OIP-ALIVE-LEGAL")
SILENT = (Outcome.FAIL, "OIP-ERROR")
# It offers no extension, so that nothing else is to be said of it.
NOTHING = (Outcome.NOT_APPLICABLE, "")


@pytest.mark.parametrize(
    ("kind", "trouble", "times", "told"),
    [
        ("/v2", closes, 1, SILENT),
        ("/v2", fails(500), 1, ALIVE),
        ("/v2", cut_short, 1, (Outcome.FAIL, "HTTP-LENGTH")),
        ("/v2/models/multi", closes, 1, SILENT),
        ("/v2/models/multi", fails(500), 1, ALIVE),
        ("/v2/models/identity_int32", fails(500), 1, ALIVE),
        ("raw", closes, 1, SILENT),
        ("raw", closes, 99, SILENT),
        ("raw", fails(500), 1, ALIVE),
        # a server of JSON alone may have no better word for what it does not know
        ("raw", fails(500), 99, NOTHING),
        ("raw", fails(501), 99, NOTHING),
        ("raw", fails(415), 99, NOTHING),
        # nor for a model that it does not have
        ("/v2/models/multi", fails(500), 99, NOTHING),
        ("/v2/models/multi", fails(503), 99, NOTHING),
        # one that is busy, or has a model to load, may say when to come back
        ("/v2/models/multi", fails(503), 1, NOTHING),
        ("/v2/models/identity_int32", fails(503), 1, NOTHING),
        ("/v2/models/multi", fails(503, Retry_After="1"), 1, NOTHING),
        ("/v2/models/multi", fails(429), 1, NOTHING),
        ("nothing", closes, 1, NOTHING),
    ],
)
def test_what_breaks_in_discovery_fails(kind: str, trouble: Trouble, times: int, told: tuple[Outcome, str]) -> None:
    assert judge_once(in_trouble(kind, trouble, times)) == told


@pytest.mark.parametrize(("status", "outcome"), [(500, Outcome.ADVISORY), (501, Outcome.PASS), (415, Outcome.PASS)])
def test_a_server_with_extensions_is_advised_to_refuse_others_as_the_clients_fault(
    status: int, outcome: Outcome
) -> None:
    found = DiscoveryResult(offered={"binary_tensor_data": "works"})
    with serve(in_trouble("raw", fails(status), 99)) as url, Session(Target(Settings(url))) as session:
        found.broken = session.discover().broken
    with Session(Target(Settings("http://127.0.0.1:9")), found) as judge:
        (result,) = [judge.judge(case) for case in list_profile_rows("quick") if case.check.id == SURVEY]
    assert result.outcome is outcome
    failure = result.failure
    assert failure is None or (failure.requirement, failure.expected) == (
        "OIP-ERROR-STATUS",
        "a refusal with a 4xx status",
    )


@pytest.mark.parametrize(
    ("statuses", "is_told"),
    [((500, 500), False), ((500, 503), False), ((502, 429), False), ((500,), True)],
    ids=["error-in-the-model", "circuit-breaker", "throttled", "gone-when-sent-again"],
)
def test_error_for_a_guess_that_is_refused_afterwards_is_not_told(statuses: Sequence[int], is_told: bool) -> None:
    left = list(statuses)

    @fault("models.Model.run", breaks="OIP-ALIVE-LEGAL")
    def troubled(original: Any, *arguments: Any) -> Any:
        if left:
            raise InferenceError("index out of range", status=left.pop(0))
        return original(*arguments)

    with switch_on(troubled), run_server() as server, Session(Target(Settings(server.url))) as session:
        found = session.discover(subjects=Subjects(("identity_fp32",), with_roles=False))
    assert bool(found.broken) is is_told
    assert not left


def test_a_role_is_not_lost_for_one_answer_that_did_not_come() -> None:
    with serve(in_trouble("/v2/models/identity_int32", fails(503))) as url, Session(Target(Settings(url))) as session:
        assert set(session.discover().roles) == {"identity_int32"}


def test_what_broke_travels_to_workers() -> None:
    with serve(in_trouble("raw", closes, 99)) as url, Session(Target(Settings(url))) as session:
        found = session.discover()
    plain: dict[str, Any] = found.to_dict()
    with Session(Target(Settings("http://127.0.0.1:9")), DiscoveryResult(**plain)) as worker:
        (result,) = [worker.judge(case) for case in list_profile_rows("quick") if case.check.id == SURVEY]
    assert result.failure is not None
    assert result.failure.requirement == "OIP-ERROR"
    assert "POST /v2/models/identity_int32/infer, 12 bytes, raw binary request" in result.failure.sent
    assert [broken_request.from_dict(one).to_dict() for one in found.broken] == found.broken


def test_what_breaks_beside_a_row_fails_that_row() -> None:
    names = {
        case.check.id
        for case in list_profile_rows("quick")
        if case.check.area == "json" and case.check.infers and case.role == "identity_int32"
    }
    honest = judged(in_trouble("nothing", closes), sorted(names), ["binary_tensor_data"])
    in_discovery = 1
    breaks_later = in_trouble("/identity_int32/infer", closes, after=in_discovery)
    troubled = judged(breaks_later, sorted(names), ["binary_tensor_data"])
    differing = [(a, b) for a, b in zip(honest, troubled, strict=True) if a.outcome is not b.outcome]
    ((before, after),) = differing
    assert before.outcome is not Outcome.FAIL
    assert after.failure is not None
    assert after.failure.requirement == "OIP-ERROR"
    right = "an answer with a 2xx status, or a refusal with a 4xx status"
    assert after.message.startswith(
        f"expected {right}, to an auxiliary request of the suite (role identity_int32), got "
    )
