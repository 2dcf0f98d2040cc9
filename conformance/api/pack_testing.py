"""For the tests of a pack: judges a target by the pack alone, and makes faulty servers from a correct one."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Any

from conformance.api.arguments import AsgiApp, JudgeError, read_arguments
from conformance.api.judging import judge_target
from conformance.spec.outcome import Outcome
from conformance.spec.report import PackEntry
from conformance.wire.edits import DocumentEdit


def judge_pack(
    target: str | AsgiApp,
    name: str,
    *,
    models: Collection[str] = (),
    grpc: str | None = None,
    headers: Mapping[str, str] | None = None,
    timeout: float | None = None,
) -> PackEntry:
    """Judge a target by an installed pack alone, without any row of the suite.

    Args:
        target: as that of `judge`.
        name: the name of the pack.
        models: as those of `judge`, like `headers` and `timeout`.
        grpc: the gRPC address of the target; without it no check over gRPC applies.
        headers: sent with every request.
        timeout: seconds to wait for the next byte of an answer.

    Returns:
        The pack's entry of the report, with `verdict`, `requirements` and `rows`.

    Raises:
        JudgeError: an argument or the pack cannot be used, the app does not start, or the target does not answer.
    """
    given = read_arguments(
        target, models, "certify", [name], grpc, headers, timeout, strict=False, config=None, robustness=False
    )
    report = judge_target(given, only_packs=True)
    found = report.document.get("packs")
    if not found:
        raise JudgeError(f"the pack {name} was not judged: {'; '.join(report.why)}")
    return found[0]


def find_unmet(entry: PackEntry) -> set[str]:
    """Return the ids of the requirements of a judged pack that are not met, MUSTs and SHOULDs."""
    return {one["id"] for one in entry["requirements"] if one["verdict"] in (Outcome.FAIL, Outcome.ADVISORY)}


def change_answers(
    app: AsgiApp, path: str, *edits: DocumentEdit, each: str = "", of_errors: bool = False, status: int | None = None
) -> AsgiApp:
    """Return an app that is like another one, but for its answers to GET requests for some paths.

    Args:
        app: a correct server.
        path: a regular expression that matches the whole path of these requests.
        edits: are called with the JSON object of each answer, and change it: those of `wire.edits`, or functions.
        each: the name of an array of the object; the edits are then called with each of its entries.
        of_errors: whether to change the answers with an error status, and no others.
        status: the status of changed answers, if it is another one.
    """

    async def changed_app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or scope["method"] != "GET" or not re.fullmatch(path, scope["path"]):
            await app(scope, receive, send)
            return
        messages: list[dict[str, Any]] = []

        async def keep(message: dict[str, Any]) -> None:
            messages.append(message)

        await app(scope, receive, keep)
        start, body = messages[0], b"".join(message.get("body", b"") for message in messages[1:])
        if (start["status"] >= 400) == of_errors:
            body = _edit(body, edits, each)
            start = {**start, "status": status or start["status"]}
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        await send({**start, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    return changed_app


def _edit(body: bytes, edits: Collection[DocumentEdit], each: str) -> bytes:
    document = json.loads(body)
    for part in document.get(each, ()) if each else (document,):
        for edit in edits:
            with suppress(LookupError):  # what the edit is about is not there
                edit(part)
    return json.dumps(document).encode()
