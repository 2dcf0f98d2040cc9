"""Features of an inference request: its encoding, its tensors, its requested outputs, and how it was sent.

`report.failure_patterns` searches for features that failed requests share. A feature is a pair of texts: a phrase that
completes "every request ...", and the id of the requirement that a server violates if it rejects all such requests. The
id is empty if no specific requirement applies.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

from conformance.expect.unmet import UnmetError
from conformance.spec import ledger
from conformance.spec.extensions import GRPC, HTTP
from conformance.spec.ledger import Concern
from conformance.spec.outcome import AnswerKind
from conformance.spec.result import SentRequests
from conformance.spec.text import escape_text
from conformance.transport.exchange import Exchange, Reply
from conformance.wire import grpc_request
from conformance.wire.client_request import parse_path
from conformance.wire.request import INFERENCE_HEADER, Message

MAX_PARSED_BYTES = 64 * 1024  # of a request's JSON or a gRPC message; a longer one is not parsed
MAX_TEXT_CHARS = 100  # characters of a feature
Feature = tuple[str, str]
IN_JSON, AS_BINARY_DATA, TYPED, IN_RAW = "in JSON", "as binary data", "in typed contents", "in raw contents"
ENCODING_REQUIREMENTS = {IN_JSON: "", AS_BINARY_DATA: "BIN-DATATYPES-I", TYPED: "GRPC-TYPED", IN_RAW: "GRPC-RAW"}
# Headers that other features cover, or that differ between rows.
IGNORED_HEADERS = frozenset({"user-agent", INFERENCE_HEADER.lower()})


class SentTensor(NamedTuple):
    """An input as a request declares it; `encoding` is a key of `ENCODING_REQUIREMENTS`."""

    datatype: str
    shape: tuple[int, ...]
    encoding: str
    is_nested: bool = False


# Features of an input, each with its condition; the simplest first.
INPUT_FEATURES: tuple[tuple[str, Callable[[SentTensor], bool]], ...] = (
    ("with inputs {encoding}", lambda _: True),
    ("with {datatype} {encoding}", lambda _: True),
    ("with {datatype}", lambda _: True),
    ("with an empty input", lambda one: not prod(one.shape)),
    ("with an empty input {encoding}", lambda one: not prod(one.shape)),
    ("with an empty {datatype} input", lambda one: not prod(one.shape)),
    ("with an empty {datatype} input {encoding}", lambda one: not prod(one.shape)),
    ("with an input without dimensions", lambda one: not one.shape),
    ("with an input of more than one dimension", lambda one: len(one.shape) > 1),
    ("with an input of more than two dimensions", lambda one: len(one.shape) > 2),
    *(
        (f"with an input of more than {count:,} elements", lambda one, least=count: prod(one.shape) > least)
        for count in (8, 64, 1024, 65536)
    ),
)
FLAGS = {
    ("binary_data", True): "BIN-OUTPUT-TRUE",
    ("binary_data", False): "BIN-OUTPUT-FALSE",
    ("binary_data_output", True): "BIN-ALL-TRUE",
    ("binary_data_output", False): "BIN-ALL-FALSE",
}


def collect_answered_features(exchanges: Sequence[Exchange]) -> SentRequests | None:
    """Return the features of the successful inference requests of a row that passed."""
    return _list_features([exchange for exchange in exchanges if Reply(exchange).succeeded], AnswerKind.RIGHT)


def collect_failed_features(unmet: UnmetError, requirement: str) -> SentRequests | None:
    """Return the features of the failed inference request; None if the server had to refuse this request."""
    reply = unmet.reply
    if reply is None:
        return None
    if reply.succeeded:
        return _list_features([reply.exchange], AnswerKind.WRONG)
    entry = ledger.get_requirement(requirement)
    if entry.concern is Concern.REFUSAL or entry.area == "errors":
        return None
    if reply.status is None or reply.exchange.failure:
        return _list_features([reply.exchange], AnswerKind.NONE)
    return _list_features([reply.exchange], AnswerKind.SERVER_ERROR if reply.status >= 500 else AnswerKind.REFUSED)


def _list_features(exchanges: Sequence[Exchange], answer: AnswerKind) -> SentRequests | None:
    """Return the features of the inference requests over one transport, that of the first; None without a request."""
    sent = [exchange for exchange in exchanges if _is_inference(exchange)]
    if not sent:
        return None
    over = _find_transport(sent[0])
    found = (
        feature
        for exchange in sent
        if _find_transport(exchange) == over
        for feature in _list_request_features(exchange)
    )
    texts = dict.fromkeys(found)  # a row may send hundreds of identical requests
    features = [(escape_text(text, MAX_TEXT_CHARS), requirement) for text, requirement in texts]
    return SentRequests(features=features, answer=str(answer), over=over)


def _is_inference(exchange: Exchange) -> bool:
    path = exchange.message.path
    return not exchange.as_octets and (parse_path(path) is not None or path.endswith("/ModelInfer"))


def _find_transport(exchange: Exchange) -> str:
    return GRPC if Reply(exchange).is_over_grpc else HTTP


def _list_request_features(exchange: Exchange) -> Iterator[Feature]:
    message, path = exchange.message, parse_path(exchange.message.path)
    yield from _list_grpc_features(message) if path is None else _list_http_features(message)
    yield from _list_transport_features(exchange)
    if path is not None and path.version is not None:
        yield "with a version in its path", "OIP-VERSIONED"
    if path is not None:
        yield f"to the model {path.model.decode('utf-8', 'replace')}", ""


def _list_http_features(message: Message) -> Iterator[Feature]:
    if message.header(INFERENCE_HEADER) == "0":
        yield "with a raw body", "RAW-HEADER-ZERO"
        return
    request = _parse_request_json(message.body[: message.json_length])
    outputs = _filter_json_objects(request.get("outputs"))
    yield from _list_input_features([_parse_input(item) for item in _filter_json_objects(request.get("inputs"))])
    of_outputs = [_read_parameters(item) for item in outputs]
    yield from _list_output_features(len(outputs), any("classification" in one for one in of_outputs))
    for (name, value), requirement in FLAGS.items():
        if any(one.get(name) is value for one in (*of_outputs, _read_parameters(request))):
            yield f"with `{name}` {str(value).lower()}", requirement
    yield from _list_id_features(request.get("id"))


def _list_grpc_features(message: Message) -> Iterator[Feature]:
    request = grpc_request.parse_request(message) if len(message.body) <= MAX_PARSED_BYTES else None
    if request is None:
        return
    encoding = IN_RAW if request.raw_input_contents else TYPED
    yield from _list_input_features(
        [SentTensor(entry.datatype, tuple(entry.shape), encoding) for entry in request.inputs]
    )
    yield from _list_output_features(
        len(request.outputs), any("classification" in one.parameters for one in request.outputs)
    )
    yield from _list_id_features(request.id)
    if request.model_version:
        yield "with a version", "OIP-VERSIONED/grpc"
    yield f"to the model {request.model_name}", ""


def _list_input_features(tensors: Sequence[SentTensor]) -> Iterator[Feature]:
    for of_template in zip(*map(_list_tensor_features, tensors), strict=True):
        yield from filter(None, of_template)
    if any(one.is_nested for one in tensors):
        yield "with nested data", "OIP-DATA"
    if len(tensors) > 1:
        yield "with several inputs", ""
    if len({one.encoding for one in tensors}) > 1:
        yield "with inputs as binary data beside others in JSON", "BIN-MIXED-I"


@lru_cache(maxsize=4096)
def _list_tensor_features(one: SentTensor) -> tuple[Feature | None, ...]:
    """Return a feature for each template of `INPUT_FEATURES`; None for a template whose condition is false."""
    return tuple(
        (
            template.format(encoding=one.encoding, datatype=one.datatype),
            ENCODING_REQUIREMENTS[one.encoding] if "{encoding}" in template else "",
        )
        if holds(one)
        else None
        for template, holds in INPUT_FEATURES
    )


def _list_output_features(count: int, is_classified: bool) -> Iterator[Feature]:
    if is_classified:
        yield "that asks for a classification", "CLS-PARAMETER"
    yield "that lists outputs" if count else "that lists no outputs", ""
    if count > 1:
        yield "that lists several outputs", ""


def _list_id_features(request_id: Any) -> Iterator[Feature]:
    if request_id and isinstance(request_id, str):
        yield "with an id", "OIP-ID"
        if not request_id.isascii():  # first, so that of features of the same rows the narrower is named
            yield "with an id beyond ASCII", "OIP-ID"
        if not (request_id.isascii() and request_id.replace("-", "").replace("_", "").isalnum()):
            yield "with an id of more than letters and digits", "OIP-ID"


def _list_transport_features(exchange: Exchange) -> Iterator[Feature]:
    """Yield features for the headers, the body size and the send options of a request."""
    if exchange.is_chunked:
        yield "in chunks", "HTTP-CHUNKED"
    if exchange.send_options.chunk_format.extension:
        yield "with chunk extensions", "HTTP-CHUNKED"
    for name, value in exchange.message.headers:
        if name.lower() not in IGNORED_HEADERS:
            yield f"with `{name}: {value}`", ""
    for kib in (1, 4, 64, 1024):
        if len(exchange.message.body) > kib * 1024:
            yield f"with a body of more than {kib} KiB", ""
    parts = reversed(exchange.note.split(", "))  # first how chunks are written: their number is rarely the cause
    yield from ((f'sent as "{part}"', "") for part in parts if part)


def _parse_request_json(text: bytes) -> dict[str, Any]:
    """Return the JSON object of a request; empty if the text is not a JSON object or is too long."""
    try:
        value = json.loads(text) if len(text) <= MAX_PARSED_BYTES else None
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _parse_input(item: Mapping[str, Any]) -> SentTensor:
    shape, data = item.get("shape"), item.get("data")
    dimensions = tuple(number for number in shape if isinstance(number, int)) if isinstance(shape, list) else ()
    is_nested = isinstance(data, list) and any(isinstance(part, list) for part in data[:1])
    return SentTensor(str(item.get("datatype")), dimensions, IN_JSON if "data" in item else AS_BINARY_DATA, is_nested)


def _filter_json_objects(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _read_parameters(item: Mapping[str, Any]) -> dict[str, Any]:
    value = item.get("parameters")
    return value if isinstance(value, dict) else {}
