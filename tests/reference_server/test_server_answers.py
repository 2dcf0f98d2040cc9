"""Requests in bytes, and the bytes that answer them, where no golden case of tests/fixtures asks the same."""

from __future__ import annotations

import pytest

from tests.support.serving import HEADER, Server

# (model, request's JSON, binary data in hex, response's JSON, binary data in hex or None for a response without any)
BINARY = {
    "BYTES: empty, a NUL, not UTF-8": (
        "identity_bytes",
        '{"inputs":[{"name":"INPUT","shape":[3],"datatype":"BYTES","parameters":{"binary_data_size":16}}],'
        '"outputs":[{"name":"OUTPUT","parameters":{"binary_data":true}}]}',
        "00000000 02000000 6100 02000000 ff00",
        '{"model_name":"identity_bytes","model_version":"1","outputs":[{"name":"OUTPUT","datatype":"BYTES",'
        '"shape":[3],"parameters":{"binary_data_size":16}}]}',
        "00000000 02000000 6100 02000000 ff00",
    ),
    "null is absent, an empty list of outputs is none": (
        "identity_uint8",
        '{"id":null,"inputs":[{"name":"INPUT","shape":[1],"datatype":"UINT8","data":null,"parameters":'
        '{"binary_data_size":1,"mine":[]}}],"outputs":[],"parameters":{"binary_data_output":null},"mine":{}}',
        "ff",
        '{"model_name":"identity_uint8","model_version":"1","outputs":[{"name":"OUTPUT","datatype":"UINT8","shape":[1],'
        '"data":[255]}]}',
        None,
    ),
    "whole numbers however written": (
        "weighted_sum",
        '{"inputs":[{"name":"INPUT","shape":[2,2],"datatype":"INT32","data":[1.0,1e1,-1,2147483647]}]}',
        "",
        '{"model_name":"weighted_sum","model_version":"1","outputs":[{"name":"OUTPUT","datatype":"INT64","shape":[1],'
        '"data":[8589934606]}]}',
        None,
    ),
    "FP32 as the double that equals it": (
        "cast_fp16_fp32",
        '{"inputs":[{"name":"INPUT","shape":[3],"datatype":"FP16","parameters":{"binary_data_size":6}}]}',
        "9a42 0100 0080",
        '{"model_name":"cast_fp16_fp32","model_version":"1","outputs":[{"name":"OUTPUT","datatype":"FP32","shape":[3],'
        '"data":[3.30078125,5.960464477539063e-08,-0.0]}]}',
        None,
    ),
}


@pytest.mark.parametrize("row", BINARY.values(), ids=BINARY)
def test_answer(server: Server, row: tuple[str, str, str, str, str | None]) -> None:
    model, request, binary, expected, expected_binary = row
    answer = server.infer_binary(model, request.encode(), bytes.fromhex(binary))
    check(answer.status, answer.headers, answer.body, expected, expected_binary)


def check(status: int, headers: dict[str, str], body: bytes, expected: str, expected_binary: str | None) -> None:
    """Compare a whole response: the header is there exactly when binary data are."""
    json_part = expected.encode()
    assert body.decode("latin-1") == (json_part + bytes.fromhex(expected_binary or "")).decode("latin-1")
    assert status == 200
    assert headers["content-length"] == str(len(body))
    assert headers.get(HEADER) == (None if expected_binary is None else str(len(json_part)))
    assert headers["content-type"] == ("application/json" if expected_binary is None else "application/octet-stream")


