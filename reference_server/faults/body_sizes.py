"""Faults where the server calls a large body of one form wrong."""

from __future__ import annotations

from starlette.requests import Request

from reference_server.faults import steps
from reference_server.faults.edits import get_media_type
from reference_server.framing import HEADER

KIB, MIB = 1 << 10, 1 << 20


def _has_binary_data_over_64_kib(http: Request) -> bool:
    return HEADER in http.headers and int(http.headers.get("content-length", "0")) >= 64 * KIB


json_over_1_mib_is_called_bad = steps.PARSE_JSON.refuse("OIP-BODY-SIZE", lambda data: len(data) > MIB).says(
    "The server refuses JSON of more than 1 MiB with 400, and reads binary data of any size."
)
binary_data_over_64_kib_are_called_bad = steps.INFER.refuse("BIN-DATATYPES-I", _has_binary_data_over_64_kib).says(
    "The server refuses a body with binary data from 64 KiB on with 400, and reads JSON of any size."
)
json_forms_over_4_mib_are_called_bad = steps.INFER.refuse(
    "OIP-BODY-SIZE",
    lambda http, body: "form" in get_media_type(http) and HEADER not in http.headers and len(body) > 4 * MIB,
).says("The server refuses JSON of more than 4 MiB under the content type that curl sends for forms.")
grpc_typed_calls_over_1_mib_are_called_bad = steps.PARSE_CALL.refuse(
    "OIP-BODY-SIZE/grpc", lambda message: not message.raw_input_contents and message.ByteSize() > MIB
).says(
    "The server refuses typed contents of more than 1 MiB with INVALID_ARGUMENT, and reads raw contents of any size."
)
