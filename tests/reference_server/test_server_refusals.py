"""Refusals with the exact words that the client gets; those of the golden cases are in tests/fixtures."""

from __future__ import annotations

import json

import pytest

from tests.support.serving import Answer, Server, make_infer_request, read_answer

BINARY_1 = '{"inputs":[{"name":"INPUT","shape":[2],"datatype":"INT32","parameters":{"binary_data_size":8}}]}'
FP32_4 = '"shape":[4],"datatype":"FP32"'


def message(answer: Answer) -> str:
    """Return the message of a well-formed refusal."""
    assert answer.status == 400
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["content-length"] == str(len(answer.body))
    error = json.loads(answer.body)
    assert list(error) == ["error"]
    return str(error["error"])


# Inference-Header-Content-Length, message; the body has 104 bytes, 96 of them JSON
HEADERS = [
    ("abc", 'Inference-Header-Content-Length is "abc", expected a number of bytes in decimal digits'),
    ("96, 96", 'Inference-Header-Content-Length is "96, 96", expected a number of bytes in decimal digits'),
    ("\xb2", 'Inference-Header-Content-Length is "\\u00b2", expected a number of bytes in decimal digits'),
    (
        "9" * 400,
        'Inference-Header-Content-Length is "' + "9" * 59 + "..., expected a number of bytes in decimal digits",
    ),
    ("105", "Inference-Header-Content-Length is 105, but the body has 104 bytes"),
    (None, "not JSON: Extra data at character 96 (without Inference-Header-Content-Length the whole body must be JSON; "
     "binary data need this header)"),
]  # fmt: skip


@pytest.mark.parametrize(("header", "expected"), HEADERS)
def test_header(server: Server, header: str | None, expected: str) -> None:
    assert message(server.infer("identity_int32", BINARY_1.encode() + b"\1\0\0\0\2\0\0\0", header)) == expected


def test_header_twice(server: Server) -> None:
    octets = make_infer_request("identity_int32", BINARY_1.encode() + bytes(8), "96")
    once_more = b"\r\ninference-header-content-length: 97\r\nHost:"
    expected = 'Inference-Header-Content-Length occurs twice, as "97" and "96"'
    assert message(server.exchange(octets.replace(b"\r\nHost:", once_more))) == expected
    assert server.exchange(octets.replace(b"\r\nHost:", once_more.replace(b"97", b"96"))).status == 200


# what the whole body is, message
NOT_REQUESTS = [
    (b"", "not JSON: Expecting value at character 0"),
    (b"7", "the JSON must be an object, not 7"),
    (b"\xef\xbb\xbf{}", "not JSON: Unexpected UTF-8 BOM (decode using utf-8-sig) at character 0"),
    (b'{"id":"\xff"}', "the JSON is not UTF-8 at byte 7"),
    (b'{"a":NaN}', "not JSON: NaN is not a JSON number"),
    (b'{"a":-Infinity}', "not JSON: -Infinity is not a JSON number"),
    (b'{"a":' + b"9" * 5000 + b"}", "the JSON has an integer with too many digits"),
    (b'{"id":"1","id":"1"}', 'the JSON has the member "id" twice in one object'),
    (b'{"a":' + b"[" * 32 + b"]" * 32 + b"}", "the JSON is nested more than 32 levels deep"),
    (b'{"a":' + b"[" * 200_000 + b"]" * 200_000 + b"}", "the JSON is nested more than 32 levels deep"),
    (b'{"a":' * 200_000, "the JSON is nested more than 32 levels deep"),
    (b'{"a":' + b"[" * 31 + b"]" * 31 + b"}", "inputs is missing"),
    (b'{"id":7}', "id must be a string, not 7"),
    (b'{"id":"\\ud800"}', 'id is "\\ud800", which contains half a surrogate pair'),
    (b'{"inputs":null}', "inputs is missing"),
    (b'{"inputs":{}}', "inputs must be an array, not an object"),
    (b'{"inputs":[1]}', "inputs[0] must be an object, not 1"),
]


