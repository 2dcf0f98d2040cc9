"""Clients that give their caller the same in another way, over both transports."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from tests.clients import steps
from tests.clients.alterations import Original, variation
from tests.clients.honest.caller import CallerRequest, Class, MalformedError, Tensor
from tests.clients.honest.lines import Client
from tests.clients.honest.tensors import elements, packed, strings


@variation("lines.shown")
def classes_divided(original: Original, asked: CallerRequest, outputs: Sequence[Tensor]) -> list[dict[str, Any]]:
    """Classes are given divided into value, index and label."""
    counts = {output.name for output in asked.outputs or () if output.classes is not None}
    return [
        divided(output) if output.name in counts and output.datatype == "BYTES" else said
        for output, said in zip(outputs, original(asked, outputs), strict=True)
    ]


def divided(output: Tensor) -> dict[str, Any]:
    """Return an output of classes, each with its parts."""
    found = []
    for one in strings(output.data):
        value, index, *label = one.decode().split(":", 2)
        made = Class(value, int(index), label[0] if label else None)
        found.append({name: part for name, part in vars(made).items() if part is not None})
    return {"name": output.name, "classes": found}


outputs_in_reverse = steps.SHOWN.before("", outputs=lambda outputs: outputs[::-1]).says(
    "The caller is given the outputs in reverse order."
)
outputs_in_order_of_names = steps.SHOWN.before(
    "", outputs=lambda outputs: sorted(outputs, key=lambda output: output.name)
).says("The caller is given the outputs in the order of their names.")
ids_untold = steps.RESULT.after("", lambda made: {name: value for name, value in made.items() if name != "id"}).says(
    "The id of an answer is not told."
)


@variation("lines.result")
def status_untold(original: Original, client: Client, one: CallerRequest, timeout: float) -> dict[str, Any]:
    """The status of an error is told in its message alone."""
    said = original(client, one, timeout)
    if "error" not in said:
        return dict(said)
    error = said["error"]
    return {"error": {"message": f"{error.get('status', '')} {error['message']}".strip()}}


@variation("lines.result")
def messages_in_other_words(original: Original, client: Client, one: CallerRequest, timeout: float) -> dict[str, Any]:
    """The server's message is told within a sentence of the client's."""
    said = original(client, one, timeout)
    if "error" in said:
        said["error"]["message"] = f"inference of {one.model} failed: {said['error']['message']} (see the log)"
    return dict(said)


only_few_datatypes = steps.RESULT.instead(
    "",
    lambda: {"cannot": "datatypes of 16 bits"},
    when=lambda one: any(tensor.datatype in ("FP16", "BF16", "INT16", "UINT16") for tensor in one.inputs),
).says("Datatypes of 16 bits are not known to the client, which says so.")


@variation("lines.result")
def unsigned_outputs_refused(original: Original, client: Client, one: CallerRequest, timeout: float) -> dict[str, Any]:
    """The client knows no unsigned integers of 16 bits or more, and refuses an answer with them."""
    said = original(client, one, timeout)
    is_unknown = any(output.get("datatype") in ("UINT16", "UINT32", "UINT64") for output in said.get("outputs", ()))
    return {"error": {"message": "a datatype that this client does not know"}} if is_unknown else dict(said)


no_requests_in_json = steps.RESULT.instead(
    "", lambda: {"cannot": "inputs as JSON"}, when=lambda one: any(not tensor.is_binary for tensor in one.inputs)
).says("The client sends binary data alone, and says so where JSON is asked for.")
no_raw_no_codings_and_no_ids = steps.RESULT.instead(
    "",
    lambda: {"cannot": "raw binary requests, content codings and ids"},
    when=lambda one: one.is_raw or one.coding or one.accepts or one.id is not None,
).says("The client has neither raw binary requests nor content codings nor ids, and says so.")


@variation("answer.expect_own", "grpc_answer.expect_own")
def missing_outputs_passed_over(original: Original, asked: CallerRequest, *others: object) -> None:
    """An output that was asked for and does not come is left out, without an error."""
    original(replace(asked, outputs=None), *others)


nul_in_json_refused = steps.PARSED.fail(
    "", MalformedError("a NUL in a string"), when=lambda text: b"\\u0000" in text
).says("An answer with NUL in a string of its JSON gives the caller an error: the parser has a limit.")


@variation("answer.from_json", datatypes="FP16 BF16")
def half_precision_in_json_refused(_original: Original, *_given: Any) -> bytes:
    """An answer with elements of FP16 or BF16 as JSON gives the caller an error."""
    raise MalformedError("FP16 or BF16 as JSON")


@variation("lines.shown_tensor", datatypes="FP32 FP64")
def payloads_of_nan_lost(original: Original, output: Tensor) -> Any:
    """The caller is given every NaN as the one of the platform."""
    found = [float("nan") if math.isnan(one) else one for one in elements(output.datatype, output.data)]
    return original(replace(output, data=packed(output.datatype, found)))


@variation("lines.shown")
def no_accessor_for_bytes(original: Original, asked: CallerRequest, outputs: Sequence[Tensor]) -> list[dict[str, Any]]:
    """The client has no way to give its caller the elements of BYTES, and says so of each output."""
    return [
        {"name": output.name, "cannot": "no accessor for BYTES"} if output.datatype == "BYTES" else said
        for output, said in zip(outputs, original(asked, outputs), strict=True)
    ]


@variation("lines.tensor", "lines.result")
def json_alone(original: Original, *given: Any) -> Any:
    """The client sends JSON or typed contents alone, and gives its caller an error for what they cannot carry."""
    made = original(*given)
    if isinstance(made, Tensor):
        return replace(made, form="json")
    is_raw = given[1].is_raw
    return {"error": {"message": made["cannot"]}} if "cannot" in made and not is_raw else made


NUMBERS = {"UNKNOWN": 2, "INVALID_ARGUMENT": 3, "NOT_FOUND": 5, "UNIMPLEMENTED": 12, "DATA_LOSS": 15}

codes_in_other_letters = steps.RESULT.after(
    "", lambda made: told_code(made, lambda name: name.title().replace("_", ""))
).says("The code of a call is told as some libraries spell it: NotFound for NOT_FOUND.")
codes_as_numbers = steps.RESULT.after("", lambda made: told_code(made, lambda name: NUMBERS.get(name, name))).says(
    "The code of a call is told as its number, and nothing else is told of an error without a message."
)


def told_code(said: dict[str, Any], spelled: Callable[[str], Any]) -> dict[str, Any]:
    """Return a result with the status in another spelling, also where the message is that status."""
    if "error" not in said or "status" not in said["error"]:
        return said
    error = said["error"]
    told = spelled(error["status"])
    message = "failed" if error["message"] == error["status"] else error["message"]
    return {"error": {"message": message, "status": told}}
