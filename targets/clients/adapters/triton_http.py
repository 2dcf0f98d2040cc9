"""What Triton's two HTTP clients have in common: how a request is made, and what an answer gives its caller."""

from __future__ import annotations

from typing import Any

import tritonclient.http as triton
from lines import CannotError, Json, array_of, output, refuse, result


def asked(inference: Json) -> Json:
    """Return the arguments of `infer`."""
    refuse(inference, raw="tritonclient has no raw binary requests")
    if inference.get("all_outputs") == "json" and not inference.get("outputs"):
        raise CannotError("where no output is named, tritonclient asks for all of them as binary data")
    wishes = inference.get("outputs")
    return {
        "model_name": inference["model"],
        "model_version": inference.get("version", ""),
        "request_id": inference.get("id", ""),
        "inputs": [tensor(one) for one in inference["inputs"]],
        "outputs": None if wishes is None else [wish(one, inference.get("all_outputs")) for one in wishes],
        "request_compression_algorithm": inference.get("coding"),
        "response_compression_algorithm": inference.get("accepts"),
    }


def tensor(one: Json) -> Any:
    """Return an input."""
    made = triton.InferInput(one["name"], one["shape"], one["datatype"])
    return made.set_data_from_numpy(array_of(one), binary_data=one["form"] == "binary")


def wish(one: Json, usual: str | None) -> Any:
    """Return a requested output; the client's default is binary data."""
    form = one.get("form") or usual or "binary"
    return triton.InferRequestedOutput(one["name"], binary_data=form == "binary", class_count=one.get("classes", 0))


def given(answer: Any) -> Json:
    """Return what the caller has of an answer."""
    said = answer.get_response()
    outputs = [output(one["name"], one["datatype"], answer.as_numpy(one["name"])) for one in said["outputs"]]
    return result(outputs, said.get("id"))


def status(error: Any) -> str:
    """Return the status of an error, where it has one."""
    return str(error.status() or "") if isinstance(error, triton.InferenceServerException) else ""
