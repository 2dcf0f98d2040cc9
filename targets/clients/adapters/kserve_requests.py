"""What KServe's two clients have in common: how a request is made, and what an answer gives its caller."""

from __future__ import annotations

from typing import Any

from kserve import InferInput, InferRequest
from kserve.protocol.infer_type import RequestedOutput
from lines import CannotError, Json, array_of, output, result

PARAMETER = {"binary": True, "json": False}


def asked(inference: Json) -> InferRequest:
    """Return a request."""
    wishes, usual = inference.get("outputs"), inference.get("all_outputs")
    return InferRequest(
        model_name=inference["model"],
        model_version=inference.get("version"),
        request_id=inference.get("id"),
        infer_inputs=[tensor(one) for one in inference["inputs"]],
        request_outputs=None if wishes is None else [wish(one) for one in wishes],
        parameters={"binary_data_output": PARAMETER[usual]} if usual else None,
    )


def tensor(one: Json) -> InferInput:
    """Return an input."""
    if one["datatype"] == "BF16":
        raise CannotError("KServe's client has no BF16")
    made = InferInput(name=one["name"], shape=one["shape"], datatype=one["datatype"])
    made.set_data_from_numpy(array_of(one), binary_data=PARAMETER[one["form"]])
    return made


def wish(one: Json) -> RequestedOutput:
    """Return a requested output, with what is asked of it as parameters."""
    parameters: Json = {"binary_data": PARAMETER[one["form"]]} if "form" in one else {}
    if "classes" in one:
        parameters["classification"] = one["classes"]
    return RequestedOutput(one["name"], parameters or None)


def given(answer: Any) -> Json:
    """Return what the caller has of an answer."""
    return result([given_output(one) for one in answer.outputs], answer.id)


def given_output(one: Any) -> Json:
    """Return an output; of BF16 the client has no accessor."""
    if one.datatype == "BF16":
        return {"name": one.name, "cannot": "KServe's client has no BF16"}
    return output(one.name, one.datatype, one.as_numpy())
