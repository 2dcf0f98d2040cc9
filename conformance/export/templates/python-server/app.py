"""The model roles of roles.json behind HTTP, by Starlette: `uvicorn app:app --port 8000`.

The paths and statuses of the protocol are here; inference.py, which is independent of the framework, answers requests.
"""

from __future__ import annotations

from inference import HEADER, MODELS, VERSION, answer
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route


def model_of(request: Request) -> str:
    """Return the name of the model in the path."""
    name, version = request.path_params["name"], request.path_params.get("version", VERSION)
    if name not in MODELS or version != VERSION:
        raise HTTPException(404, f"there is no model {name} of version {version}")
    return str(name)


async def infer(request: Request) -> Response:
    """Answer an inference request."""
    body = await request.body()  # read before any refusal, or a client that expects "100 Continue" would wait
    name = model_of(request)
    if request.headers.get("Content-Encoding", "identity") != "identity":
        raise HTTPException(415, "the body has a content coding")
    return Response(*await run_in_threadpool(answer, name, body, request.headers.getlist(HEADER)))


async def model_metadata(request: Request) -> Response:
    """Return model metadata."""
    name = model_of(request)
    signature = {side: MODELS[name][side] for side in ("inputs", "outputs")}
    return JSONResponse({"name": name, "versions": [VERSION], "platform": "python_numpy", **signature})


async def model_ready(request: Request) -> Response:
    """Return that a model is ready."""
    return JSONResponse({"name": model_of(request), "ready": True})


async def server_metadata(_: Request) -> Response:
    """Return server metadata."""
    return JSONResponse({"name": "roles", "version": "1", "extensions": ["binary_tensor_data", "classification"]})


async def health(_: Request) -> Response:
    """Return that the server is live and ready."""
    return JSONResponse({"live": True, "ready": True})


async def error(_: Request, raised: Exception) -> Response:
    """Return an error response; refusals by inference.py, a model or numpy are ValueErrors."""
    if isinstance(raised, HTTPException):
        return JSONResponse({"error": raised.detail}, raised.status_code, headers=raised.headers)
    return JSONResponse({"error": str(raised)}, 400 if isinstance(raised, ValueError) else 500)


MODEL_PATHS = ("/v2/models/{name}", "/v2/models/{name}/versions/{version}")
app = Starlette(
    routes=[
        Route("/v2", server_metadata),
        Route("/v2/health/live", health),
        Route("/v2/health/ready", health),
        *(Route(path, model_metadata) for path in MODEL_PATHS),
        *(Route(f"{path}/ready", model_ready) for path in MODEL_PATHS),
        *(Route(f"{path}/infer", infer, methods=["POST"]) for path in MODEL_PATHS),
    ],
    exception_handlers=dict.fromkeys((HTTPException, ValueError, Exception), error),
)
