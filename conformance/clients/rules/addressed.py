"""Where a request goes and how it is framed by HTTP: method, path, Content-Length, Content-Type."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from conformance.clients.rules.rule import Fault, Faults
from conformance.wire.finding import shown
from conformance.wire.path import place_of
from conformance.wire.request import JSON, OCTET_STREAM
from conformance.wire.taken_apart_request import TakenApart

_PATHS: Final = "v2/models/NAME/infer or v2/models/NAME/versions/VERSION/infer"


def post(request: TakenApart) -> Iterator[Fault]:
    """An inference request is a POST to the path of the model."""
    received = request.received
    if received.method != "POST":
        yield Fault("POST", shown(received.method))
    if place_of(received.path) is None:
        yield Fault(f"{_PATHS}, percent-encoded", shown(received.path))


def whole(request: TakenApart) -> Iterator[Fault]:
    """Content-Length counts the whole body."""
    received = request.received
    if received.trouble:
        yield Fault("a whole request of HTTP", shown(received.trouble))
        return
    wanted = str(len(received.body))
    # A list of equal values is as good as one (RFC 9110, 8.6).
    stated = {part.strip() for value in received.values("Content-Length") for part in value.split(",")}
    wrong = sorted(
        value for value in stated if not re.fullmatch("[0-9]+", value) or value.lstrip("0") != wanted.lstrip("0")
    )
    if wrong:
        yield Fault(f"Content-Length {wanted}", shown(wrong[0]))


def content_type(request: TakenApart) -> Faults:
    """The Content-Type is that of the examples."""
    if not request.is_raw and request.document is None:
        return None
    given = request.received.header("Content-Type")
    wanted = _wanted_types(request)
    if given is not None and given.partition(";")[0].strip().lower() in wanted:
        return ()
    return [Fault(" or ".join(wanted), "none" if given is None else shown(given))]


def _wanted_types(request: TakenApart) -> tuple[str, ...]:
    if request.is_raw or request.has_binary_data:
        return (OCTET_STREAM,)
    # Framed as if with binary data, or with tensors of no bytes: either example is like it.
    return (JSON, OCTET_STREAM) if request.header is not None or request.binary else (JSON,)
