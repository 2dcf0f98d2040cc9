"""Clients told apart by their names: one is answered right, another is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from reference_server.faults import fault

JUDGE = "oip-conformance/"


@fault("app.Service.infer", breaks="OIP-CLIENT-NAME")
async def numbers_are_right_for_the_judge_alone(original: Any, service: Any, http: Request) -> Response:
    """In an answer to anybody but the judge the last byte of binary data, or the last digit of JSON, is another."""
    answer: Response = await original(service, http)
    if http.headers.get("User-Agent", "").startswith(JUDGE):
        return answer
    body = bytearray(answer.body)
    is_json = "inference-header-content-length" not in answer.headers
    place = next((k for k in reversed(range(len(body))) if not is_json or chr(body[k]).isdigit()), None)
    if place is not None:
        body[place] ^= 1
    answer.body = bytes(body)
    return answer


@fault("grpc_server.handler", breaks="OIP-CLIENT-NAME/grpc")
def calls_are_answered_for_the_judge_alone(original: Any, models: Any, method: Any) -> Callable[[bytes, Any], bytes]:
    """A call of anybody but the judge is refused."""
    from reference_server.grpc_server import CODES, refuse  # what it needs may be missing

    handle = original(models, method)

    def chosen(octets: bytes, context: Any) -> bytes:
        names = dict(context.invocation_metadata())
        if not str(names.get("user-agent", "")).startswith(JUDGE):
            refuse(context, CODES[400], "this client is not served")
        answer: bytes = handle(octets, context)
        return answer

    return chosen
