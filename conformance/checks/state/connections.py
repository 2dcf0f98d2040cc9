"""Several requests on one connection: after an error, pipelined, or after a body that the server did not read.

A server may close a connection after any answer. The suite then does not judge the other requests of the row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from conformance.checks.state.request_forms import (
    expect_own_answer,
    make_salted_request,
    make_salted_tensors,
    require_answer_alone,
)
from conformance.checks.support.inputs import require_distinct_answers
from conformance.expect.expectation import expect
from conformance.expect.unmet import BlockedError, block_if, is_met
from conformance.roles.model import MessageBuilder, Model
from conformance.spec.check import Only, Row, check, rows
from conformance.spec.extensions import BINARY, HTTP
from conformance.spec.fit import ANY, Fit
from conformance.spec.fit import JSON as JSON_MODELS
from conformance.spec.text import escape_text
from conformance.transport.broken_request import is_busy
from conformance.transport.exchange import FailureKind, Reply
from conformance.transport.target import Target
from conformance.wire.request import INFERENCE_HEADER, JSON, Form, Message

# --- one connection ----------------------------------------------------------------------------------------------------


UNKNOWN_MODEL = "/v2/models/there-is-no-such-model"
UNREAD_BODY = "HTTP-UNREAD-BODY"
ELEMENT_COUNT, HIDDEN_SALT = 3, 9


def _make_good_request(model: Model, form: Form, salt: int) -> Message:
    return make_salted_request(model, form, 3 + salt, salt).message()


def _make_unknown_model_request(model: Model) -> Message:
    return replace(_make_good_request(model, "json", 9), path=f"{UNKNOWN_MODEL}/infer")


def _make_broken_json_request(model: Model) -> Message:
    return _make_good_request(model, "json", 9).with_body(b'{"id":"broken","inputs":[')


def _make_missing_bytes_request(model: Model) -> Message:
    message = _make_good_request(model, "binary", 9)
    return message.with_body(message.body[:-5])


def _make_long_inference_header_request(model: Model) -> Message:
    """Return a request with two faults, so that a server that ignores the wrong header refuses it as well."""
    message = _make_missing_bytes_request(model)
    return message.with_header(INFERENCE_HEADER, str(len(message.body) + 1))


def _make_broken_json_before_binary_data_request(model: Model) -> Message:
    message, broken = _make_good_request(model, "binary", 9), b'{"id":"broken","inputs":['
    body = broken + message.body[message.json_length :]
    return message.with_body(body).with_header(INFERENCE_HEADER, str(len(broken)))


# Every server refuses these; the answer to the next request shows whether the server found the end of the refused one.
BAD_REQUESTS: tuple[Row, ...] = (
    Row("unknown-model", (_make_unknown_model_request, "json"), fit=JSON_MODELS),
    Row("broken-json", (_make_broken_json_request, "json"), fit=JSON_MODELS),
    Row("broken-json-before-binary-data", (_make_broken_json_before_binary_data_request, "binary"), needs=BINARY),
    Row("missing-bytes", (_make_missing_bytes_request, "binary"), needs=BINARY, fit=ANY),
    Row("inference-header-past-the-end", (_make_long_inference_header_request, "binary"), needs=BINARY),
)


@check(
    "state.connection-is-in-step-after-an-error",
    requirements=("HTTP-KEEPALIVE", "OIP-ISOLATION"),
    role="identity_int32",
)
@rows(*BAD_REQUESTS)
def connection_is_in_step_after_an_error(target: Target, model: Model, bad: MessageBuilder, form: Form) -> None:
    """After a refusal, the server keeps the connection usable, or announces that it closes the connection."""
    replies = target.send_on_one_connection(
        [_make_good_request(model, form, 0), bad(model), _make_good_request(model, form, 1)]
    )
    for reply in replies[1:2]:
        _expect_bad_request_refused(reply)
    for reply in replies[2:]:
        if reply.is_refusal:
            require_answer_alone(target, reply)
        expect(reply, "OIP-ALIVE" if (reply.status or 0) >= 500 else None).answered()
        expect_own_answer(target, reply, model, 4, 1, "OIP-ISOLATION")


AFTER_POST = "HTTP-PIPELINE-AFTER-POST"


@check(
    "state.pipelined-requests-are-answered-in-order", requirements=("HTTP-PIPELINE", AFTER_POST), role="identity_int32"
)
@rows(Row("all-good", (None, "json"), fit=JSON_MODELS), *BAD_REQUESTS)
def pipelined_requests_are_answered_in_order(
    target: Target, model: Model, bad: MessageBuilder | None, form: Form
) -> None:
    """The server answers pipelined requests in order, as long as it keeps the connection."""
    require_distinct_answers(model, *(make_salted_tensors(model, 3 + salt, salt) for salt in (0, 1, 2)))
    middle = bad(model) if bad else _make_good_request(model, form, 1)
    replies = target.send_on_one_connection(
        [_make_good_request(model, form, 0), middle, _make_good_request(model, form, 2)], pipelined=True
    )
    for position, reply in enumerate(replies):
        if reply.has_ended_unanswered:  # which is allowed
            return
        _expect_no_silence(reply)
        if position == 1 and bad:
            _expect_bad_request_refused(reply)
        else:
            has_failed = position > 1 and bad is not None and (reply.status or 0) >= 500
            about = "OIP-ALIVE" if has_failed else "HTTP-PIPELINE"
            expect_own_answer(target, reply, model, 3 + position, position, about)


BEFORE, BEHIND = "before", "behind"  # where inferences are, seen from the reads
MAX_REPLICAS = 8  # behind an address, which answer in turn


@check("state.pipelined-reads-are-answered-in-order", requirements=("HTTP-PIPELINE", AFTER_POST), role="identity_int32")
@rows(
    Row("metadata", ((),), fit=ANY),
    Row("an-inference-behind-them", ((BEHIND,),), fit=JSON_MODELS),
    Row(
        "between-inferences-of-a-batching-model",
        ((BEFORE, BEHIND),),
        role="batching",
        requirements=("HTTP-PIPELINE", AFTER_POST),
    ),
)
def pipelined_reads_are_answered_in_order(target: Target, model: Model, places: Sequence[str]) -> None:
    """The server answers pipelined metadata requests in order, and inferences before and after them."""
    reads = [Message(path, method="GET") for path in (model.path, "/v2", UNKNOWN_MODEL, model.path, "/v2")]
    alone = {message.path: target.send(message) for message in reads}
    inference = [_make_good_request(model, "json", 1)]
    messages = [*(inference if BEFORE in places else ()), *reads, *(inference if BEHIND in places else ())]
    replies = target.send_on_one_connection(messages, pipelined=True)
    # The requests behind a POST that get no answer leave theirs to later ones.
    about = AFTER_POST if BEFORE in places and any(map(_is_silent, replies)) else "HTTP-PIPELINE"
    for message, reply in zip(messages, replies, strict=False):
        if reply.has_ended_unanswered:  # which is allowed
            return
        if BEFORE in places:
            _expect_no_silence(reply)
        elif _is_silent(reply) and any(map(_is_silent, target.send_on_one_connection(messages))):
            raise BlockedError("the same requests are not answered one after another on one connection either")
        if message not in reads:
            expect_own_answer(target, reply, model, 4, 1, about)
        elif is_busy(reply) or is_busy(alone[message.path]):  # a server may limit the rate of requests
            continue
        elif not _is_answer_to(target, message, reply, alone[message.path]):
            expected = f"the answer to {message.path}: {escape_text(alone[message.path].outcome())}"
            raise expect(reply, about).unmet(expected, escape_text(reply.outcome()))


def _expect_no_silence(reply: Reply) -> None:
    """Expect an answer to a request that was pipelined after a POST, or a closed connection."""
    if _is_silent(reply):
        raise expect(reply, AFTER_POST).unmet("an answer, or a closed connection", escape_text(reply.outcome()))


def _is_silent(reply: Reply) -> bool:
    return reply.status is None and reply.has_failed(FailureKind.TIMEOUT)


def _is_answer_to(target: Target, message: Message, reply: Reply, alone: Reply) -> bool:
    """Say whether a read gets such an answer alone; replicas behind one address may have different names."""
    seen = _extract_status_and_name(reply)
    return seen == _extract_status_and_name(alone) or any(
        seen == _extract_status_and_name(target.send(message)) for _ in range(MAX_REPLICAS)
    )


def _extract_status_and_name(reply: Reply) -> tuple[int | None, object]:
    """Return the status and the member `name` of an answer; together they identify an answer with metadata."""
    return reply.status, (reply.answer.document or {}).get("name")


def _expect_bad_request_refused(reply: Reply) -> None:
    """Expect the server to refuse an invalid request.

    Raises BlockedError: the server answered the request; other checks judge this.
    """
    if reply.succeeded:
        raise BlockedError("the server answered an invalid request")
    expect(reply).refused()


OPAQUE_TAILS: tuple[tuple[str, bytes], ...] = (
    ("end-of-a-head", b"\r\n\r\nabc"),
    ("last-chunk", b"0\r\n\r\n"),
    ("end-of-the-json", b"}]}\x00"),
    ("json", b'{"inputs":[]}'),
    ("white-space", b" \t\r\n  \n"),
    ("a-request", b"GET /v2 HTTP/1.1\r\nHost: x\r\n\r\n"),
    ("gzip", b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03"),
    ("byte-order-mark", b"\xef\xbb\xbf{}"),
)


@check(
    "state.binary-data-is-opaque",
    requirements=("OIP-ISOLATION", "BIN-BODY-I"),
    role="identity_uint8",
    only=Only(HTTP, "the data look like a request of HTTP"),
)
@rows(*[Row(name, (tail,), needs=BINARY) for name, tail in OPAQUE_TAILS])
def binary_data_is_opaque(target: Target, model: Model, tail: bytes) -> None:
    """The server reads binary data as elements, even if the bytes look like HTTP or JSON."""
    tensors = [model.tensor(list(tail))]
    replies = target.send_on_one_connection([model.request(tensors).message(), _make_good_request(model, "json", 1)])
    expect(replies[0], "BIN-BODY-I").tensors(model.expected(tensors))
    for reply in replies[1:]:
        if reply.status is not None:  # a server may close the connection without an answer
            expect_own_answer(target, reply, model, 4, 1, "OIP-ISOLATION")


# --- methods beside GET and POST --------------------------------------------------------------------------------------
# Proxies, monitors and browsers send HEAD and OPTIONS on the connections on which inferences follow.

READ_PATHS: Mapping[str, str] = {
    "server": "/v2",
    "model": "{model}",
    "live": "/v2/health/live",
    "ready": "{model}/ready",
    "infer": "{model}/infer",
    "unknown-model": UNKNOWN_MODEL,
    "unknown-path": "/v2/there/is/nothing/here",
}
_METHODS: Mapping[str, str] = {"HEAD": "HTTP-HEAD", "OPTIONS": "OIP-ISOLATION"}


@check("state.connection-is-in-step-after-head", requirements=("HTTP-HEAD", "OIP-ISOLATION"), role="identity_int32")
@rows(
    *[
        Row(
            f"{method.lower()}-of-{name}",
            (method, path),
            requirements=(requirement,),
            fit=JSON_MODELS if name in ("model", "unknown-model") else None,
        )
        for method, requirement in _METHODS.items()
        for name, path in READ_PATHS.items()
    ]
)
def connection_is_in_step_after_head(target: Target, model: Model, method: str, path: str) -> str:
    """The server answers an inference correctly after a HEAD or OPTIONS request on the same connection."""
    require_distinct_answers(model, *(make_salted_tensors(model, ELEMENT_COUNT, salt) for salt in (1, 2)))
    message = Message(path.format(model=model.path), method=method)
    with block_if(
        lambda: (
            not is_met(
                lambda: _expect_next_requests_right(target, model, replace(message, method="GET"), _METHODS[method])
            )
        ),
        "the next request also gets a wrong answer after a GET",
    ):
        return _expect_next_requests_right(target, model, message, _METHODS[method])


# --- bodies that the server did not read ------------------------------------------------------------------------------
# A server that refuses a request by its headers and does not consume the body may parse the body as the next request.
# Then anybody who controls a body can smuggle requests into a shared connection.


def _make_good_json_request(model: Model, salt: int) -> Message:
    return make_salted_request(model, "json", ELEMENT_COUNT, salt).message()


def _build_empty_request_with_header(name: str, value: str, path: str | None = None) -> MessageBuilder:
    """Return a builder of a request that has no body, but one additional header."""
    return lambda model: _make_empty_request(model, path).with_header(name, value)


def _make_empty_request(model: Model, path: str | None = None, method: str = "POST") -> Message:
    return Message(path or model.infer_path, (("Content-Type", JSON),), method=method)


def _make_empty_request_after_a_brace(model: Model) -> Message:
    """Return a request whose inference header says that the JSON ends after the first byte of the body."""
    return _make_empty_request(model).with_header(INFERENCE_HEADER, "1")


def _build_empty_request_to(path: str) -> MessageBuilder:
    """Return a builder of a request to this path, without a body."""
    return lambda model: _make_empty_request(model, path)


INFER_UNKNOWN_MODEL = "/v2/models/nobody_has_this_model/infer"

# Requests that servers refuse by their headers alone, or answer without reading the body.
REFUSED_BY_HEAD: Mapping[str, MessageBuilder] = {
    "unknown-model": _build_empty_request_to(INFER_UNKNOWN_MODEL),
    "unknown-version": lambda model: _make_empty_request(model, f"/v2/models/{model.name}/versions/87654/infer"),
    "unknown-path": _build_empty_request_to("/v2/there/is/nothing/here"),
    "put": lambda model: _make_empty_request(model, method="PUT"),
    "post-to-metadata": lambda model: _make_empty_request(model, model.path),
    "inference-header-negative": _build_empty_request_with_header(INFERENCE_HEADER, "-1"),
    "inference-header-no-number": _build_empty_request_with_header(INFERENCE_HEADER, "many"),
    "inference-header-past-the-end": _build_empty_request_with_header(INFERENCE_HEADER, "99999999"),
    "unknown-coding": _build_empty_request_with_header("Content-Encoding", "no-such-coding"),
    "unknown-content-type": _build_empty_request_with_header("Content-Type", "image/png"),
    "unknown-expectation": _build_empty_request_with_header("Expect", "a-miracle"),
    "go-ahead-not-waited-for": _build_empty_request_with_header("Expect", "100-continue", INFER_UNKNOWN_MODEL),
    "no-json": _make_empty_request,
}
# More than servers read of a body before they give up; HTTP parsers skip empty lines before a request.
LONG_PADDING = b"\r\n" * 200_000
# Requests in `BINARY_DATA_NAMES` have a header that a server without binary data ignores. Rows in `FOR_ANY_MODEL` also
# run on deployed models.
BINARY_DATA_NAMES = ("inference-header-negative", "inference-header-no-number", "inference-header-past-the-end")
FOR_ANY_MODEL = (
    *("unknown-model", "unknown-model-in-chunks", "unknown-model-400-KB-before-it"),
    *("put", "go-ahead-not-waited-for", "no-json", "inference-header-no-number"),
)
PADDED_NAMES = ("unknown-model", "unknown-path", "no-json")


def _find_row_fit(row_id: str) -> Fit | None:
    """Return the deployed models on which a row also runs; None for no deployed model."""
    return JSON_MODELS if row_id in FOR_ANY_MODEL else None


def _make_unread_body_rows() -> list[Row]:
    framings = (("", False), ("-in-chunks", True))
    short = [
        Row(
            *(name + tail, (make, b"", chunked)),
            needs=BINARY if name in BINARY_DATA_NAMES else (),
            fit=_find_row_fit(name + tail),
        )
        for name, make in REFUSED_BY_HEAD.items()
        for tail, chunked in framings
    ]
    return [
        *short,
        Row("broken-json-before-binary-data", (_make_empty_request_after_a_brace, b"{", False), needs=BINARY),
        *[
            Row(row_id, (REFUSED_BY_HEAD[name], LONG_PADDING, False), fit=_find_row_fit(row_id))
            for name in PADDED_NAMES
            for row_id in (f"{name}-400-KB-before-it",)
        ],
    ]


@check("state.body-is-never-the-next-request", requirements=UNREAD_BODY, role="identity_int32")
@rows(*_make_unread_body_rows())
def body_is_never_the_next_request(
    target: Target, model: Model, refused: MessageBuilder, padding: bytes, chunked: bool
) -> str:
    """The server does not answer a second request that is hidden in the body of a refused request."""
    require_distinct_answers(model, *(make_salted_tensors(model, ELEMENT_COUNT, salt) for salt in (HIDDEN_SALT, 1, 2)))
    body = padding + target.render_without_user_headers(_make_good_json_request(model, HIDDEN_SALT))
    message = refused(model).with_body(body)
    with block_if(
        lambda: (
            not is_met(lambda: _expect_next_requests_right(target, model, message.with_body(b""), UNREAD_BODY, chunked))
        ),
        "the next request also gets a wrong answer after the same request without a body",
    ):
        return _expect_next_requests_right(target, model, message, UNREAD_BODY, chunked)


def _expect_next_requests_right(
    target: Target, model: Model, message: Message, requirement: str, chunked: bool = False
) -> str:
    """Send a message and two valid requests on one connection; expect correct answers to the valid requests.

    The server may close the connection instead. Return a note that says whether it closed or kept the connection.
    """
    good = [_make_good_json_request(model, salt) for salt in (1, 2)]
    replies = target.send_on_one_connection([message, *good], chunked=(0,) if chunked else ())
    for salt, reply in enumerate(replies[1:], start=1):
        if reply.has_ended_unanswered:  # which is allowed
            return "the connection was closed"
        expect_own_answer(target, reply, model, ELEMENT_COUNT, salt, requirement)
    return "the connection was kept" if len(replies) > 1 else "the connection was closed"
