"""Servers that are different and right: none of them may fail a check.

Made as faults are, by replacing a step of the reference server; here `breaks` names the SHOULDs that the server misses,
for which it is advised and no more. Where the documents leave a point open, the other reading stands here.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from starlette.responses import JSONResponse, Response

from reference_server import app
from reference_server.errors import InferenceError
from reference_server.faults import Fault
from reference_server.faults import fault as variation
from reference_server.framing import HEADER
from reference_server.request import InferRequest, OutputWish
from reference_server.tensors import Tensor

Answer = dict[str, Any]


# --- the text of the JSON --------------------------------------------------------------------------------------------


@variation("response.encode")
def json_is_indented(_: Any, answer: Answer) -> bytes:
    """The JSON of answers is spread over lines."""
    return json.dumps(answer, ensure_ascii=False, indent=2).encode()


@variation("response.encode")
def json_is_escaped(_: Any, answer: Answer) -> bytes:
    """Every letter beyond ASCII is escaped, and every slash."""
    return json.dumps(answer).replace("/", "\\/").encode()


@variation("response.encode")
def members_are_sorted_backwards(_: Any, answer: Answer) -> bytes:
    """The members of every object stand in the reverse of their alphabetical order."""
    return json.dumps(_backwards(answer), ensure_ascii=False).encode()


def _backwards(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _backwards(value[name]) for name in sorted(value, reverse=True)}
    return [_backwards(item) for item in value] if isinstance(value, list) else value


@variation("response.encode")
def blanks_stand_around_the_json(original: Any, answer: Answer) -> bytes:
    """White space stands before and after the JSON, and the inference header counts it."""
    return b" \n" + bytes(original(answer)) + b"\r\n\t "


@variation("tensors.encode_json")
def data_are_nested(original: Any, tensor: Tensor) -> list[Any]:
    """JSON data are nested as the shape says."""
    items = iter(original(tensor))
    return list(_nested(tensor.shape, items)) if tensor.shape else list(items)


def _nested(shape: Sequence[int], items: Iterator[Any]) -> Any:
    return [_nested(shape[1:], items) for _ in range(shape[0])] if shape else next(items)


def _respelled(answer: bytes, pattern: str, spelling: str) -> bytes:
    """Return the JSON with the numbers of its data spelled in another way."""
    return re.sub(rb'"data":\[[^"]*?\]', lambda data: re.sub(pattern.encode(), spelling.encode(), data.group()), answer)


@variation("response.encode")
def integers_have_a_point(original: Any, answer: Answer) -> bytes:
    """Integers in JSON data are written as 1.0."""
    return _respelled(original(answer), r"(?<![\d.e])(-?\d{1,15})(?=[,\]])", r"\1.0")


@variation("response.encode")
def integers_have_an_exponent(original: Any, answer: Answer) -> bytes:
    """Integers in JSON data are written as 1e0."""
    return _respelled(original(answer), r"(?<![\d.e])(-?\d{1,15})(?=[,\]])", r"\1e0")


@variation("response.encode")
def whole_floats_have_no_point(original: Any, answer: Answer) -> bytes:
    """Floats without a fraction are written as integers in JSON data."""
    return _respelled(original(answer), r"(?<![\d.e-])([1-9]\d{0,14})\.0(?=[,\]])", r"\1")


@variation("tensors.encode_json")
def fp32_has_nine_digits(original: Any, tensor: Tensor) -> list[Any]:
    """FP32 in JSON is written with nine digits, which is enough to read it back."""
    items: list[Any] = original(tensor)
    return [float(f"{item:.9g}") for item in items] if tensor.datatype == "FP32" else items


# --- members and parameters ------------------------------------------------------------------------------------------


@variation("response.encode")
def members_nobody_asked_for(original: Any, answer: Answer) -> bytes:
    """Answers and outputs have members and parameters that no document knows."""
    if "outputs" not in answer:
        return bytes(original(answer))
    outputs = [
        {"layout": "flat", **output, "parameters": {"x-time": 1.5, **output.get("parameters", {})}}
        for output in answer["outputs"]
    ]
    return bytes(original({"took": 3, **answer, "parameters": {"a": True}, "outputs": outputs, "warnings": []}))


@variation("response.encode")
def absent_members_are_null(original: Any, answer: Answer) -> bytes:
    """Optional members that are absent are there with the value null."""
    if "outputs" not in answer:
        return bytes(original(answer))
    outputs = [{"data": None, "parameters": None, **output} for output in answer["outputs"]]
    return bytes(original({"id": None, **answer, "model_version": None, "parameters": None, "outputs": outputs}))


@variation("response.encode")
def no_model_version(original: Any, answer: Answer) -> bytes:
    """Answers do not name a model version."""
    return bytes(original({name: value for name, value in answer.items() if name != "model_version"}))


@variation("response.encode")
def model_version_is_a_word(original: Any, answer: Answer) -> bytes:
    """Models have a version that is no number."""
    return bytes(original({**answer, "model_version": "2026-11-blue"} if "outputs" in answer else answer))


@variation("response.encode")
def an_id_nobody_sent(original: Any, answer: Answer) -> bytes:
    """An answer has an id of the server's own where the request has none."""
    return bytes(original({"id": "d4f1a2", **answer} if "outputs" in answer else answer))