@pytest.mark.parametrize(("body", "expected"), NOT_REQUESTS, ids=range(len(NOT_REQUESTS)))
def test_json(server: Server, body: bytes, expected: str) -> None:
    assert message(server.infer("identity_int32", body, str(len(body)) if body else None)).startswith(expected)


# (model, inputs, message)
INPUTS = [
    ("multi", "{}", "inputs[0]: name is missing"),
    ("multi", '{"name":3}', "inputs[0]: name must be a string, not 3"),
    ("multi", '{"name":"X\\n"}',
     "inputs[0] 'X\\n': the model has no such input; it has 'IN_INT64', 'IN_BOOL', 'IN_FP32', "
     "'IN_BYTES'"),
    ("multi", '{"name":"IN_FP32"}', "inputs[0] 'IN_FP32': shape is missing"),
    ("multi", '{"name":"IN_FP32","shape":4}', "inputs[0] 'IN_FP32': shape must be an array, not 4"),
    ("multi", '{"name":"IN_FP32","shape":[true]}',
     "inputs[0] 'IN_FP32': shape[0] must be an integer from 0 to 2^63 - 1, not true"),
    ("multi", '{"name":"IN_FP32","shape":[4.0]}',
     "inputs[0] 'IN_FP32': shape[0] must be an integer from 0 to 2^63 - 1, not 4.0"),
    ("multi", '{"name":"IN_FP32","shape":[9223372036854775808]}',
     "inputs[0] 'IN_FP32': shape[0] must be an integer from 0 to 2^63 - 1, not 9223372036854775808"),
    ("multi", '{"name":"IN_FP32","shape":[4]}', "inputs[0] 'IN_FP32': datatype is missing"),
    ("multi", f'{{"name":"IN_FP32",{FP32_4},"parameters":[]}}',
     "inputs[0] 'IN_FP32': parameters must be an object, not an array"),
    ("multi", f'{{"name":"IN_FP32",{FP32_4},"data":[1,2,3,4]}},{{"name":"IN_FP32",{FP32_4},"data":[1,2,3,4]}}',
     "inputs[1] 'IN_FP32': the request has this input twice"),
    ("batching", '{"name":"INPUT","shape":[0,3],"datatype":"INT32","data":[]}',
     "inputs[0] 'INPUT': shape is [0, 3], but the model takes a batch of 1 to 64"),
    ("batching", '{"name":"INPUT","shape":[65,3],"datatype":"INT32","data":[]}',
     "inputs[0] 'INPUT': shape is [65, 3], but the model takes a batch of 1 to 64"),
    ("rank2", '{"name":"INPUT","shape":[4294967296,4294967296],"datatype":"INT32","data":[]}',
     "inputs[0] 'INPUT': shape is [4294967296, 4294967296], which is more than 1099511627776 elements"),
    ("add_sub", '{"name":"A","shape":[1],"datatype":"INT32","data":[1]},{"name":"B","shape":[2],"datatype":"INT32",'
     '"data":[1,2]}', "inputs 'A' and 'B' must have the same shape, not [1] and [2]"),
    ("emit", '{"name":"COUNTS","shape":[2],"datatype":"INT32","data":[10001,0]}',
     "input 'COUNTS' is [10001, 0], but each count must be 0 to 10000"),
    ("documented_scores", '{"name":"input0","shape":[2,2],"datatype":"UINT32","data":[0,1,2,3]}',
     "input 'input0' must have elements from 1 to 4, not [0, 1, 2, 3]"),
]  # fmt: skip


@pytest.mark.parametrize(("model", "inputs", "expected"), INPUTS, ids=range(len(INPUTS)))
def test_inputs(server: Server, model: str, inputs: str, expected: str) -> None:
    body = f'{{"inputs":[{inputs}]}}'.encode()
    assert message(server.infer(model, body, str(len(body)))) == expected


