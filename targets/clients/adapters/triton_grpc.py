"""What Triton's two gRPC clients have in common: how a request is made, and what an answer gives its caller."""

from __future__ import annotations

from typing import Any

import tritonclient.grpc as triton
from lines import CannotError, Json, array_of, output, refuse, result


def asked(inference: Json, timeout: float) -> Json:
    """Return the arguments of `infer`."""
    refuse(inference, raw="raw binary requests are of HTTP", accepts="tritonclient does not choose codings of answers")
    wishes = inference.get("outputs")
    return {
        "model_name": inference["model"],
        "model_version": inference.get("version", ""),
        "request_id": inference.get("id", ""),
        "inputs": [tensor(one) for one in inference["inputs"]],
        "outputs": None
        if wishes is None
        else [triton.InferRequestedOutput(one["name"], class_count=one.get("classes", 0)) for one in wishes],
        "client_timeout": timeout,
        "compression_algorithm": inference.get("coding"),
    }


def tensor(one: Json) -> Any:
    """Return an input."""
    if one["form"] == "json":
        raise CannotError("tritonclient sends raw contents alone over gRPC")
    return triton.InferInput(one["name"], one["shape"], one["datatype"]).set_data_from_numpy(array_of(one))


def given(answer: Any) -> Json:
    """Return what the caller has of an answer."""
    said = answer.get_response()
    outputs = [output(one.name, one.datatype, answer.as_numpy(one.name)) for one in said.outputs]
    return result(outputs, said.id)


def status(error: Any) -> str:
    """Return the name of the code of an error, where it has one."""
    said = error.status() if isinstance(error, triton.InferenceServerException) else None
    return (said or "").removeprefix("StatusCode.")
