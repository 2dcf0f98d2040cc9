"""Clients that do not read what HTTP delivers, errors among it."""

from __future__ import annotations

import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any

from tests.clients import steps
from tests.clients.alterations import Original, fault
from tests.clients.honest import answer
from tests.clients.honest.answer import Answer
from tests.clients.honest.caller import CallerRequest, CallerResult, Class, MalformedError, RefusedError, Tensor
from tests.clients.honest.connection import Connection, Fields, read_exactly, read_line
from tests.clients.honest.http_client import HttpClient
from tests.clients.honest.lines import Adapter
from tests.clients.honest.tensors import strings

HEADER = "Inference-Header-Content-Length"


header_case_sensitive = steps.FIELD_NAME.after(
    "CLIENT-READS-FRAMING", lambda made, name: f"not-{made}" if made == HEADER.lower() and name != HEADER else made
).says("The inference header of an answer is found only as the documents spell it.")


@fault("connection.read_body", misses="CLIENT-READS-FRAMING")
def chunked_unread(original: Original, connection: Connection, status: int, fields: Fields) -> tuple[bytes, bool]:
    """An answer in chunks is an error to the caller."""
    if any(name == "transfer-encoding" for name, _ in fields):
        raise MalformedError("no Content-Length")
    body, has_end = original(connection, status, fields)
    return body, has_end


first_chunk_only = steps.READ_CHUNKS.instead(
    "CLIENT-READS-FRAMING",
    lambda connection: read_exactly(connection, int(read_line(connection).partition(";")[0], 16)),
).says("Of an answer in chunks the first one alone is read.")


@fault("connection.read_exactly", misses="CLIENT-READS-FRAMING CLIENT-READS-VALUES")
def one_read_is_the_body(_original: Original, connection: Connection, length: int) -> bytes:
    """The body of an answer is what the first read brings."""
    if len(connection.received) < length:
        connection.received += connection.receive()
    found, connection.received = connection.received[:length], connection.received[length:]
    return found


gzip_answer_unread = steps.DECODED.instead("CLIENT-READS-FRAMING CLIENT-REFUSES-WRONG", lambda body: body).says(
    "The content coding of an answer is not undone, though the request accepts it."
)


@fault("answer.given", misses="CLIENT-READS-FRAMING")
def length_counted_before_decoding(original: Original, asked: CallerRequest, found: Answer) -> CallerResult:
    """The inference header is taken for a count of the bytes of the compressed body."""
    if found.header("content-encoding") and len(found.body) < (answer.json_length(found) or 0):
        raise MalformedError("the header leads past the end")
    given: CallerResult = original(asked, found)
    return given


def _classes(output: Tensor) -> list[Class]:
    parts = [one.decode().split(":") for one in strings(output.data)]
    return [Class(part[0], int(part[1]), part[2] if len(part) > 2 else None) for part in parts]


def _shown(output: Tensor, classes: list[Class]) -> dict[str, Any]:
    said = [{name: value for name, value in vars(one).items() if value is not None} for one in classes]
    return {"name": output.name, "classes": said}


def _divided(original: Original, asked: CallerRequest, outputs: Any) -> list[dict[str, Any]]:
    counts = {output.name for output in asked.outputs or () if output.classes is not None}
    plain = original(asked, outputs)
    return [
        _shown(output, _classes(output)) if output.name in counts and output.datatype == "BYTES" else said
        for output, said in zip(outputs, plain, strict=True)
    ]


@fault("lines.shown", misses="CLIENT-READS-CLASSES CLIENT-READS-CLASSES/grpc")
def labels_cut_at_colon(original: Original, asked: CallerRequest, outputs: Any) -> list[dict[str, Any]]:
    """The label of a class ends at its first colon."""
    return _divided(original, asked, outputs)


@fault("lines.shown", misses="CLIENT-READS-CLASSES CLIENT-READS-CLASSES/grpc")
def index_and_value_exchanged(original: Original, asked: CallerRequest, outputs: Any) -> list[dict[str, Any]]:
    """The index of a class is given as its value, counted from where the class stands."""
    made = _divided(original, asked, outputs)
    for output in made:
        for place, one in enumerate(output.get("classes", ())):
            one["value"], one["index"] = str(one["index"]), place
    return made


@fault("answer.read_outputs", misses="CLIENT-READS-CLASSES")
def classes_unread(original: Original, asked: CallerRequest, entries: Any, data: bytes) -> Any:
    """An output of classes is an error to the caller, who is told that BYTES is not what the model declares."""
    classified = {output.name for output in asked.outputs or () if output.classes is not None}
    if any(entry.get("name") in classified for entry in entries):
        raise MalformedError("datatype BYTES of an output of numbers")
    return original(asked, entries, data)


