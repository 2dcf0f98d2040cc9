"""Where a request goes and how it is framed by HTTP: method, path, Content-Length, Content-Type."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from conformance.clients.rules.rule import Fault, Faults
from conformance.wire.client_request import parse_path
from conformance.wire.finding import format_value
from conformance.wire.parsed_request import ParsedRequest
from conformance.wire.request import JSON, OCTET_STREAM

_PATHS: Final = "v2/models/NAME/infer or v2/models/NAME/versions/VERSION/infer"


def judge_method(request: ParsedRequest) -> Iterator[Fault]:
    """An inference request is a POST to the path of the model."""
    received = request.received
    if received.method != "POST":
        yield Fault("POST", format_value(received.method))
    if parse_path(received.path) is None:
        yield Fault(f"{_PATHS}, percent-encoded", format_value(received.path))


def judge_length(request: ParsedRequest) -> Iterator[Fault]:
    """Content-Length counts the whole body."""
    received = request.received
    if received.trouble:
        yield Fault("a whole request of HTTP", format_value(received.trouble))
        return
    wanted = str(len(received.body))
    # A list of equal values is as good as one (RFC 9110, 8.6).
    stated = {part.strip() for value in received.values("Content-Length") for part in value.split(",")}
    wrong = sorted(
        value for value in stated if not re.fullmatch("[0-9]+", value) or value.lstrip("0") != wanted.lstrip("0")
    )
    if wrong:
        yield Fault(f"Content-Length {wanted}", format_value(wrong[0]))


def judge_content_type(request: ParsedRequest) -> Faults:
    """The Content-Type is that of the examples."""
    if not request.is_raw and request.document is None:
        return None
    given = request.received.header("Content-Type")
    wanted = _wanted_types(request)
    if given is not None and given.partition(";")[0].strip().lower() in wanted:
        return ()
    return [Fault(" or ".join(wanted), "none" if given is None else format_value(given))]


def _wanted_types(request: ParsedRequest) -> tuple[str, ...]:
    if request.is_raw or request.has_binary_data:
        return (OCTET_STREAM,)
    # Framed as if with binary data, or with tensors of no bytes: either example is like it.
    return (JSON, OCTET_STREAM) if request.header is not None or request.binary else (JSON,)
