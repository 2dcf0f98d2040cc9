"""What the judge says of a row that it could not judge."""

from __future__ import annotations

from conformance.discovery.discovery_result import DiscoveryResult
from conformance.judging.judge import Judge
from conformance.spec.check import Check, Row
from conformance.spec.extensions import HTTP
from conformance.spec.outcome import ReasonKind
from conformance.transport.settings import Settings
from conformance.transport.target import Target
from conformance.transport.unreachable import TargetLostError

TOKEN = "tok-Sup3rS3cret"  # noqa: S105 - made up


def _lost(*_: object) -> None:
    raise TargetLostError(f"cannot connect to proxy with {TOKEN}")


def test_a_reason_for_programs_holds_no_credentials_either() -> None:
    target = Target(Settings("http://127.0.0.1:9", headers=(("Authorization", f"Bearer {TOKEN}"),)))
    check = Check("state.made", ("OIP-ALIVE",), None, (Row(""),), _lost, over=(HTTP,))
    survey = DiscoveryResult()
    survey.offered["protocol"] = survey.offered["binary_tensor_data"] = "listed"
    result = Judge(target, survey)(check, Row(""))
    assert result.reason is not None
    assert result.reason.kind is ReasonKind.TARGET_LOST
    assert result.reason.subject == f"cannot connect to proxy with {'*' * len(TOKEN)}"
    assert TOKEN not in result.message
