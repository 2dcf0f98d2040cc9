"""Metadata of servers and models, as JSON documents, and their health."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from conformance.checks.support.schemas import find_faults
from conformance.expect.expectation import expect
from conformance.expect.unmet import UnmetError
from conformance.roles.model import Model
from conformance.transport.exchange import Reply
from conformance.transport.target import Target
from conformance.wire.finding import format_value
from conformance.wire.json_text import parse_json


def expect_document(reply: Reply, schema: str, members: tuple[str, ...]) -> dict[str, Any]:
    """Return the JSON object of an answer, which fits the schema at least in these members."""
    expect(reply).answered()
    kind = schema.replace("_", " ")
    document, findings = parse_json(reply.body)
    if not isinstance(document, dict):
        raise UnmetError(
            f"a JSON object as {kind}", findings[0].described if findings else format_value(document), reply
        )
    for fault in find_faults(schema, document):
        if fault.path[0] in members:
            raise UnmetError(f"{fault.place} in {kind} to be {fault.expected}", fault.actual, reply)
    return document


# Statuses of a path that the server does not know, or not with this method.
ABSENT_STATUSES = (404, 405, 501)


def expect_health(target: Target, model: Model, of: str) -> Reply:
    """Expect a success of what says that a server is `live` or a `model` ready, where that model answers requests.

    Whether the server is `ready` is its own affair, since another model may not be.
    """
    reply = target.get(f"{model.path}/ready" if of == "model" else f"/v2/health/{of}")
    if of != "ready" or reply.status is None or reply.status in ABSENT_STATUSES:
        expect(reply).answered()
    return reply


def list_versions(target: Target, model: Model) -> list[str]:
    """Return the versions that a model's metadata list; none where they do not."""
    listed = (target.get(replace(model, version="").path).answer.document or {}).get("versions")
    return [version for version in listed if isinstance(version, str)] if isinstance(listed, list) else []


def fits(declared: tuple[int, ...], shape: list[Any]) -> bool:
    """Say whether a shape in metadata is the declared one, or leaves dimensions open."""
    return len(declared) == len(shape) and all(b in (a, -1) for a, b in zip(declared, shape, strict=True))
