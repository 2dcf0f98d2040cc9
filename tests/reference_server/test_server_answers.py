"""Requests in bytes, and the bytes that answer them: the documents' examples first, then each rule alone."""

from __future__ import annotations

import pytest

from tests.support.serving import HEADER, Server

# (model, request's JSON, binary data in hex, response's JSON, binary data in hex or None for a response without any)
BINARY = {
    "Triton, Binary Tensor Data Extension, Binary Tensor Request, Examples": (
        "documented_binary",
        '{"model_name":"mymodel","inputs":[{"name":"input0","shape":[2,2],"datatype":"UINT32","parameters":'
        '{"binary_data_size":16}},{"name":"input1","shape":[3],"datatype":"BOOL","parameters":{"binary_data_size":3}}],'
        '"outputs":[{"name":"output0","parameters":{"binary_data":true}}]}',
        "01000000 02000000 03000000 04000000 010001",
        '{"model_name":"documented_binary","model_version":"1","outputs":[{"name":"output0","datatype":"FP32",'
        '"shape":[3,2],"parameters":{"binary_data_size":24}}]}',
        "0000803f 0000803f 00000000 00000040 0000803f 00004040",
    ),
    "KServe, Binary Tensor Data Extension, Sending and Receiving Binary Data": (
        "documented_mixed",
        '{"model_name":"mymodel","inputs":[{"name":"input0","shape":[2,2],"datatype":"FP16","parameters":'
        '{"binary_data_size":8}},{"name":"input1","shape":[2,2],"datatype":"UINT32","data":[[1,2],[3,4]]},'
        '{"name":"input2","shape":[3],"datatype":"BOOL","parameters":{"binary_data_size":3}}],'
        '"outputs":[{"name":"output0","parameters":{"binary_data":true}},{"name":"output1"}]}',
        "003e 0040 00b8 0044 010001",
        '{"model_name":"documented_mixed","model_version":"1","outputs":[{"name":"output0","datatype":"FP16",'
        '"shape":[3,2],"parameters":{"binary_data_size":12}},{"name":"output1","datatype":"FP32","shape":[2,2],'
        '"data":[2.5,4.0,2.5,8.0]}]}',
        "003c 003e 0000 0040 003c 00b8",
    ),
    "KServe, Binary Tensor Data Extension, Requesting All Outputs As Binary Data": (
        "documented_all_outputs",
        '{"model_name":"my_model","inputs":[{"name":"input_tensor","datatype":"FP32","shape":[1,2],'
        '"data":[[32.045,399.043]]}],"parameters":{"binary_data_output":true}}',
        "",
        '{"model_name":"documented_all_outputs","model_version":"1","outputs":[{"name":"output_tensor0",'
        '"datatype":"FP16","shape":[3,2],"parameters":{"binary_data_size":12}},{"name":"output_tensor1",'
        '"datatype":"FP32","shape":[2,2],"parameters":{"binary_data_size":16}}]}',
        "0150 3c5e 3c5e 0150 0000 0000 142e0042 8185c743 8185c743 142e0042",
    ),
    "BYTES: empty, a NUL, not UTF-8": (
        "identity_bytes",
        '{"inputs":[{"name":"INPUT","shape":[3],"datatype":"BYTES","parameters":{"binary_data_size":16}}],'
        '"outputs":[{"name":"OUTPUT","parameters":{"binary_data":true}}]}',
        "00000000 02000000 6100 02000000 ff00",
        '{"model_name":"identity_bytes","model_version":"1","outputs":[{"name":"OUTPUT","datatype":"BYTES",'
        '"shape":[3],"parameters":{"binary_data_size":16}}]}',
        "00000000 02000000 6100 02000000 ff00",
    ),
    "BYTES: the prefix counts bytes, the JSON letters": (
        "string_length",
        '{"inputs":[{"name":"INPUT","shape":[3],"datatype":"BYTES","data":["","猫","ab"]}]}',
        "",
        '{"model_name":"string_length","model_version":"1","outputs":[{"name":"LENGTH","datatype":"INT32","shape":[3],'
        '"data":[0,3,2]}]}',
        None,
    ),
    "the header counts bytes, not letters": (
        "identity_int16",
        '{"id":"Füße 猫","inputs":[{"name":"INPUT","shape":[2],"datatype":"INT16","parameters":'
        '{"binary_data_size":4}}],"outputs":[{"name":"OUTPUT","parameters":{"binary_data":true}}]}',
        "0102 ff7f",
        '{"id":"Füße 猫","model_name":"identity_int16","model_version":"1","outputs":[{"name":"OUTPUT",'
        '"datatype":"INT16","shape":[2],"parameters":{"binary_data_size":4}}]}',
        "0102 ff7f",
    ),
    "mixed: binary data lie in the order of each JSON, not of the model": (
        "multi",
        '{"inputs":[{"name":"IN_BYTES","shape":[1],"datatype":"BYTES","parameters":{"binary_data_size":6}},'
        '{"name":"IN_BOOL","shape":[2],"datatype":"BOOL","data":[true,false]},'
        '{"name":"IN_FP32","shape":[1],"datatype":"FP32","parameters":{"binary_data_size":4}},'
        '{"name":"IN_INT64","shape":[1],"datatype":"INT64","parameters":{"binary_data_size":8}}],'
        '"outputs":[{"name":"OUT_INT64","parameters":{"binary_data":true}},{"name":"OUT_FP32"},'
        '{"name":"OUT_BOOL","parameters":{"binary_data":true}},{"name":"OUT_BYTES","parameters":{"binary_data":true}}]}',
        "02000000 6869 0000c03f 0102030405060708",
        '{"model_name":"multi","model_version":"1","outputs":[{"name":"OUT_INT64","datatype":"INT64","shape":[1],'
        '"parameters":{"binary_data_size":8}},{"name":"OUT_FP32","datatype":"FP32","shape":[1],"data":[1.5]},'
        '{"name":"OUT_BOOL","datatype":"BOOL","shape":[2],"parameters":{"binary_data_size":2}},{"name":"OUT_BYTES",'
        '"datatype":"BYTES","shape":[1],"parameters":{"binary_data_size":6}}]}',
        "0102030405060708 0100 02000000 6869",
    ),
    "the output's binary_data overrides binary_data_output, which holds for the listed output without it": (
        "add_sub",
        '{"inputs":[{"name":"A","shape":[1],"datatype":"INT32","data":[7]},{"name":"B","shape":[1],"datatype":"INT32",'
        '"data":[9]}],"outputs":[{"name":"DIFFERENCE"},{"name":"SUM","parameters":{"binary_data":false}}],'
        '"parameters":{"binary_data_output":true}}',
        "",
        '{"model_name":"add_sub","model_version":"1","outputs":[{"name":"DIFFERENCE","datatype":"INT32","shape":[1],'
        '"parameters":{"binary_data_size":4}},{"name":"SUM","datatype":"INT32","shape":[1],"data":[16]}]}',
        "feffffff",
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
    "an empty output is binary data too": (
        "emit",
        '{"inputs":[{"name":"COUNTS","shape":[2],"datatype":"INT32","data":[0,2]}],"outputs":[{"name":"NUMBERS",'
        '"parameters":{"binary_data":true}},{"name":"TEXTS"}]}',
        "",
        '{"model_name":"emit","model_version":"1","outputs":[{"name":"NUMBERS","datatype":"INT32","shape":[0],'
        '"parameters":{"binary_data_size":0}},{"name":"TEXTS","datatype":"BYTES","shape":[2],"data":["t1","t2"]}]}',
        "",
    ),
    "no dimensions": (
        "rank0",
        '{"inputs":[{"name":"INPUT","shape":[],"datatype":"INT32","parameters":{"binary_data_size":4}}]}',
        "04030201",
        '{"model_name":"rank0","model_version":"1","outputs":[{"name":"OUTPUT","datatype":"INT32","shape":[],'
        '"data":[16909060]}]}',
        None,
    ),
    "a batch": (
        "batching",
        '{"inputs":[{"name":"INPUT","shape":[2,3],"datatype":"INT32","data":[[1,2,3],[4,5,6]]}]}',
        "",
        '{"model_name":"batching","model_version":"1","outputs":[{"name":"OUTPUT","datatype":"INT32","shape":[2,3],'
        '"data":[1,2,3,4,5,6]}]}',
        None,
    ),
    "no elements": (
        "rank2",
        '{"inputs":[{"name":"INPUT","shape":[2,0],"datatype":"INT32","data":[[],[]]}]}',
        "",
        '{"model_name":"rank2","model_version":"1","outputs":[{"name":"OUTPUT","datatype":"INT32","shape":[2,0],"data":[]}]}',
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
    "BF16": (
        "cast_fp32_bf16",
        '{"inputs":[{"name":"INPUT","shape":[2],"datatype":"FP32","data":[3.3,-1]}],"parameters":'
        '{"binary_data_output":true}}',
        "",
        '{"model_name":"cast_fp32_bf16","model_version":"1","outputs":[{"name":"OUTPUT","datatype":"BF16","shape":[2],'
        '"parameters":{"binary_data_size":4}}]}',
        "5340 80bf",
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


# (model, whole body in hex, response's JSON, its binary data in hex)
RAW = {
    "Triton, Binary Tensor Data Extension, Raw Binary Request, Examples": (
        "documented_raw",
        "0000803f 00000040 00004040 00008040",
        '{"model_name":"documented_raw","model_version":"1","outputs":[{"name":"output0","datatype":"FP32",'
        '"shape":[3,1],"parameters":{"binary_data_size":12}},{"name":"output1","datatype":"FP32","shape":[3,1],'
        '"parameters":{"binary_data_size":12}}]}',
        "0000803f 00000040 00004040 00000040 00004040 00008040",
    ),
    "BYTES [1]: no prefix in the body, one in the answer": (
        "raw_bytes_one",
        "343237",
        '{"model_name":"raw_bytes_one","model_version":"1","outputs":[{"name":"OUTPUT","datatype":"BYTES","shape":[1],'
        '"parameters":{"binary_data_size":7}}]}',
        "03000000 343237",
    ),
    "BYTES [1]: an empty body is an empty element": (
        "raw_bytes_one",
        "",
        '{"model_name":"raw_bytes_one","model_version":"1","outputs":[{"name":"OUTPUT","datatype":"BYTES","shape":[1],'
        '"parameters":{"binary_data_size":4}}]}',
        "00000000",
    ),
    "the variable dimension is deduced": (
        "raw_middle",
        "0100 0200 0300 0400 0500 0600 0700 0800 0900 0a00 0b00 0c00",
        '{"model_name":"raw_middle","model_version":"1","outputs":[{"name":"OUTPUT","datatype":"INT16","shape":[2,2,3],'
        '"parameters":{"binary_data_size":24}}]}',
        "0100 0200 0300 0400 0500 0600 0700 0800 0900 0a00 0b00 0c00",
    ),
    "an empty body is a variable dimension of 0": (
        "raw_variable",
        "",
        '{"model_name":"raw_variable","model_version":"1","outputs":[{"name":"OUTPUT","datatype":"FP32","shape":[0,2],'
        '"parameters":{"binary_data_size":0}}]}',
        "",
    ),
    "every output is binary data": (
        "raw_two_outputs",
        "ffffffff",
        '{"model_name":"raw_two_outputs","model_version":"1","outputs":[{"name":"NUMBER","datatype":"INT32","shape":[1],'
        '"parameters":{"binary_data_size":4}},{"name":"TEXT","datatype":"BYTES","shape":[1],"parameters":'
        '{"binary_data_size":6}}]}',
        "ffffffff 02000000 2d31",
    ),
    "a batching model gets a batch of one": (
        "raw_batching_variable",
        "01000000 02000000",
        '{"model_name":"raw_batching_variable","model_version":"1","outputs":[{"name":"OUTPUT","datatype":"FP32",'
        '"shape":[1,2],"parameters":{"binary_data_size":8}}]}',
        "0000803f 00000040",
    ),
}


@pytest.mark.parametrize("row", RAW.values(), ids=RAW)
def test_raw(server: Server, row: tuple[str, str, str, str]) -> None:
    model, body, expected, expected_binary = row
    answer = server.infer(model, bytes.fromhex(body), "0")
    check(answer.status, answer.headers, answer.body, expected, expected_binary)


# (model; the input's name, datatype, shape, data; the output, its count; shape and data in the response)
CLASSES = {
    "Triton, Classification Extension, HTTP/REST": (
        "documented_scores", "input0", "UINT32", "[2,2]", "[1,2,3,4]", "output0", "2", "[2]",
        '["3.3:1","2.4:3"]',
    ),
    "Triton, Classification Extension, HTTP/REST, with labels": (
        "documented_scores_labelled", "input0", "UINT32", "[2,2]", "[1,2,3,4]", "output0", "2", "[2]",
        '["3.3:1:index_1_label","2.4:3:index_3_label"]',
    ),
    "Triton, Classification Extension: the integers of its prose": (
        "identity_int8", "INPUT", "INT8", "[4]", "[1,5,10,4]", "OUTPUT", "2", "[2]", '["10:2","5:1"]',
    ),
    "more than there are": (
        "scores_labelled", "INPUT", "FP32", "[4]", "[0.25,1,-1,0.5]", "SCORES", "1000000000", "[4]",
        '["1.0:1:dog","0.5:3:fish","0.25:0:cat","-1.0:2:bird"]',
    ),
    "an index past the labels": (
        "scores_some_labels", "INPUT", "FP32", "[4]", "[1,2,3,4]", "SCORES", "3", "[3]",
        '["4.0:3","3.0:2","2.0:1:dog"]',
    ),
    "odd labels": (
        "scores_odd_labels", "INPUT", "FP32", "[4]", "[4,3,2,1]", "SCORES", "4", "[4]",
        '["4.0:0:a:b:c","3.0:1:two words","2.0:2:Füße","1.0:3:猫"]',
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
    "a batch": (
        "scores_batching_labelled", "INPUT", "FP32", "[2,4]", "[1,2,3,4,8,7,6,5]", "SCORES", "2", "[2,2]",
        '["4.0:3:fish","3.0:2:bird","8.0:0:cat","7.0:1:dog"]',
    ),
    "a batch of one keeps its dimension": (
        "scores_batching", "INPUT", "FP32", "[1,4]", "[1,2,3,4]", "SCORES", "1", "[1,1]", '["4.0:3"]',
    ),
    "flattened": (
        "scores_rank2", "INPUT", "FP32", "[2,3]", "[1,2,3,6,5,4]", "SCORES", "2", "[2]",
        '["6.0:3","5.0:4"]',
    ),
    "flattened in the batch": (
        "scores_batching_rank2", "INPUT", "FP32", "[2,2,2]", "[1,2,3,4,4,3,2,1]", "SCORES", "1", "[2,1]",
        '["4.0:3:fish","4.0:0:cat"]',
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


def test_classes_as_binary_data_beside_a_plain_output(server: Server) -> None:
    answer = server.infer(
        "scores_two_outputs",
        b'{"inputs":[{"name":"IN_RANKS","shape":[3],"datatype":"INT32","data":[1,3,2]},{"name":"IN_SCORES","shape":[4],'
        b'"datatype":"FP32","data":[1,2,3,4]}],"outputs":[{"name":"RANKS","parameters":{"classification":2,'
        b'"binary_data":true}},{"name":"SCORES"}]}',
    )
    expected = (
        '{"model_name":"scores_two_outputs","model_version":"1","outputs":[{"name":"RANKS","datatype":"BYTES",'
        '"shape":[2],"parameters":{"binary_data_size":26}},{"name":"SCORES","datatype":"FP32","shape":[4],'
        '"data":[1.0,2.0,3.0,4.0]}]}'
    )
    classes = "0a000000 333a313a6d6964646c65 08000000 323a323a68696768"  # 3:1:middle and 2:2:high
    check(answer.status, answer.headers, answer.body, expected, classes)


@pytest.mark.parametrize("header", [None, "96"])
def test_binary_data_of_no_bytes_need_no_header(server: Server, header: str | None) -> None:
    body = b'{"inputs":[{"name":"INPUT","shape":[0],"datatype":"INT32","parameters":{"binary_data_size":0}}]}'
    answer = server.infer("identity_int32", body, header)
    assert (answer.status, answer.body) == (
        200,
        b'{"model_name":"identity_int32","model_version":"1","outputs":[{"name":"OUTPUT","datatype":"INT32","shape":[0],'
        b'"data":[]}]}',
    )
