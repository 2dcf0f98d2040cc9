"""An app by Starlette, JSON alone: `iris` is an ordinary model, and the others take inputs that nobody guesses.

`special` refuses most elements, the metadata of `custom` list no inputs, and those of `odd` are of no use.
"""

from __future__ import annotations

from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

NUMBERS = {"name": "X", "datatype": "FP32", "shape": [-1, 4]}
WORD = {"name": "WORD", "datatype": "BYTES", "shape": [1]}
DOUBLED = {"name": "Y", "datatype": "FP32", "shape": [-1, 4]}
INPUTS: dict[str, list[dict[str, Any]]] = {
    "special": [NUMBERS, WORD],
    "custom": [],
    "iris": [NUMBERS],
    "odd": [{"name": "X", "datatype": "float32", "shape": [1]}],
}
# What `special` and `custom` take, as a file about the server gives it.
FILLED_IN_TABLES = """
[models.special.inputs.X]
shape = [1, 4]
data = [1.5, 2, 3, 4]
[models.special.inputs.WORD]
shape = [1]
data = ["please"]
[models.custom.inputs.X]
datatype = "FP32"
shape = [1, 4]
data = [3, 4, 5, 6]
"""


def _name(request: Request) -> str:
    name = str(request.path_params["name"])
    if name not in INPUTS:
        raise HTTPException(404, f"there is no model {name}")
    return name


async def _server(_: Request) -> JSONResponse:
    return JSONResponse({"name": "particular", "version": "1", "extensions": []})


async def _ready(request: Request) -> JSONResponse:
    if "name" in request.path_params:
        _name(request)
    return JSONResponse({"ready": True})


async def _index(_: Request) -> JSONResponse:
    return JSONResponse({"models": list(INPUTS)})


async def _metadata(request: Request) -> JSONResponse:
    name = _name(request)
    outputs = [DOUBLED] if INPUTS[name] else []
    return JSONResponse(
        {"name": name, "platform": "python", "versions": ["1"], "inputs": INPUTS[name], "outputs": outputs}
    )


def _flat(data: list[Any]) -> list[float]:
    """Return elements that stand row by row, in a list for each or in one for all."""
    return [number for part in data for number in (part if isinstance(part, list) else [part])]


async def _infer(request: Request) -> JSONResponse:
    name = _name(request)
    try:
        document = await request.json()
        tensors = {tensor["name"]: tensor for tensor in document["inputs"]}
        numbers = tensors["X"]
        rows, width = numbers["shape"]
        sent = _flat(numbers["data"])
        doubled = [2.0 * number for number in sent]
        names = {"X", "WORD"} if name == "special" else {"X"}
        wanted = {output["name"] for output in document.get("outputs", [])} <= {"Y"}
        is_right = tensors.keys() == names and width == 4 and len(doubled) == 4 * rows and wanted
        is_right = is_right and tensors.get("WORD", {}).get("data") in (None, ["please"])
        is_right = is_right and (name != "custom" or sent == [3, 4, 5, 6])
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise HTTPException(400, f"no request: {type(error).__name__}") from error
    if not is_right:
        raise HTTPException(400, f"{name} does not take this")
    request_id = {"id": document["id"]} if "id" in document else {}
    output = {**DOUBLED, "shape": numbers["shape"], "data": doubled}
    return JSONResponse({"model_name": name, **request_id, "outputs": [output]})


async def _error(_: Request, error: Exception) -> JSONResponse:
    status = error.status_code if isinstance(error, HTTPException) else 500
    return JSONResponse({"error": getattr(error, "detail", "")}, status)


app = Starlette(
    routes=[
        Route("/v2", _server),
        Route("/v2/health/live", _ready),
        Route("/v2/health/ready", _ready),
        Route("/v2/models", _index),
        Route("/v2/models/{name}", _metadata),
        Route("/v2/models/{name}/ready", _ready),
        Route("/v2/models/{name}/infer", _infer, methods=["POST"]),
    ],
    exception_handlers={HTTPException: _error},
)