@fault("answer.read_outputs", misses="CLIENT-READS-CLASSES")
def label_needed(original: Original, asked: CallerRequest, entries: Any, data: bytes) -> Any:
    """A class without a label is an error to the caller."""
    made = original(asked, entries, data)
    classified = {output.name for output in asked.outputs or () if output.classes is not None}
    for output in made:
        if output.name in classified and any(one.count(b":") < 2 for one in strings(output.data)):
            raise MalformedError("a class without a label")
    return made


@fault("answer.given", misses="CLIENT-READS-ERROR CLIENT-READS-ERROR-TEXT")
def error_taken_for_tensors(original: Original, asked: CallerRequest, found: Answer) -> CallerResult:
    """An answer with an error status gives the caller no outputs, and no error."""
    if not 200 <= found.status < 300:
        return CallerResult(())
    given: CallerResult = original(asked, found)
    return given


@fault("answer.given", misses="CLIENT-READS-ERROR CLIENT-READS-ERROR-TEXT")
def server_errors_only(original: Original, asked: CallerRequest, found: Answer) -> CallerResult:
    """An answer with a status of 4xx gives the caller no outputs, and no error."""
    if 400 <= found.status < 500:
        return CallerResult(())
    given: CallerResult = original(asked, found)
    return given


reads_error_where_there_is_none = steps.PARSED.fail(
    "CLIENT-READS-ERROR",
    RefusedError("the server answered with an error"),
    when=lambda text: b'"error' in text and b'"outputs"' in text,
).says("Wherever the JSON of an answer holds the word error, the caller is given an error.")


@fault("answer.given", misses="CLIENT-REFUSES-WRONG")
def error_with_200_taken_for_no_outputs(original: Original, asked: CallerRequest, found: Answer) -> CallerResult:
    """An error object with the status 200 gives the caller no outputs, and no error."""
    try:
        given: CallerResult = original(asked, found)
    except RefusedError:
        if found.status == 200:
            return CallerResult(())
        raise
    return given


@fault("http_client.HttpClient.infer", misses="CLIENT-READS-ERROR-TEXT")
def error_text_lost(original: Original, client: HttpClient, asked: CallerRequest, timeout: float) -> CallerResult:
    """The caller is told that there was an error, and neither its text nor its status."""
    try:
        given: CallerResult = original(client, asked, timeout)
    except RefusedError as error:
        raise RefusedError("inference failed") from error
    return given


@fault("http_client.HttpClient.infer", misses="CLIENT-READS-OWN", broad=True)
def reuses_last_answer(original: Original, client: HttpClient, asked: CallerRequest, timeout: float) -> CallerResult:
    """From the second inference on, the caller is given the answer before."""
    given: CallerResult = original(client, asked, timeout)
    earlier: CallerResult = vars(client).get("earlier", given)
    vars(client)["earlier"] = given
    return earlier


@fault("http_client.HttpClient.infer", misses="CLIENT-READS-OWN")
def answers_in_order_of_arrival(
    original: Original, client: HttpClient, asked: CallerRequest, timeout: float
) -> CallerResult:
    """Of several answers in flight each caller takes the one that came first."""
    waiting: deque[CallerResult] = vars(client).setdefault("waiting", deque())
    waiting.append(original(client, asked, timeout))
    time.sleep(0.02)
    return waiting.pop()


@fault("http_client.HttpClient.infer", misses="CLIENT-READS-OWN")
def answers_kept_by_id(original: Original, client: HttpClient, asked: CallerRequest, timeout: float) -> CallerResult:
    """An inference with the id of an earlier one is given the answer to that."""
    kept: dict[str | None, CallerResult] = vars(client).setdefault("kept", {})
    given: CallerResult = original(client, asked, timeout)
    return given if asked.id is None else kept.setdefault(asked.id, given)


@fault("lines.Adapter.answered", misses="CLIENT-READS-OWN CLIENT-READS-OWN/grpc")
def concurrent_results_in_the_order_of_answers(original: Original, adapter: Adapter, command: dict[str, Any]) -> Any:
    """The client gives its concurrent callers their results in the order in which the answers arrive."""
    inferences = command.get("inferences", ())
    if not command.get("at_once") or len(inferences) < 2:
        return original(adapter, command)
    with ThreadPoolExecutor(len(inferences)) as pool:
        alone = [
            pool.submit(original, adapter, {**command, "at_once": False, "inferences": [one]}) for one in inferences
        ]
        answered = [done.result() for done in as_completed(alone)]
    return {**answered[0], "results": [result for one in answered for result in one["results"]]}
