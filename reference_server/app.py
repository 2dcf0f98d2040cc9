"""The HTTP side: paths, methods, and the one form that every error has.

Sources: Open Inference Protocol, REST, "HTTP/REST API"; Triton, Model Configuration Extension and Statistics Extension.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from reference_server import codings, configuration, http_body, inference, metadata, request, response
from reference_server.errors import InferenceError, shown
from reference_server.framing import HEADER
from reference_server.limits import DEFAULT, Limits
from reference_server.models import VERSION, Model


class Service:
    """The endpoints, over a set of models."""

    def __init__(self, models: Mapping[str, Model], limits: Limits) -> None:
        self.models = models
        self.limits = limits

    async def server_metadata(self, _request: Request) -> Response:
        """GET /v2."""
        return JSONResponse(metadata.server())

    async def live(self, _request: Request) -> Response:
        """GET /v2/health/live."""
        return JSONResponse({"live": True})

    async def ready(self, _request: Request) -> Response:
        """GET /v2/health/ready."""
        return JSONResponse({"ready": True})

    async def model_metadata(self, http: Request) -> Response:
        """GET /v2/models/{model}[/versions/{version}]."""
        return JSONResponse(metadata.describe(self.find(http)))

    async def model_ready(self, http: Request) -> Response:
        """GET /v2/models/{model}[/versions/{version}]/ready."""
        return JSONResponse({"name": self.find(http).name, "ready": True})

    async def model_config(self, http: Request) -> Response:
        """GET /v2/models/{model}[/versions/{version}]/config."""
        return JSONResponse(configuration.describe(self.find(http)))

    async def model_statistics(self, http: Request) -> Response:
        """GET /v2/models/{model}[/versions/{version}]/stats."""
        return JSONResponse(metadata.statistics([self.find(http)]))

    async def all_statistics(self, _request: Request) -> Response:
        """GET /v2/models/stats."""
        return JSONResponse(metadata.statistics(self.models.values()))

    async def infer(self, http: Request) -> Response:
        """Return the answer to an inference request, in no coding."""
        body = await self.read_body(http)
        model = self.find(http)
        return inference.run(
            model,
            lambda: request.parse(model, http.headers.getlist(HEADER), body),
            lambda wanted, produced: response.build(model, wanted, produced),
        )

    async def infer_coded(self, http: Request) -> Response:
        """POST /v2/models/{model}[/versions/{version}]/infer: the answer, in a coding that the client accepts."""
        answer = await self.infer(http)
        coding = codings.chosen(http)
        return answer if coding is None else codings.encoded(answer, coding)

    async def read_body(self, http: Request) -> bytes:
        """Return the body of a request as it was before its coding."""
        coding = codings.of_request(http)
        body = await http_body.read(http, self.limits)
        return body if coding is None else codings.decoded(body, coding, self.limits.body)

    def find(self, http: Request) -> Model:
        """Return the model that the path names."""
        name, version = http.path_params["model"], http.path_params.get("version", VERSION)
        if name not in self.models:
            raise InferenceError(f"there is no model {shown(name)}", status=404)
        if version != VERSION:
            raise InferenceError(
                f"model {shown(name)} has no version {shown(version)}, only {shown(VERSION)}", status=404
            )
        return self.models[name]


def create(models: Mapping[str, Model], limits: Limits = DEFAULT) -> Starlette:
    """Return the application."""
    service = Service(models, limits)
    routes = [
        Route("/v2", service.server_metadata),
        Route("/v2/health/live", service.live),
        Route("/v2/health/ready", service.ready),
        Route("/v2/models/stats", service.all_statistics),
    ]
    for path in ("/v2/models/{model}", "/v2/models/{model}/versions/{version}"):
        routes += [
            Route(path, service.model_metadata),
            Route(f"{path}/ready", service.model_ready),
            Route(f"{path}/config", service.model_config),
            Route(f"{path}/stats", service.model_statistics),
            Route(f"{path}/infer", service.infer_coded, methods=["POST"]),
        ]
    handlers: dict[Any, Any] = {
        InferenceError: refused,
        http_body.UnreadBodyError: refused_unread,
        HTTPException: not_routed,
        ClientDisconnect: disconnected,
        Exception: failed,
    }
    app = Starlette(routes=routes, exception_handlers=handlers)
    app.router.redirect_slashes = False
    return app


def error(message: str, status: int, headers: Mapping[str, str] | None = None) -> Response:
    """Return an error: the message as member `error` of an object (Open Inference Protocol, REST, "Inference")."""
    return JSONResponse({"error": message}, status, headers)


async def refused(_request: Request, exception: InferenceError) -> Response:
    """Answer a request that is refused."""
    return error(exception.message, exception.status)


async def refused_unread(_request: Request, exception: http_body.UnreadBodyError) -> Response:
    """Answer a request whose body is not read to the end."""
    return http_body.ClosingResponse({"error": exception.message}, exception.status)


async def not_routed(http: Request, exception: HTTPException) -> Response:
    """Answer an unknown path (404) or a method that the path does not take (405)."""
    return error(f"{exception.detail}: {http.method} {shown(http.url.path)}", exception.status_code, exception.headers)


async def disconnected(_request: Request, _exception: ClientDisconnect) -> Response:
    """Answer a client that went away in the middle of its body; nobody reads this."""
    return error("the body is not complete", 400)


async def failed(_request: Request, _exception: Exception) -> Response:
    """Answer where this server is at fault; the traceback goes to standard error, not to the client."""
    return error("internal error", 500)
