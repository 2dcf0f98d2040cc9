"""Calls over gRPC in protobuf's text form: honest ones, and some with a fault each."""

from __future__ import annotations

from google.protobuf import text_format

from conformance.wire.client_request import ClientRequest
from conformance.wire.grpc_request import load_stubs

METHOD = "/inference.GRPCInferenceService/ModelInfer"


def call(text: str, method: str = METHOD) -> ClientRequest:
    """Return the call that protobuf's text form describes; the model is `m` where it names none."""
    named = text if "model_name" in text else f'model_name: "m" {text}'
    message = text_format.Parse(named, load_stubs().ModelInferRequest())
    return ClientRequest("GRPC", method, (), message.SerializeToString(deterministic=True))


def tensor(name: str, datatype: str, shape: str, contents: str = "", rest: str = "") -> str:
    filled = f"contents {{ {contents} }}" if contents else ""
    return f'inputs {{ name: "{name}" datatype: "{datatype}" shape: [{shape}] {filled} {rest} }}'


def raw(*entries: str) -> str:
    return " ".join(f'raw_input_contents: "{entry}"' for entry in entries)


def parameter(name: str, value: str) -> str:
    return f'parameters {{ key: "{name}" value {{ {value} }} }}'


INT32, I2 = tensor("A", "INT32", "2"), r"\004\003\002\001\376\377\377\377"
TEXT, B2 = tensor("B", "BYTES", "2"), r"\003\000\000\000abc\000\000\000\000"
BOOL, C3 = tensor("C", "BOOL", "3"), r"\001\000\001"


def asking(value: str) -> ClientRequest:
    """Return a call with a requested output whose parameter `classification` has this value."""
    return call(INT32 + raw(I2) + 'outputs { name: "X" ' + parameter("classification", value) + "}")


CLASSES = parameter("classification", "int64_param: 2")

HONEST_CALLS: list[tuple[str, ClientRequest]] = [
    ("raw", call(INT32 + raw(I2))),
    ("several", call(INT32 + TEXT + BOOL + raw(I2, B2, C3))),
    ("empty-raw", call(tensor("A", "FP32", "0") + INT32 + raw("", I2))),
    ("empty-typed", call(tensor("A", "FP32", "0"))),
    ("empty-half-precision", call(tensor("A", "FP16", "0"))),
    ("rank-0", call(tensor("A", "INT8", "", "int_contents: 5"))),
    ("rank-40", call(tensor("A", "INT8", ",".join(["1"] * 40), "int_contents: 5"))),
    ("half-precision", call(tensor("A", "FP16", "1") + tensor("B", "BF16", "1") + raw(r"\000\074", r"\200\077"))),
    ("bool", call(tensor("A", "BOOL", "2", "bool_contents: [true, false]"))),
    ("int8", call(tensor("A", "INT8", "2", "int_contents: [-128, 127]"))),
    ("uint16", call(tensor("A", "UINT16", "1", "uint_contents: 65535"))),
    ("int64", call(tensor("A", "INT64", "1", "int64_contents: 9007199254740993"))),
    ("uint64", call(tensor("A", "UINT64", "1", "uint64_contents: 18446744073709551615"))),
    ("fp32", call(tensor("A", "FP32", "3", "fp32_contents: [nan, inf, -0.0]"))),
    ("fp64", call(tensor("A", "FP64", "1,1", "fp64_contents: 1e308"))),
    ("texts", call(tensor("A", "BYTES", "2", r'bytes_contents: ["\377\000", ""]'))),
    ("no-inputs", call("")),
    ("classes", call(INT32 + raw(I2) + f'outputs {{ name: "X" {CLASSES} }}')),
    ("classes-0", asking("int64_param: 0")),
    ("outputs-id-version", call(INT32 + raw(I2) + 'outputs { name: "X" } id: "a" model_version: "2"')),
    ("own-parameters", call(INT32 + raw(I2) + parameter("priority", "uint64_param: 2"))),
    ("own-classification", call(INT32 + raw(I2) + parameter("classification", 'string_param: "secret"'))),
    ("shared-memory", call(tensor("A", "INT32", "2", "", parameter("shared_memory_region", 'string_param: "r"')))),
    (
        "shared-memory-beside-raw",
        call(tensor("S", "INT8", "2", "", parameter("shared_memory_region", 'string_param: "r"')) + TEXT + raw(B2)),
    ),
    ("stream", call(INT32 + raw(I2), METHOD.replace("ModelInfer", "ModelStreamInfer"))),
    ("same-sizes-in-another-order", call(INT32 + tensor("B", "UINT32", "2") + raw(I2, I2))),
]