# (datatype, shape, data, what the message says after the input)
DATA = [
    ("INT32", "[2]", "7", "data must be an array, not 7"),
    ("INT32", "[1]", "[[1]]", "data element 0 is an array, expected an integer from -2147483648 to 2147483647"),
    ("INT32", "[1]", "[true]", "data element 0 is true, expected an integer from -2147483648 to 2147483647"),
    ("INT32", "[2]", "[1,1.5]", "data element 1 is 1.5, expected an integer from -2147483648 to 2147483647"),
    ("INT32", "[1]", "[2147483648]",
     "data element 0 is 2147483648, expected an integer from -2147483648 to 2147483647"),
    ("INT32", "[1]", "[1e400]", "data element 0 is Infinity, expected an integer from -2147483648 to 2147483647"),
    ("UINT8", "[1]", "[-1]", "data element 0 is -1, expected an integer from 0 to 255"),
    ("UINT8", "[1]", '["1"]', 'data element 0 is "1", expected an integer from 0 to 255'),
    ("UINT64", "[1]", "[18446744073709551616]",
     "data element 0 is 18446744073709551616, expected an integer from 0 to 18446744073709551615"),
    ("BOOL", "[2]", "[true,1]", "data element 1 is 1, expected true or false"),
    ("FP32", "[1]", "[null]", "data element 0 is null, expected a number"),
    ("FP32", "[1]", "[false]", "data element 0 is false, expected a number"),
    ("FP32", "[2]", "[1,3.5e38]", "data element 1 is 3.5e+38, expected a number within the range of FP32"),
    ("FP64", "[1]", "[1e309]", "data element 0 is Infinity, expected a number within the range of FP64"),
    ("FP64", "[1]", "[1" + "0" * 400 + "]",
     "data element 0 is 1" + "0" * 59 + "..., expected a number within the range of FP64"),
    ("BYTES", "[1]", "[1]", "data element 0 is 1, expected a string"),
    ("BYTES", "[1]", '["\\udc00"]', 'data element 0 is "\\udc00", which contains half a surrogate pair'),
    ("FP16", "[1]", "[1]", "JSON cannot represent FP16: send binary data with parameters.binary_data_size"),
    ("BF16", "[1]", "[1]", "JSON cannot represent BF16: send binary data with parameters.binary_data_size"),
]  # fmt: skip


@pytest.mark.parametrize(("datatype", "shape", "data", "expected"), DATA, ids=range(len(DATA)))
def test_json_data(server: Server, datatype: str, shape: str, data: str, expected: str) -> None:
    body = f'{{"inputs":[{{"name":"INPUT","shape":{shape},"datatype":"{datatype}","data":{data}}}]}}'.encode()
    assert message(server.infer(f"identity_{datatype.lower()}", body)) == f"inputs[0] 'INPUT': {expected}"


@pytest.mark.parametrize(
    ("data", "dimension"),
    [
        ("[[1,2],[3]]", "dimension 1 needs arrays of 2"),
        ("[[1,2]]", "dimension 0 needs arrays of 2"),
        ("[[1,2],3]", "dimension 1 needs arrays of 2"),
    ],
)
def test_nesting(server: Server, data: str, dimension: str) -> None:
    body = f'{{"inputs":[{{"name":"INPUT","shape":[2,2],"datatype":"INT32","data":{data}}}]}}'.encode()
    assert message(server.infer("rank2", body)) == f"inputs[0] 'INPUT': data is not nested as shape [2, 2]: {dimension}"


# (datatype, shape, binary_data_size, bytes after the JSON in hex, message)
SIZES = [
    ("FP32", "[4]", "12", "00" * 12,
     "inputs[0] 'INPUT': parameters.binary_data_size is 12, but shape [4] of FP32 takes 16 bytes"),
    ("INT8", "[4]", "4.0", "00" * 4,
     "inputs[0] 'INPUT': parameters.binary_data_size must be an integer of at least 0, not 4.0"),
    ("INT8", "[4]", "null", "00" * 4, "inputs[0] 'INPUT': the input has neither data nor parameters.binary_data_size"),
    ("BOOL", "[3]", "3", "010002", "inputs[0] 'INPUT': element 2 is the byte 2, but a BOOL is 0 or 1"),
    ("BYTES", "[1]", "5", "0200000061", "inputs[0] 'INPUT': element 0 of 1 has a length of 2, but 1 bytes are left"),
]  # fmt: skip


