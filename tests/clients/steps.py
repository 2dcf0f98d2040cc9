"""The steps of the honest client under the names by which faults and variations replace them.

An alteration is a row, made as the rows of `reference_server.faults.families` are:

    json_with_a_comma_at_the_end = WRITTEN.after("CLIENT-SENDS-JSON", lambda made: made[:-1] + b",}").says(
        "The JSON has a comma behind its last member."
    )

A variation misses nothing, and has "" there. What needs more than an expression is a function (`alterations`).
"""

from __future__ import annotations

from typing import Any, NoReturn

from reference_server.faults.families import Effect, Step
from tests.clients.alterations import alteration


class ClientStep(Step):
    """The name of a step of the client, and the families of alterations that replace it.

    The options of a row are those of `alteration`.
    """

    __slots__ = ()

    def fail(self, misses: str, error: Exception, when: Any, **options: Any) -> Any:
        """The client gives its caller an error if `when` holds."""

        def raise_error() -> NoReturn:
            raise type(error)(*error.args)

        return self._make_fault(misses, {"when": when, **options}, instead=raise_error)

    def _make_fault(self, breaks: Any, options: dict[str, Any], **functions: Any) -> Any:
        effect = Effect(options.pop("when", None), **functions)

        def row(original: Any, *given: Any, **named: Any) -> Any:
            return effect.run(original, given, named)

        return alteration(self, misses=breaks, **options)(row)


ANNOUNCED_SIZE = ClientStep("answer.announced_size")
CUT = ClientStep("answer.cut")
DECODED = ClientStep("answer.decoded")
FLATTENED = ClientStep("answer.flattened")
FROM_BINARY = ClientStep("answer.from_binary")
FROM_JSON = ClientStep("answer.from_json")
ANSWER_JSON_LENGTH = ClientStep("answer.json_length")
PARSED = ClientStep("answer.parsed")
READ_OUTPUTS = ClientStep("answer.read_outputs")
IS_USABLE = ClientStep("connection.Connection.is_usable")
LEFT = ClientStep("connection.Connection.left")
FIELD_NAME = ClientStep("connection.field_name")
READ_CHUNKS = ClientStep("connection.read_chunks")
SPELLED = ClientStep("connection.spelled")
RAW_IN_ORDER = ClientStep("grpc_answer.in_order")
READ_RAW_OUTPUT = ClientStep("grpc_answer.read_output")
READ_CALL_OUTPUTS = ClientStep("grpc_answer.read_outputs")
CALL = ClientStep("grpc_client.GrpcClient.call")
DEADLINE = ClientStep("grpc_client.deadline")
CALL_REFUSED = ClientStep("grpc_client.refused")
CONTENTS = ClientStep("grpc_request.contents")
CONTENTS_FIELD = ClientStep("grpc_request.contents_field")
CALL_INPUT = ClientStep("grpc_request.described_input")
CALL_OUTPUT = ClientStep("grpc_request.described_output")
ENTRIES = ClientStep("grpc_request.entries")
ENTRY = ClientStep("grpc_request.entry")
NAMED = ClientStep("grpc_request.named")
PARAMETER = ClientStep("grpc_request.parameter")
CALL_REQUEST = ClientStep("grpc_request.request")
SHAPE = ClientStep("grpc_request.shape")
TYPED_ELEMENTS = ClientStep("grpc_request.typed_elements")
RESULT = ClientStep("lines.result")
SHOWN = ClientStep("lines.shown")
SHOWN_TENSOR = ClientStep("lines.shown_tensor")
ARRANGED = ClientStep("request.arranged")
BINARY_DATA = ClientStep("request.binary_data")
CODED = ClientStep("request.coded")
DATA_SIZE = ClientStep("request.data_size")
DESCRIBED = ClientStep("request.described")
DESCRIBED_INPUT = ClientStep("request.described_input")
DESCRIBED_OUTPUT = ClientStep("request.described_output")
DOCUMENT = ClientStep("request.document")
FOR_ALL_OUTPUTS = ClientStep("request.for_all_outputs")
IN_ORDER = ClientStep("request.in_order")
IN_PATH = ClientStep("request.in_path")
JOINED = ClientStep("request.joined")
JSON_ELEMENTS = ClientStep("request.json_elements")
JSON_LENGTH = ClientStep("request.json_length")
METHOD = ClientStep("request.method")
RAW_DATA = ClientStep("request.raw_data")
REQUEST = ClientStep("request.request")
TARGET = ClientStep("request.target")
WRITTEN = ClientStep("request.written")