# name, call, the requirements that it misses, without what is the same in all ids
WRONG_CALLS: list[tuple[str, ClientRequest, list[str]]] = [
    ("no-model", call('model_name: "" ' + INT32 + raw(I2)), ["POST"]),
    ("no-name", call(tensor("", "INT32", "2") + raw(I2)), ["MEMBERS"]),
    ("datatype-of-numpy", call(tensor("A", "int32", "2") + raw(I2)), ["MEMBERS"]),
    ("dimension-negative", call(tensor("A", "INT32", "-1") + raw(I2)), ["MEMBERS"]),
    ("output-without-name", call(INT32 + raw(I2) + "outputs { }"), ["MEMBERS"]),
    ("classes-a-string", asking("string_param: '2'"), ["CLASSIFICATION"]),
    ("classes-negative", asking("int64_param: -1"), ["CLASSIFICATION"]),
    ("classes-true", asking("bool_param: true"), ["CLASSIFICATION"]),
    ("classes-without-a-value", asking(""), ["CLASSIFICATION"]),
    ("classes-on-the-request", call(INT32 + raw(I2) + CLASSES), ["CLASSIFICATION-PLACE"]),
    ("classes-on-an-input", call(tensor("A", "INT32", "2", "", CLASSES) + raw(I2)), ["CLASSIFICATION-PLACE"]),
    ("field-of-another", call(tensor("A", "UINT32", "2", "int_contents: [1, 2]")), ["DATA"]),
    ("two-fields", call(tensor("A", "INT32", "1", "int_contents: 1 fp32_contents: 1")), ["DATA"]),
    ("too-few", call(tensor("A", "INT32", "3", "int_contents: [1, 2]")), ["DATA"]),
    ("too-many-texts", call(tensor("A", "BYTES", "1", "bytes_contents: ['a', 'b']")), ["DATA"]),
    ("no-contents", call(INT32), ["DATA"]),
    ("int8-out-of-range", call(tensor("A", "INT8", "1", "int_contents: 200")), ["ELEMENTS"]),
    ("uint8-out-of-range", call(tensor("A", "UINT8", "1", "uint_contents: 4294967240")), ["ELEMENTS"]),
    ("fp16-typed", call(tensor("A", "FP16", "1", "fp32_contents: 1")), ["FP16"]),
    ("bf16-typed", call(tensor("A", "BF16", "1", "int_contents: 1")), ["FP16"]),
    ("size-of-a-wider-datatype", call(tensor("A", "FP16", "2") + raw(I2)), ["SIZE"]),
    ("one-byte-short", call(INT32 + raw(I2[:-4])), ["SIZE"]),
    ("an-entry-too-few", call(INT32 + TEXT + raw(I2)), ["ORDER"]),
    ("an-entry-too-many", call(INT32 + raw(I2, I2)), ["ORDER"]),
    ("all-in-one-entry", call(INT32 + BOOL + raw(I2 + C3)), ["ORDER"]),
    ("entries-swapped", call(INT32 + BOOL + raw(C3, I2)), ["ORDER"]),
    ("texts-swapped", call(INT32 + TEXT + raw(B2, I2)), ["ORDER"]),
    ("texts-without-prefix", call(TEXT + raw("abc")), ["BYTES"]),
    ("texts-big-endian", call(TEXT + raw(r"\000\000\000\003abc\000\000\000\000")), ["BYTES"]),
    ("texts-too-few", call(tensor("B", "BYTES", "3") + raw(B2)), ["BYTES"]),
    ("bool-255", call(BOOL + raw(r"\377\000\377")), ["BOOL"]),
    ("bool-255-beside-another", call(BOOL + tensor("D", "INT8", "3") + raw(r"\377\000\377", C3)), ["BOOL"]),
    ("both-forms", call(tensor("A", "INT32", "1", "int_contents: 7") + raw(r"\007\000\000\000")), ["ONE-FORM"]),
    ("forms-mixed", call(tensor("D", "INT32", "1", "int_contents: 7") + TEXT + raw(B2)), ["ONE-FORM"]),
    (
        "forms-mixed-and-too-few",
        call(tensor("D", "INT8", "1", "int_contents: 7") + TEXT + INT32 + raw(B2)),
        ["ONE-FORM"],
    ),
]