# (model; the input's name, datatype, shape, data; the output, its count; shape and data in the response)
CLASSES = {
    "Triton, Classification Extension: the integers of its prose": (
        "identity_int8", "INPUT", "INT8", "[4]", "[1,5,10,4]", "OUTPUT", "2", "[2]", '["10:2","5:1"]',
    ),
    "more than there are": (
        "scores_labelled", "INPUT", "FP32", "[4]", "[0.25,1,-1,0.5]", "SCORES", "1000000000", "[4]",
        '["1.0:1:dog","0.5:3:fish","0.25:0:cat","-1.0:2:bird"]',
    ),
    "ties keep their order": (
        "identity_uint16", "INPUT", "UINT16", "[5]", "[7,9,7,9,7]", "OUTPUT", "5", "[5]",
        '["9:1","9:3","7:0","7:2","7:4"]',
    ),
    "unsigned integers beyond doubles": (
        "identity_uint64", "INPUT", "UINT64", "[3]", "[18446744073709551614,18446744073709551615,9007199254740993]",
        "OUTPUT", "3", "[3]", '["18446744073709551615:1","18446744073709551614:0","9007199254740993:2"]',
    ),
    "the lowest integer": (
        "identity_int64", "INPUT", "INT64", "[3]", "[-9223372036854775808,9223372036854775807,0]", "OUTPUT",
        "3", "[3]", '["9223372036854775807:1","0:2","-9223372036854775808:0"]',
    ),
    "doubles": (
        "identity_fp64", "INPUT", "FP64", "[3]", "[0.1,1e300,0.30000000000000004]", "OUTPUT", "3", "[3]",
        '["1e+300:1","0.30000000000000004:2","0.1:0"]',
    ),
    "no scores": (
        "identity_fp32", "INPUT", "FP32", "[0]", "[]", "OUTPUT", "2", "[0]", "[]",
    ),
}  # fmt: skip


@pytest.mark.parametrize("row", CLASSES.values(), ids=CLASSES)
def test_classes(server: Server, row: tuple[str, ...]) -> None:
    model, name, datatype, shape, data, output, count, shape_out, data_out = row
    answer = server.infer(
        model,
        f'{{"id":"42","inputs":[{{"name":"{name}","shape":{shape},"datatype":"{datatype}","data":{data}}}],'
        f'"outputs":[{{"name":"{output}","parameters":{{"classification":{count}}}}}]}}'.encode(),
    )
    expected = (
        f'{{"id":"42","model_name":"{model}","model_version":"1","outputs":[{{"name":"{output}","datatype":"BYTES",'
        f'"shape":{shape_out},"data":{data_out}}}]}}'
    )
    check(answer.status, answer.headers, answer.body, expected, None)


# (model, datatype, scores in hex, the classes)
BINARY_SCORES = {
    "NaN comes last": (
        "FP32",
        "0000c07f 0000803f 0000807f 000080ff 0000c0ff",
        '"inf:2","1.0:1","-inf:3","nan:0","nan:4"',
    ),
    "FP16": ("FP16", "9a42 0000 00fc 007e 9b42", '"3.3027344:4","3.3007812:0","0.0:1","-inf:2","nan:3"'),
    "BF16": ("BF16", "5340 80bf 5440 c07f 0000", '"3.3125:2","3.296875:0","0.0:4","-1.0:1","nan:3"'),
}


@pytest.mark.parametrize("row", BINARY_SCORES.values(), ids=BINARY_SCORES)
def test_classes_of_binary_scores(server: Server, row: tuple[str, str, str]) -> None:
    datatype, scores, classes = row
    data = bytes.fromhex(scores)
    model = f"identity_{datatype.lower()}"
    answer = server.infer_binary(
        model,
        f'{{"inputs":[{{"name":"INPUT","shape":[5],"datatype":"{datatype}","parameters":{{"binary_data_size":{len(data)}}}'
        f'}}],"outputs":[{{"name":"OUTPUT","parameters":{{"classification":5}}}}]}}'.encode(),
        data,
    )
    expected = (
        f'{{"model_name":"{model}","model_version":"1","outputs":[{{"name":"OUTPUT","datatype":"BYTES","shape":[5],'
        f'"data":[{classes}]}}]}}'
    )
    check(answer.status, answer.headers, answer.body, expected, None)


@pytest.mark.parametrize("header", [None, "96"])
def test_binary_data_of_no_bytes_need_no_header(server: Server, header: str | None) -> None:
    body = b'{"inputs":[{"name":"INPUT","shape":[0],"datatype":"INT32","parameters":{"binary_data_size":0}}]}'
    answer = server.infer("identity_int32", body, header)
    assert (answer.status, answer.body) == (
        200,
        b'{"model_name":"identity_int32","model_version":"1","outputs":[{"name":"OUTPUT","datatype":"INT32","shape":[0],'
        b'"data":[]}]}',
    )
