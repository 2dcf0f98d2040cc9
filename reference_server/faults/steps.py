"""The steps of the server that several modules of faults replace."""

from __future__ import annotations

from reference_server.faults.families import EncodeOutput, Step

INFER, INFER_CODED = Step("app.Service.infer"), Step("app.Service.infer_coded")
READ_BODY, FIND_MODEL = Step("app.Service.read_body"), Step("app.Service.find_model")
MODEL_METADATA, MODEL_READY = Step("app.Service.model_metadata"), Step("app.Service.model_ready")
MAKE_ERROR, ANSWER_REFUSAL = Step("app.make_error"), Step("app.answer_refusal")
READ_BYTES, DECODE_BODY, ENCODE_BODY = Step("http_body.read"), Step("http_body.decode"), Step("http_body.encode")
DATA_RECEIVED = Step("http_protocol.OipHttpProtocol.data_received")
CONNECTION_MADE = Step("http_protocol.OipHttpProtocol.connection_made")
PARSE, PARSE_RAW, PARSE_BODY = Step("request.parse"), Step("request.parse_raw"), Step("request.parse_body")
PARSE_INPUTS, PARSE_INPUT = Step("request.parse_inputs"), Step("request.parse_input")
PARSE_OUTPUTS, DEDUCE_SHAPE = Step("request.parse_outputs"), Step("request.deduce_shape")
PARSE_LENGTH, PARSE_OBJECT = Step("framing.parse_json_length"), Step("strict_json.parse_object")
GET_SHAPE, GET_INTEGER, GET_FLAG = Step("members.get_shape"), Step("members.get_integer"), Step("members.get_flag")
TAKE, BINARY_DATA = Step("framing.BinaryData.take"), Step("framing.BinaryData.__init__")
DECODE_BINARY, ENCODE_BINARY = Step("tensors.decode_binary"), Step("tensors.encode_binary")
DECODE_JSON, ENCODE_JSON = Step("tensors.decode_json"), Step("tensors.encode_json")
SPLIT_ELEMENTS, JOIN_ELEMENTS = Step("tensors.split_elements"), Step("tensors.join_elements")
FLATTEN, DECODE_TEXT = Step("tensors.flatten"), Step("tensors.decode_text")
RUN, CHECK_SHAPE = Step("models.Model.run"), Step("models.Model.check_shape")
BUILD, ENCODE, ENCODE_OUTPUT = Step("response.build"), Step("response.encode"), EncodeOutput("response.encode_output")
FRAME, JOIN = Step("response.frame"), Step("response.join")
CLASSIFY, FORMAT_CLASS = Step("classification.classify"), Step("classification.format_class")
FIND_TOP_INDICES = Step("classification.find_top_indices")
DESCRIBE_SERVER, DESCRIBE_MODEL = Step("metadata.describe_server"), Step("metadata.describe_model")

# --- the same over gRPC; their modules are imported when a fault is switched on ---------------------------------------

PARSE_CALL, LIST_RAW_CONTENTS = Step("grpc_request.parse"), Step("grpc_request.list_raw_contents")
PARSE_CALL_INPUTS, PARSE_CALL_INPUT = Step("grpc_request.parse_inputs"), Step("grpc_request.parse_input")
PARSE_CALL_OUTPUTS, GET_CLASS_COUNT = Step("grpc_request.parse_outputs"), Step("grpc_request.get_class_count")
DECODE_TYPED, ENCODE_TYPED = Step("grpc_contents.decode_typed"), Step("grpc_contents.encode_typed")
DECODE_RAW, ENCODE_RAW = Step("grpc_contents.decode_raw"), Step("grpc_contents.encode_raw")
CONVERT_ELEMENTS, ADD_RAW = Step("grpc_contents.convert_elements"), Step("grpc_response.add_raw")
BUILD_RESPONSE, CLASSIFY_OUTPUT = Step("grpc_response.build"), Step("grpc_response.classify_output")
ANSWER_CALL, GET_STATUS = Step("grpc_server.answer"), Step("grpc_server.get_status")
MAKE_HANDLER, FIND_HANDLER = Step("grpc_server.make_handler"), Step("grpc_server.Service.service")
MODEL_INFER = Step("grpc_methods.model_infer")
