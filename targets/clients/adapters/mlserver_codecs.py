"""Adapter: mlserver's types and codecs, sent with requests, as its documentation does.

`NumpyCodec` makes [N, 1] of [N], and [1] of []; its caller, who knows the model, gives the input its shape back.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import local
from typing import Any
from urllib.parse import quote

import numpy as np
import requests
from lines import Array, CannotError, Json, array_of, attempted, output, refuse, result, serve
from mlserver.codecs import NumpyCodec, StringCodec
from mlserver.codecs.json import encode_to_json_bytes
from mlserver.types import InferenceRequest, InferenceResponse, Parameters, RequestInput, RequestOutput, ResponseOutput


class Client:
    """A `requests.Session` for each thread."""

    def __init__(self, _transport: str, address: str, timeout: float) -> None:
        self.address, self.timeout = address, timeout
        self.kept, self.threads = local(), ThreadPoolExecutor(64)

    def infer(self, inferences: list[Json], at_once: bool) -> list[Json]:
        """Make inferences."""
        return list((self.threads.map if at_once else map)(self.attempt, inferences))

    def attempt(self, inference: Json) -> Json:
        """Make one inference, or tell of the error that it ends with."""
        return attempted(partial(self.one, inference), status)

    def one(self, inference: Json) -> Json:
        """Make one inference."""
        refuse(inference, raw="mlserver has no binary data", coding="it does not encode requests")
        if not hasattr(self.kept, "session"):
            self.kept.session = requests.Session()
        answer = self.kept.session.post(
            f"{self.address}{find_path(inference)}",
            encode_to_json_bytes(asked(inference).model_dump()),
            headers={"Content-Type": "application/json", "Accept-Encoding": inference.get("accepts", "identity")},
            timeout=self.timeout,
        )
        if not answer.ok:
            raise requests.HTTPError(answer.text, response=answer)
        said = InferenceResponse.model_validate_json(answer.content)
        return result([given(one) for one in said.outputs], said.id)


def find_path(inference: Json) -> str:
    """Return the path of a model, or of a version of it."""
    version = f"/versions/{quote(inference['version'], safe='')}" if "version" in inference else ""
    return f"/v2/models/{quote(inference['model'], safe='')}{version}/infer"


def asked(inference: Json) -> InferenceRequest:
    """Return a request; what is not asked of it is left out."""
    expect_json(inference.get("all_outputs"))
    wishes, usual = inference.get("outputs"), {"binary_data_output": False} if "all_outputs" in inference else None
    members = {
        "id": inference.get("id"),
        "parameters": usual and Parameters(**usual),
        "outputs": None if wishes is None else [wish(one) for one in wishes],
    }
    inputs = [tensor(one) for one in inference["inputs"]]
    return InferenceRequest(inputs=inputs, **{name: value for name, value in members.items() if value is not None})


def expect_json(form: str | None) -> None:
    """Require that no binary data are asked for.

    Raises:
        CannotError: they are.
    """
    if form == "binary":
        raise CannotError("mlserver has no binary data")


def tensor(one: Json) -> RequestInput:
    """Return an input."""
    expect_json(one["form"])
    if one["datatype"] == "BF16":
        raise CannotError("mlserver has no BF16")
    array = array_of(one)
    if one["datatype"] != "BYTES":
        made = NumpyCodec.encode_input(one["name"], array)
    else:
        made = StringCodec.encode_input(one["name"], [element.decode() for element in array.ravel()])
    made.shape = one["shape"]
    return made


def wish(one: Json) -> RequestOutput:
    """Return a requested output, with what is asked of it as parameters."""
    expect_json(one.get("form"))
    asked_of_it: Json = {"binary_data": False} if "form" in one else {}
    if "classes" in one:
        asked_of_it["classification"] = one["classes"]
    parameters = {"parameters": Parameters(**asked_of_it)} if asked_of_it else {}
    return RequestOutput(name=one["name"], **parameters)


def given(one: ResponseOutput) -> Json:
    """Return what the caller has of an output."""
    return output(one.name, one.datatype, decoded(one))


def decoded(one: ResponseOutput) -> Array:
    """Return the elements of an output; strings come as a list."""
    elements: Array
    if one.datatype != "BYTES":
        elements = NumpyCodec.decode_output(one)
        return elements
    strings = StringCodec.decode_output(one)
    elements = np.empty(len(strings), object)
    elements[:] = strings
    return elements.reshape(one.shape)


def status(error: Any) -> str:
    """Return the status of an error, where it has one."""
    return str(getattr(getattr(error, "response", None), "status_code", ""))


if __name__ == "__main__":
    serve("mlserver", ["http"], Client, "mlserver.codecs")