@pytest.mark.parametrize(("datatype", "shape", "size", "binary", "expected"), SIZES, ids=range(len(SIZES)))
def test_binary_data(server: Server, datatype: str, shape: str, size: str, binary: str, expected: str) -> None:
    entry = f'{{"name":"INPUT","shape":{shape},"datatype":"{datatype}","parameters":{{"binary_data_size":{size}}}}}'
    answer = server.infer_binary(
        f"identity_{datatype.lower()}", f'{{"inputs":[{entry}]}}'.encode(), bytes.fromhex(binary)
    )
    assert message(answer) == expected


def test_binary_input_without_the_header(server: Server) -> None:
    assert message(server.infer("identity_int32", BINARY_1.encode())) == (
        "inputs[0] 'INPUT': parameters.binary_data_size needs the header Inference-Header-Content-Length, "
        "which is missing"
    )


# (model, members after inputs, message)
OUTPUTS = [
    ("identity_fp32", '"outputs":{}', "outputs must be an array, not an object"),
    ("identity_fp32", '"outputs":["OUTPUT"]', 'outputs[0] must be an object, not "OUTPUT"'),
    ("identity_fp32", '"outputs":[{}]', "outputs[0]: name is missing"),
    ("identity_fp32", '"outputs":[{"name":"OUTPUT"},{"name":"OUTPUT"}]',
     "outputs[1] 'OUTPUT': the request lists this output twice"),
    ("identity_fp32", '"outputs":[{"name":"OUTPUT","parameters":7}]',
     "outputs[0] 'OUTPUT': parameters must be an object, not 7"),
    ("identity_fp32", '"parameters":[]', "parameters must be an object, not an array"),
    *[
        ("identity_fp32", f'"outputs":[{{"name":"OUTPUT","parameters":{{"classification":{count}}}}}]',
         f"outputs[0] 'OUTPUT': parameters.classification must be an integer of at least 1, not {count}")
        for count in ("0", "2.0")
    ],
    ("identity_bytes", '"outputs":[{"name":"OUTPUT","parameters":{"classification":1}}]',
     "output 'OUTPUT': BYTES cannot be classified, only numbers can"),
    ("identity_fp16", '"id":""', "output 'OUTPUT': JSON cannot represent FP16: request it with binary_data"),
    ("identity_bf16", '"id":""', "output 'OUTPUT': JSON cannot represent BF16: request it with binary_data"),
]  # fmt: skip


@pytest.mark.parametrize(("model", "rest", "expected"), OUTPUTS, ids=range(len(OUTPUTS)))
def test_outputs(server: Server, model: str, rest: str, expected: str) -> None:
    datatype = model.removeprefix("identity_").upper()
    entry = f'{{"name":"INPUT","shape":[0],"datatype":"{datatype}","parameters":{{"binary_data_size":0}}}}'
    assert message(server.infer_binary(model, f'{{"inputs":[{entry}],{rest}}}'.encode())) == expected


@pytest.mark.parametrize(
    ("datatype", "binary", "expected"),
    [
        ("FP32", "0000807f", "JSON cannot represent NaN and infinity: request them with binary_data"),
        ("FP64", "000000000000f87f", "JSON cannot represent NaN and infinity: request them with binary_data"),
        ("BYTES", "01000000ff", "JSON cannot represent bytes that are not UTF-8: request them with binary_data"),
    ],
)
def test_values_without_json_form(server: Server, datatype: str, binary: str, expected: str) -> None:
    size = len(binary) // 2
    entry = f'{{"name":"INPUT","shape":[1],"datatype":"{datatype}","parameters":{{"binary_data_size":{size}}}}}'
    answer = server.infer_binary(
        f"identity_{datatype.lower()}", f'{{"inputs":[{entry}]}}'.encode(), bytes.fromhex(binary)
    )
    assert message(answer) == f"output 'OUTPUT': {expected}"


def test_refusal_keeps_the_connection(server: Server) -> None:
    good = make_infer_request("raw_fixed", bytes(16), "0")
    bad = make_infer_request("raw_fixed", bytes(15), "0")
    with server.connection() as connection:
        for octets, status in ((good, 200), (bad, 400), (bad, 400), (good, 200)):
            connection.sendall(octets)
            assert read_answer(connection).status == status
