"""The lines of the adapter protocol: writes commands, and parses answers after validation by `adapter.schema.json`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cache
from typing import TYPE_CHECKING, Any

import jsonschema_rs

from conformance.clients.inference import (
    PROTOCOL,
    Class,
    ClientOutput,
    Inference,
    Introduction,
    Result,
    parse_result,
    tensor_to_dict,
)
from conformance.clients.line_process import AdapterError
from conformance.spec import data_files
from conformance.spec.text import escape_text

if TYPE_CHECKING:
    from jsonschema import ValidationError

SCHEMA = "adapter.schema.json"
MAX_LINE_CHARS = 120  # of a line quoted in an error message
MAX_TEXT_CHARS = 200  # of each text with which an adapter describes its client


def make_hello(seq: int) -> bytes:
    """Return the `hello` command, the first line that the suite sends to an adapter."""
    return _format_line({"seq": seq, "command": "hello", "protocol": PROTOCOL})


def make_infer(
    seq: int, transport: str, address: str, inferences: Sequence[Inference], *, at_once: bool, timeout: float
) -> bytes:
    """Return the `infer` command, which requests inferences; see `Adapter.infer` for the parameters."""
    call_options = {"transport": transport, "address": address, "timeout_s": timeout, "at_once": at_once}
    inference_entries = [inference.to_dict() for inference in inferences]
    return _format_line({"seq": seq, "command": "infer", **call_options, "inferences": inference_entries})


def parse_introduction(line: bytes, seq: int) -> Introduction:
    """Parse the answer to `hello`, which describes the client.

    Raises AdapterError: the line is not a valid answer to `hello`.
    """
    client = _parse_answer(line, seq, "introduction")["client"]
    name, version, language = (
        escape_text(client.get(key, ""), MAX_TEXT_CHARS) for key in ("name", "version", "language")
    )
    return Introduction(name, version, language, tuple(dict.fromkeys(client["transports"])))


def parse_results(line: bytes, seq: int, count: int, elapsed: float) -> list[Result]:
    """Parse the answer to `infer`: one result for each inference.

    `line`: the line without its newline.
    `seq`: the sequence number of the `infer` command.
    `elapsed`: seconds from the command to its answer; every result gets this value.

    Raises AdapterError: the line is not a valid answer to that command.
    """
    entries = _parse_answer(line, seq, "results")["results"]
    if len(entries) != count:
        raise AdapterError(f"line {seq} of the adapter has {len(entries)} results for {count} inferences")
    try:
        return [parse_result(one, elapsed) for one in entries]
    except (ValueError, TypeError, LookupError, OverflowError) as error:
        raise AdapterError(f"line {seq} of the adapter has an invalid tensor: {escape_text(str(error))}") from None


def make_results_line(seq: int, results: Sequence[Result]) -> bytes:
    """Convert parsed results back to the answer line that an adapter sends."""
    return _format_line({"seq": seq, "results": [_build_result_entry(result) for result in results]})


def _build_result_entry(result: Result) -> dict[str, Any]:
    if result.cannot:
        return {"cannot": result.cannot}
    if result.outputs is None:
        return {"error": {"message": result.error or "", **({"status": result.status} if result.status else {})}}
    outputs = [_build_output_entry(output) for output in result.outputs]
    return {"outputs": outputs, **({"id": result.id} if result.id is not None else {})}


def _build_output_entry(output: ClientOutput) -> dict[str, Any]:
    if output.tensor is not None:
        return tensor_to_dict(output.tensor)
    if output.classes is not None:
        return {"name": output.name, "classes": [_build_class_entry(item) for item in output.classes]}
    return {"name": output.name, "cannot": output.cannot} if output.cannot else dict(output.unread)


def _build_class_entry(item: Class) -> dict[str, Any]:
    return {name: value for name, value in asdict(item).items() if value is not None}


def _parse_answer(line: bytes, seq: int, kind: str) -> Mapping[str, Any]:
    """Parse an answer line, and validate it against the schema's definition `kind` (`introduction` or `results`).

    Raises AdapterError: the line is not a valid answer, or has another sequence number.
    """
    try:
        answer = json.loads(line)
    except (ValueError, RecursionError):
        shown = escape_text(line[: MAX_LINE_CHARS + 1].decode("utf-8", "replace"), MAX_LINE_CHARS)
        raise AdapterError(
            f"line {seq} of the adapter's standard output is not JSON: {shown!r}; "
            "redirect what libraries print to standard error"
        ) from None
    error = None if _is_valid(answer, kind) else _find_schema_error(answer, kind)
    if error is not None:
        where = f"{escape_text(error.json_path, MAX_LINE_CHARS)}: {escape_text(error.message, MAX_LINE_CHARS)}"
        raise AdapterError(f"line {seq} of the adapter does not fit schemas/{SCHEMA} ({kind}) at {where}")
    if answer["seq"] != seq:
        raise AdapterError(f"line {seq} of the adapter answers command {answer['seq']} instead of {seq}")
    return dict(answer)


def _is_valid(answer: Any, kind: str) -> bool:
    """Say whether an answer certainly fits the schema; if not, `_find_schema_error` decides, which takes far longer."""
    try:
        return _load_validator(kind).is_valid(answer)
    except ValueError:  # text that cannot be encoded as UTF-8
        return False


def _find_schema_error(answer: Any, kind: str) -> ValidationError | None:
    from jsonschema import Draft202012Validator  # slow to import, and needed only for a wrong answer
    from jsonschema.exceptions import best_match

    error: ValidationError | None = best_match(Draft202012Validator(_load_schema(kind)).iter_errors(answer))
    return error


@cache
def _load_validator(kind: str) -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator(_load_schema(kind))


def _load_schema(kind: str) -> dict[str, Any]:
    schema = json.loads((data_files.find_folder("schemas") / SCHEMA).read_text(encoding="utf-8"))
    return {"$defs": schema["$defs"], "$ref": f"#/$defs/{kind}"}


def _format_line(command: Mapping[str, Any]) -> bytes:
    return json.dumps(command, separators=(",", ":")).encode("ascii") + b"\n"
