"""Faults in lists of outputs, in outputs without elements, and in values that JSON cannot represent."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from reference_server.faults import steps
from reference_server.faults.edits import dump_json, has_listed_objects
from reference_server.faults.input_conflicts import drop_duplicates
from reference_server.faults.json_text import write_as_they_are

requests_without_a_list_of_outputs_refused = steps.PARSE_OUTPUTS.refuse(
    (), lambda request: "outputs" not in request, broad=True
).says("The server refuses a request that does not list its outputs.")
repeated_outputs_answered_once = steps.PARSE_OUTPUTS.before(
    "OIP-TWICE",
    request=lambda request: request | {"outputs": drop_duplicates(request["outputs"])},
    when=lambda request: has_listed_objects(request, "outputs"),
).says("The server returns an output once if the request lists it twice.")
outputs_without_elements_have_neither_data_nor_size = steps.ENCODE_OUTPUT.after(
    (),
    lambda part: ({member: part[0][member] for member in ("name", "datatype", "shape")}, None),
    when=lambda tensor: not tensor.elements.size,
    broad=True,
).says("The server writes an output without elements without `data` and without binary_data_size.")

# --- values that have no form in JSON ---------------------------------------------------------------------------------


def _end_at_nan(answer: Mapping[str, Any]) -> bytes:
    return re.split(r"(?<=[\[,])-?(?:NaN|Infinity)\b", dump_json(answer))[0].encode()


json_ends_where_nan_would_stand = write_as_they_are("OIP-JSON", _end_at_nan).says(
    "The server stops writing JSON at NaN or infinity, and sends the incomplete JSON."
)
error_text_not_escaped = steps.MAKE_ERROR.instead(
    ("OIP-ERROR", "OIP-ERROR-ELSEWHERE"),
    lambda message, status: Response(f'{{ "error" : "{message}" }}'.encode(), status, media_type="application/json"),
).says("The server writes an error message between quotes without escaping any character.")