@variation("response.build")
def outputs_in_reverse(original: Any, model: Any, request: InferRequest, produced: Mapping[str, Tensor]) -> Response:
    """Outputs come in the reverse of the order in which they are asked for, and the bytes with them."""
    found: Response = original(model, InferRequest(request.id, request.inputs, request.outputs[::-1]), produced)
    return found


@variation("metadata.server")
def metadata_with_more(original: Any) -> dict[str, Any]:
    """Server metadata list extensions and members that nobody knows."""
    found = original()
    return {**found, "extensions": ["sequence", *found["extensions"], "x-own"], "build": {"commit": "abc"}}


@variation("metadata.describe")
def model_metadata_with_more(original: Any, model: Any) -> dict[str, Any]:
    """Model metadata name a platform, versions and parameters of their own."""
    found: dict[str, Any] = original(model)
    inputs = [{**tensor, "parameters": {"content_type": "np"}} for tensor in found["inputs"]]
    return {**found, "platform": "onnxruntime_onnx", "inputs": inputs, "parameters": {}}


# --- headers and framing ---------------------------------------------------------------------------------------------


@variation("response.frame")
def inference_header_on_json_answers(original: Any, head: bytes, binary: Sequence[Any]) -> Response:
    """An answer without binary data has an inference header that equals its length."""
    found: Response = original(head, binary)
    found.headers[HEADER] = str(len(head))
    return found


@variation("response.frame")
def empty_outputs_without_inference_header(original: Any, head: bytes, binary: Sequence[Any]) -> Response:
    """An answer whose binary outputs are all empty is framed as JSON."""
    found: Response = original(head, [] if not any(map(len, binary)) else binary)
    return found


@variation("response.frame")
def headers_nobody_asked_for(original: Any, head: bytes, binary: Sequence[Any]) -> Response:
    """Answers carry headers of proxies and monitors."""
    found: Response = original(head, binary)
    found.headers.update({"Via": "1.1 proxy", "X-Request-Id": "7", "Server": "x", "Cache-Control": "no-store"})
    return found


@variation("response.frame")
def headers_in_capitals(original: Any, head: bytes, binary: Sequence[Any]) -> Response:
    """The names of headers are written in capitals."""
    found: Response = original(head, binary)
    found.raw_headers = [(name.upper(), value) for name, value in found.raw_headers]
    return found


@variation("response.frame", breaks="BIN-CL-CHUNKED")
def answers_are_chunked(original: Any, head: bytes, binary: Sequence[Any]) -> Response:
    """Answers are chunked and do not state their length."""
    found: Response = original(head, binary)
    del found.headers["content-length"]
    return found


@variation("response.frame", breaks=("BIN-CT-RES", "BIN-CT-JSON"))
def answers_without_content_type(original: Any, head: bytes, binary: Sequence[Any]) -> Response:
    """Answers do not say what they are."""
    found: Response = original(head, binary)
    del found.headers["content-type"]
    return found


@variation("response.frame")
def json_with_a_charset(original: Any, head: bytes, binary: Sequence[Any]) -> Response:
    """The content type of JSON names its charset."""
    found: Response = original(head, binary)
    if not binary:
        found.headers["content-type"] = "Application/JSON; charset=utf-8"
    return found


# --- refusals and connections ----------------------------------------------------------------------------------------


def _with_status(original: Any, status: int, arguments: tuple[Any, ...]) -> Response:
    message, given, *rest = arguments
    found: Response = original(message, status if given == 400 else given, *rest)
    return found


@variation("app.error")
def refused_with_422(original: Any, *arguments: Any) -> Response:
    """Bad requests are refused with status 422."""
    return _with_status(original, 422, arguments)


@variation("app.error")
def refused_with_404(original: Any, *arguments: Any) -> Response:
    """Bad requests are refused with status 404."""
    return _with_status(original, 404, arguments)


@variation("app.error", breaks="OIP-ERR-STATUS")
def refused_with_500(original: Any, *arguments: Any) -> Response:
    """Bad requests are refused with status 500."""
    return _with_status(original, 500, arguments)


@variation("app.error")
def errors_with_more(_: Any, message: str, status: int, headers: Mapping[str, str] | None = None) -> Response:
    """Errors have members beside the message, and letters beyond ASCII."""
    return JSONResponse({"code": status, "error": f"{message}; ü", "details": [], "trace": None}, status, headers)


@variation("app.error")
def errors_close_the_connection(original: Any, *arguments: Any) -> Response:
    """The connection is closed after an error, and the answer says so."""
    found: Response = original(*arguments)
    found.headers["Connection"] = "close"
    return found


@variation("response.frame")
def answers_close_the_connection(original: Any, head: bytes, binary: Sequence[Any]) -> Response:
    """The connection is closed after every answer, and the answer says so."""
    found: Response = original(head, binary)
    found.headers["Connection"] = "close"
    return found


