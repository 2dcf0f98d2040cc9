"""Requests over HTTP that are wrong for rare values, names and options alone."""

from __future__ import annotations

import json
import struct
import time
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from tests.clients import steps
from tests.clients.alterations import Original, fault
from tests.clients.honest import tensors
from tests.clients.honest.caller import CallerRequest, RefusedError, Tensor
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


json_wish_lost = steps.DESCRIBED_OUTPUT.before(
    "CLIENT-SENDS-OVERRIDE", output=lambda output: replace(output, form=None) if output.form == "json" else output
).says("An output that is asked for as JSON has no `binary_data`, also where all others are to be binary.")


@fault("request.target", misses="CLIENT-SENDS-POST")
def version_as_it_is(_original: Original, asked: CallerRequest) -> str:
    """The version stands in the path as it is, with its slashes, percent signs and question marks."""
    version = "" if asked.version is None else f"/versions/{quote(asked.version, safe='%/?#&=+')}"
    return f"/v2/models/{in_path(asked.model)}{version}/infer"


numeric_versions_only = steps.TARGET.fail(
    "CLIENT-SENDS-POST",
    RefusedError("a version is a number"),
    when=lambda asked: asked.version is not None and (not asked.version.isdigit()),
).says("A version that is no number is an error of the client before anything is sent.")
json_alone_refused = steps.REQUEST.fail(
    "CLIENT-SENDS-VALUES",
    RefusedError("a body is bytes"),
    when=lambda asked: not asked.is_raw and (not any(tensor.is_binary for tensor in asked.inputs)),
).says("A request of JSON alone is an error of the client before anything is sent.")
ids_beyond_ascii_refused = steps.REQUEST.fail(
    "CLIENT-SENDS-OUTPUTS CLIENT-SENDS-VALUES",
    RefusedError("an id is ASCII"),
    when=lambda asked: asked.id is not None and (not asked.id.isascii()),
).says("An id beyond ASCII is an error of the client before anything is sent.")
id_stripped = steps.DOCUMENT.before(
    "CLIENT-SENDS-OUTPUTS", asked=lambda asked: replace(asked, id=asked.id and asked.id.strip())
).says("The id is sent without the blanks at its ends.")
id_of_digits_as_number = steps.DOCUMENT.after(
    "CLIENT-SENDS-MEMBERS",
    lambda made, asked: {**made, "id": int(asked.id)} if asked.id and asked.id.isdigit() else made,
).says("An id of digits is sent as a number.")
fp32_with_eight_digits = steps.JSON_ELEMENTS.after(
    "CLIENT-SENDS-VALUES", lambda made: [float(f"{one:.8g}") for one in made], datatypes="FP32"
).says("FP32 is written into the JSON with eight digits, where some values need nine.")
minus_zero_as_zero = steps.JSON_ELEMENTS.after(
    "CLIENT-SENDS-MINUS-ZERO", lambda made: [one + 0.0 for one in made], datatypes="FP32 FP64"
).says("-0.0 is written into the JSON without its sign.")


@fault("request.json_elements", misses="CLIENT-SENDS-VALUES CLIENT-SENDS-FP16", datatypes="FP16 BF16")
def half_subnormals_as_zero(_original: Original, tensor: Tensor) -> list[Any]:
    """FP16 and BF16 are sent as JSON, their subnormals as 0."""
    least = 2.0**-14 if tensor.datatype == "FP16" else 2.0**-126
    return [one if abs(one) >= least else 0.0 for one in tensors.elements(tensor.datatype, tensor.data)]


byte_order_mark_stripped = steps.JSON_ELEMENTS.after(
    "CLIENT-SENDS-VALUES", lambda made: [one.removeprefix("\ufeff") for one in made], datatypes="BYTES"
).says("A byte order mark at the beginning of an element of BYTES is not sent in JSON.")


@fault("request.joined", misses="CLIENT-SENDS-ORDER")
def names_of_digits_first(original: Original, text: bytes, pieces: list[bytes]) -> bytes:
    """The data of inputs whose names are numbers are sent first, in the order of these numbers."""
    inputs = [one["name"] for one in json.loads(text)["inputs"] if "data" not in one]
    numbers = [(not name.isdigit(), int(name) if name.isdigit() else 0) for name in inputs]
    order = sorted(range(len(pieces)), key=numbers.__getitem__)
    return bytes(original(text, [pieces[place] for place in order]))


large_bool_refused = steps.BINARY_DATA.fail(
    "CLIENT-SENDS-VALUES",
    RefusedError("too many arguments"),
    when=lambda tensor: len(tensor.data) > MAX_ARGUMENTS,
    datatypes="BOOL",
).says("A BOOL tensor of more elements than a call has arguments is an error of the client.")


@fault("request.joined", misses="CLIENT-SENDS-VALUES")
def tails_share_a_buffer(original: Original, text: bytes, pieces: list[bytes]) -> bytes:
    """The data of several large inputs are collected in one buffer for all requests that are made at once."""
    if len(pieces) < 2 or sum(map(len, pieces)) < struct.calcsize("4096i"):
        return bytes(original(text, pieces))
    shared_tail["last"] = b"".join(pieces)
    time.sleep(0.01)
    return text + shared_tail["last"]
