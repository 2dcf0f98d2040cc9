"""Requests over HTTP that are wrong for rare values, names and options alone."""

from __future__ import annotations

import json
import struct
import time
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from tests.clients.alterations import Original, fault
from tests.clients.honest import tensors
from tests.clients.honest.caller import CallerRequest, RefusedError, RequestedOutput, Tensor
from tests.clients.honest.request import in_path

MAX_ARGUMENTS = 120_000
kept_parameters: dict[str, Any] = {}
shared_tail: dict[str, bytes] = {}


@fault("request.document", misses="CLIENT-SENDS-OUTPUTS")
def parameters_kept(original: Original, asked: CallerRequest) -> dict[str, Any]:
    """The parameters of a request stay for all later ones that have none of their own."""
    made: dict[str, Any] = original(asked)
    kept_parameters.update(made.get("parameters", {}))
    return {**made, "parameters": dict(kept_parameters)} if kept_parameters else made


@fault("request.described_output", misses="CLIENT-SENDS-OVERRIDE")
def json_wish_lost(original: Original, output: RequestedOutput) -> dict[str, Any]:
    """An output that is asked for as JSON has no `binary_data`, also where all others are to be binary."""
    return dict(original(replace(output, form=None) if output.form == "json" else output))


@fault("request.target", misses="CLIENT-SENDS-POST")
def version_as_it_is(_original: Original, asked: CallerRequest) -> str:
    """The version stands in the path as it is, with its slashes, percent signs and question marks."""
    version = "" if asked.version is None else f"/versions/{quote(asked.version, safe='%/?#&=+')}"
    return f"/v2/models/{in_path(asked.model)}{version}/infer"


@fault("request.target", misses="CLIENT-SENDS-POST")
def numeric_versions_only(original: Original, asked: CallerRequest) -> str:
    """A version that is no number is an error of the client before anything is sent."""
    if asked.version is not None and not asked.version.isdigit():
        raise RefusedError("a version is a number")
    return str(original(asked))


@fault("request.request", misses="CLIENT-SENDS-VALUES")
def json_alone_refused(original: Original, asked: CallerRequest) -> Any:
    """A request of JSON alone is an error of the client before anything is sent."""
    if not asked.is_raw and not any(tensor.is_binary for tensor in asked.inputs):
        raise RefusedError("a body is bytes")
    return original(asked)


@fault("request.request", misses="CLIENT-SENDS-OUTPUTS CLIENT-SENDS-VALUES")
def ids_beyond_ascii_refused(original: Original, asked: CallerRequest) -> Any:
    """An id beyond ASCII is an error of the client before anything is sent."""
    if asked.id is not None and not asked.id.isascii():
        raise RefusedError("an id is ASCII")
    return original(asked)


@fault("request.document", misses="CLIENT-SENDS-OUTPUTS")
def id_stripped(original: Original, asked: CallerRequest) -> dict[str, Any]:
    """The id is sent without the blanks at its ends."""
    return dict(original(replace(asked, id=asked.id and asked.id.strip())))


@fault("request.document", misses="CLIENT-SENDS-MEMBERS")
def id_of_digits_as_number(original: Original, asked: CallerRequest) -> dict[str, Any]:
    """An id of digits is sent as a number."""
    made = dict(original(asked))
    return {**made, "id": int(asked.id)} if asked.id and asked.id.isdigit() else made


@fault("request.json_elements", misses="CLIENT-SENDS-VALUES", datatypes="FP32")
def fp32_with_eight_digits(original: Original, tensor: Tensor) -> list[Any]:
    """FP32 is written into the JSON with eight digits, where some values need nine."""
    return [float(f"{one:.8g}") for one in original(tensor)]


@fault("request.json_elements", misses="CLIENT-SENDS-MINUS-ZERO", datatypes="FP32 FP64")
def minus_zero_as_zero(original: Original, tensor: Tensor) -> list[Any]:
    """-0.0 is written into the JSON without its sign."""
    return [one + 0.0 for one in original(tensor)]


@fault("request.json_elements", misses="CLIENT-SENDS-VALUES CLIENT-SENDS-FP16", datatypes="FP16 BF16")
def half_subnormals_as_zero(_original: Original, tensor: Tensor) -> list[Any]:
    """FP16 and BF16 are sent as JSON, their subnormals as 0."""
    least = 2.0**-14 if tensor.datatype == "FP16" else 2.0**-126
    return [one if abs(one) >= least else 0.0 for one in tensors.elements(tensor.datatype, tensor.data)]


@fault("request.json_elements", misses="CLIENT-SENDS-VALUES", datatypes="BYTES")
def byte_order_mark_stripped(original: Original, tensor: Tensor) -> list[Any]:
    """A byte order mark at the beginning of an element of BYTES is not sent in JSON."""
    return [one.removeprefix("\ufeff") for one in original(tensor)]


@fault("request.joined", misses="CLIENT-SENDS-ORDER")
def names_of_digits_first(original: Original, text: bytes, pieces: list[bytes]) -> bytes:
    """The data of inputs whose names are numbers are sent first, in the order of these numbers."""
    inputs = [one["name"] for one in json.loads(text)["inputs"] if "data" not in one]
    numbers = [(not name.isdigit(), int(name) if name.isdigit() else 0) for name in inputs]
    order = sorted(range(len(pieces)), key=numbers.__getitem__)
    return bytes(original(text, [pieces[place] for place in order]))


@fault("request.binary_data", misses="CLIENT-SENDS-VALUES", datatypes="BOOL")
def large_bool_refused(original: Original, tensor: Tensor) -> bytes:
    """A BOOL tensor of more elements than a call has arguments is an error of the client."""
    if len(tensor.data) > MAX_ARGUMENTS:
        raise RefusedError("too many arguments")
    return bytes(original(tensor))


@fault("request.joined", misses="CLIENT-SENDS-VALUES")
def tails_share_a_buffer(original: Original, text: bytes, pieces: list[bytes]) -> bytes:
    """The data of several large inputs are collected in one buffer for all requests that are made at once."""
    if len(pieces) < 2 or sum(map(len, pieces)) < struct.calcsize("4096i"):
        return bytes(original(text, pieces))
    shared_tail["last"] = b"".join(pieces)
    time.sleep(0.01)
    return text + shared_tail["last"]