@variation("app.Service.infer")
async def answers_come_late(original: Any, service: app.Service, http: Any) -> Response:
    """Every answer takes a moment."""
    await asyncio.sleep(0.002)
    found: Response = await original(service, http)
    return found


class _Dribbling(Response):
    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:  # noqa: ARG002
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        body = bytes(self.body)
        for start in range(0, min(len(body), 40), 4):
            await send({"type": "http.response.body", "body": body[start : start + 4], "more_body": True})
            await asyncio.sleep(0)
        await send({"type": "http.response.body", "body": body[40:]})


@variation("response.frame")
def answers_dribble(original: Any, head: bytes, binary: Sequence[Any]) -> Response:
    """The first bytes of an answer come in small pieces."""
    found: Response = original(head, binary)
    return _Dribbling(bytes(found.body), headers=dict(found.headers))


# --- classes ---------------------------------------------------------------------------------------------------------


def _class(row: Any, index: int, labels: Sequence[str], spelling: str) -> bytes:
    value = format(float(row[index]), spelling) if row.dtype.kind == "f" else str(row[index])
    label = f":{labels[index]}" if index < len(labels) else ""
    return f"{value}:{index}{label}".encode()


@variation("classification.class_text")
def class_values_have_six_decimals(_: Any, row: Any, index: int, labels: Sequence[str]) -> bytes:
    """The values of classes are written with six decimals."""
    return _class(row, index, labels, "f")


@variation("classification.class_text")
def class_values_have_an_exponent(_: Any, row: Any, index: int, labels: Sequence[str]) -> bytes:
    """The values of classes are written with an exponent."""
    return _class(row, index, labels, ".9e")


@variation("classification.top")
def ties_from_the_end(_: Any, row: Any, count: int) -> Any:
    """Of equal scores the last comes first."""
    order = np.argsort(row, kind="stable")[::-1]
    return order[:count]


@variation("classification.widened")
def sixteen_bit_floats_are_not_classified(original: Any, tensor: Tensor) -> Any:
    """Scores in FP16 and BF16 are refused."""
    if tensor.datatype in ("FP16", "BF16"):
        raise InferenceError(f"{tensor.datatype} cannot be classified")
    return original(tensor)


@variation("classification.classify")
def more_classes_than_there_are_is_refused(original: Any, tensor: Tensor, count: int, *rest: Any) -> Tensor:
    """A number above that of the classes is refused."""
    batch = tensor.shape[0] if rest[0] else 1
    if count > tensor.elements.size // max(batch, 1):
        raise InferenceError(f"there are no {count} classes")
    found: Tensor = original(tensor, count, *rest)
    return found


# --- the other reading of what is open -------------------------------------------------------------------------------


@variation("request.parse_outputs")
def listed_outputs_are_json_by_default(original: Any, model: Any, request: Any) -> list[OutputWish]:
    """A listed output without binary_data is JSON, whatever binary_data_output says."""
    listed = {entry["name"]: entry.get("parameters") or {} for entry in request.get("outputs") or []}
    return [
        OutputWish(wish.name, wish.binary, wish.classes)
        if wish.name not in listed or listed[wish.name].get("binary_data") is not None
        else OutputWish(wish.name, False, wish.classes)
        for wish in original(model, request)
    ]


@variation("members.whole")
def whole_numbers_may_have_a_point(original: Any, given: Any, name: str, least: int) -> Any:
    """A size of 16.0 is 16, and a number of classes of 2.0 is 2."""
    value = given.get(name)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return original(given, name, least)


@variation("members.whole")
def no_classes_means_the_tensor(original: Any, given: Any, name: str, least: int) -> Any:
    """A number of 0 classes turns classification off."""
    return None if name == "classification" and given.get(name) == 0 else original(given, name, least)


@variation("framing.BinaryData.finish", breaks="BIN-NEG-EXTRA")
def bytes_left_over_are_ignored(_: Any, binary: Any) -> None:
    """Bytes behind the last tensor of a request are ignored."""


@variation("raw.parse_body", breaks="RAW-STR-BODY")
def raw_strings_have_a_prefix(original: Any, model: Any, body: bytes) -> Any:
    """The body of a raw request to a model of one string is the string behind its length."""
    if len(model.inputs) != 1 or model.inputs[0].datatype != "BYTES":
        return original(model, body)
    if int.from_bytes(body[:4], "little") != len(body) - 4:
        raise InferenceError("the body is no string behind its length")
    return original(model, body[4:])


@variation("tensors.encode_json")
def nan_is_null(original: Any, tensor: Tensor) -> list[Any]:
    """NaN and infinity are null in JSON."""
    if tensor.datatype not in ("FP32", "FP64"):
        return list(original(tensor))
    return [item if np.isfinite(item) else None for item in tensor.elements.tolist()]


def load() -> dict[str, Fault]:
    """Return every variation by name."""
    return {value.name: value for value in globals().values() if isinstance(value, Fault)}
