"""A small server such as a user writes: one ordinary model, JSON alone; with mistakes that it may have."""

from __future__ import annotations

import json
from collections.abc import Collection
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from tests.support.servers import serve_app

VERSION = "1"
METADATA = {
    "name": "iris",
    "versions": [VERSION],
    "platform": "numpy",
    "inputs": [{"name": "x", "datatype": "FP32", "shape": [-1, 4]}],
    "outputs": [{"name": "class", "datatype": "INT64", "shape": [-1]}],
}
_WEIGHTS = np.array([[0.4, 0.3, -1.0], [1.2, -0.2, -0.9], [-1.5, 0.1, 1.4], [-0.7, -0.5, 1.3]], "f4")
_BIASES = np.array([0.3, 0.8, -1.1], "f4")


class SmallServer:
    """Serves the model, with these of the mistakes `detail`, `flat`, `sizes`, `version`, `id` and `needs-...`.

    detail: errors are given under that member. flat: such data are refused. sizes: neither shapes nor datatypes are
    looked at. version: that of the path is not either. id: it is not given back. needs-id, needs-outputs,
    needs-parameters: a request without that member is refused.
    """

    def __init__(self, mistakes: Collection[str]) -> None:
        self._mistakes = mistakes
        routes = [Route("/v2", self._server), *(Route(f"/v2/health/{of}", self._live) for of in ("live", "ready"))]
        for path in ("/v2/models/{model}", "/v2/models/{model}/versions/{version}"):
            routes += [
                Route(path, self._metadata),
                Route(f"{path}/ready", self._ready),
                Route(f"{path}/infer", self._infer, methods=["POST"]),
            ]
        self.app = Starlette(routes=routes, exception_handlers={HTTPException: self._error, Exception: self._crash})

    async def _server(self, _: Request) -> JSONResponse:
        return JSONResponse({"name": "small", "version": "1", "extensions": []})

    async def _live(self, _: Request) -> JSONResponse:
        return JSONResponse({"live": True})

    async def _ready(self, request: Request) -> JSONResponse:
        self._find(request)
        return JSONResponse({"name": "iris", "ready": True})

    async def _metadata(self, request: Request) -> JSONResponse:
        self._find(request)
        return JSONResponse(METADATA)

    async def _infer(self, request: Request) -> JSONResponse:
        self._find(request)
        document = _parse(await request.body())
        if "flat" in self._mistakes and any(not isinstance(one["data"][0], list) for one in document["inputs"]):
            raise HTTPException(400, "the data are nested")
        for part in ("id", "outputs", "parameters"):
            if f"needs-{part}" in self._mistakes and part not in document:
                raise HTTPException(400, f"there is no {part}")
        read = _read_unchecked if "sizes" in self._mistakes else _read
        scores = read(document["inputs"]) @ _WEIGHTS + _BIASES
        if [output["name"] for output in document.get("outputs", [{"name": "class"}])] != ["class"]:
            raise HTTPException(400, "the output is class")
        classes = scores.argmax(1).tolist()
        output = {"name": "class", "datatype": "INT64", "shape": [len(classes)], "data": classes}
        identified = {"id": document["id"]} if "id" in document and "id" not in self._mistakes else {}
        return JSONResponse({"model_name": "iris", "model_version": VERSION, **identified, "outputs": [output]})

    def _find(self, request: Request) -> None:
        version = VERSION if "version" in self._mistakes else request.path_params.get("version", VERSION)
        if (request.path_params["model"], version) != ("iris", VERSION):
            raise HTTPException(404, "there is no such model")

    def _error(self, _: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, HTTPException)
        return JSONResponse({self._member: error.detail}, error.status_code)

    def _crash(self, _: Request, error: Exception) -> JSONResponse:
        return JSONResponse({self._member: str(error)}, 500)

    @property
    def _member(self) -> str:
        return "detail" if "detail" in self._mistakes else "error"


def _parse(body: bytes) -> dict[str, Any]:
    try:
        document = json.loads(body)
    except ValueError:
        raise HTTPException(400, "no JSON") from None
    if not isinstance(document, dict) or not isinstance(document.get("inputs"), list):
        raise HTTPException(400, "no inputs")
    return document


def _read(inputs: list[Any]) -> np.ndarray[Any, Any]:
    """Return the only input, as the metadata ask for it."""
    (entry,) = inputs if len(inputs) == 1 else ({},)
    shape = entry.get("shape")
    if (entry.get("name"), entry.get("datatype")) != ("x", "FP32"):
        raise HTTPException(400, "the input is x, of FP32")
    if not isinstance(shape, list) or [type(size) for size in shape] != [int, int] or shape[0] < 0 or shape[1] != 4:
        raise HTTPException(400, "the shape is [-1, 4]")
    try:
        data = np.array(entry.get("data"), "f4")
    except (TypeError, ValueError):
        raise HTTPException(400, "no data of FP32") from None
    if np.isnan(data).any():  # JSON has no NaN
        raise HTTPException(400, "an element is null")
    if data.size != shape[0] * 4:
        raise HTTPException(400, "the data do not fill the shape")
    return data.reshape(shape)


def _read_unchecked(inputs: list[Any]) -> np.ndarray[Any, Any]:
    return np.array(next(entry["data"] for entry in inputs if entry["name"] == "x"), "f4").reshape(-1, 4)


def serve(*mistakes: str) -> AbstractContextManager[str]:
    return serve_app(uvicorn.Config(SmallServer(mistakes).app, lifespan="off", log_level="critical", access_log=False))
