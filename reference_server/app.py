"""The HTTP application: paths, methods, and the common format of errors.

Sources: Open Inference Protocol, REST, "HTTP/REST API"; Triton, Model Configuration Extension and Statistics Extension.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from reference_server import http_body, inference, metadata, request, response, workers
from reference_server.errors import InferenceError, format_value
from reference_server.framing import HEADER
from reference_server.limits import DEFAULT, Limits
from reference_server.models import Model

Endpoint = Callable[[Request], Awaitable[Response]]
INFER = "infer"
READ_METHODS: tuple[str, ...] = ("GET", "HEAD")
WRITE_METHODS: tuple[str, ...] = ("POST",)
MODEL_PATH = re.compile(
    rf"/v2/models/(?P<model>[^/]+)(?:/versions/(?P<version>[^/]+))?(?:/(?P<asked>ready|config|stats|{INFER}))?"
)


class Service:
    """The endpoints, over a set of models."""

    def __init__(self, models: Mapping[str, Model], limits: Limits) -> None:
        self.models = models
        self.limits = limits

    async def server_metadata(self, _request: Request) -> Response:
        """Answer GET /v2 with the server metadata."""
        return JSONResponse(metadata.describe_server())

    async def live(self, _request: Request) -> Response:
        """Answer GET /v2/health/live: the server is always live."""
        return JSONResponse({"live": True})

    async def ready(self, _request: Request) -> Response:
        """Answer GET /v2/health/ready: the server is always ready."""
        return JSONResponse({"ready": True})

    async def model_metadata(self, http: Request) -> Response:
        """Answer GET /v2/models/{model}[/versions/{version}] with the model metadata."""
        return JSONResponse(metadata.describe_model(self.find_model(http)))

    async def model_ready(self, http: Request) -> Response:
        """Answer GET /v2/models/{model}[/versions/{version}]/ready: every known model is ready."""
        return JSONResponse({"name": self.find_model(http).name, "ready": True})

    async def model_config(self, http: Request) -> Response:
        """Answer GET /v2/models/{model}[/versions/{version}]/config with the model configuration."""
        return JSONResponse(metadata.describe_configuration(self.find_model(http)))

    async def model_statistics(self, http: Request) -> Response:
        """Answer GET /v2/models/{model}[/versions/{version}]/stats, without a version for all of them."""
        model = self.find_model(http)
        versions = [model] if "version" in http.path_params else model.versions.values()
        return JSONResponse(metadata.describe_statistics(versions))

    async def all_statistics(self, _request: Request) -> Response:
        """Answer GET /v2/models/stats with the statistics of all models."""
        return JSONResponse(
            metadata.describe_statistics(each for model in self.models.values() for each in model.versions.values())
        )

    async def infer(self, http: Request) -> Response:
        """Return the answer to an inference request, uncompressed."""
        body = await self.read_body(http)
        model = self.find_model(http)
        return await workers.run_in_worker(
            len(body),
            lambda: inference.run(
                model,
                lambda: request.parse(model, http.headers.getlist(HEADER), body),
                lambda wanted, produced: response.build(model, wanted, produced),
            ),
        )

    async def infer_coded(self, http: Request) -> Response:
        """Answer POST /v2/models/{model}[/versions/{version}]/infer, compressed if the client accepts that."""
        answer = await self.infer(http)
        coding = http_body.choose_coding(http)
        return (
            answer
            if coding is None
            else await workers.run_in_worker(len(answer.body), lambda: http_body.encode(answer, coding))
        )

    async def read_body(self, http: Request) -> bytes:
        """Return the decoded body of a request."""
        coding = http_body.find_request_coding(http)
        body = await http_body.read(http, self.limits)
        if coding is None:
            return body
        # Even a short body can decompress to as many bytes as the limit allows.
        return await workers.run_in_worker(self.limits.body, lambda: http_body.decode(body, coding, self.limits.body))

    def find_model(self, http: Request) -> Model:
        """Return the model that the path names."""
        name, version = http.path_params["model"], http.path_params.get("version")
        if name not in self.models:
            raise InferenceError(f"there is no model {format_value(name)}", status=404)
        model = self.models[name]
        return model if version is None else model.get_version(version)


class Application:
    """The ASGI application: it finds the endpoint of a path, and turns exceptions into error responses.

    Starlette's own router tries one path after the other and wraps each request in four layers, which costs more than
    an inference. Its request and response classes are used unchanged.
    """

    def __init__(self, service: Service) -> None:
        self.endpoints: dict[str, Endpoint] = {
            "/v2": service.server_metadata,
            "/v2/health/live": service.live,
            "/v2/health/ready": service.ready,
            "/v2/models/stats": service.all_statistics,
        }
        self.endpoints_of_models: dict[str | None, Endpoint] = {
            None: service.model_metadata,
            "ready": service.model_ready,
            "config": service.model_config,
            "stats": service.model_statistics,
            INFER: service.infer_coded,
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        http = Request(scope, receive)
        try:
            answer = await self.find_endpoint(http)(http)
        except http_body.UnreadBodyError as refusal:
            answer = await answer_unread_refusal(http, refusal)
        except InferenceError as refusal:
            answer = await answer_refusal(http, refusal)
        except HTTPException as unknown:
            answer = await answer_routing_error(http, unknown)
        except ClientDisconnect as end:
            answer = await answer_disconnect(http, end)
        except Exception as fault:
            await (await answer_internal_error(http, fault))(scope, receive, send)
            raise  # for uvicorn, which writes the traceback to standard error
        await answer(scope, receive, send)

    def find_endpoint(self, http: Request) -> Endpoint:
        """Return the endpoint for a request, and store the names in its path in `path_params`."""
        path = http.scope["path"]
        found, methods = self.endpoints.get(path), READ_METHODS
        if found is None:
            if (of_model := MODEL_PATH.fullmatch(path)) is None:
                raise HTTPException(404)
            names = of_model.groupdict()
            asked = names.pop("asked")
            found, methods = self.endpoints_of_models[asked], WRITE_METHODS if asked == INFER else READ_METHODS
            http.scope["path_params"] = {name: value for name, value in names.items() if value is not None}
        if http.method not in methods:
            raise HTTPException(405, headers={"Allow": ", ".join(methods)})
        return found


def create(models: Mapping[str, Model], limits: Limits = DEFAULT) -> Application:
    """Return the application."""
    return Application(Service(models, limits))


def make_error(message: str, status: int, headers: Mapping[str, str] | None = None) -> Response:
    """Return an error response: the message as member `error` (Open Inference Protocol, REST, "Inference")."""
    return JSONResponse({"error": message}, status, headers)


async def answer_refusal(_request: Request, exception: InferenceError) -> Response:
    """Return the error response for a refused request."""
    return make_error(exception.message, exception.status)


async def answer_unread_refusal(_request: Request, exception: http_body.UnreadBodyError) -> Response:
    """Return the error response for a refused request whose body was not read to the end."""
    return http_body.ClosingResponse({"error": exception.message}, exception.status)


async def answer_routing_error(http: Request, exception: HTTPException) -> Response:
    """Answer a request with an unknown path (404) or a method that the path does not support (405)."""
    return make_error(
        f"{exception.detail}: {http.method} {format_value(http.url.path)}", exception.status_code, exception.headers
    )


async def answer_disconnect(_request: Request, _exception: ClientDisconnect) -> Response:
    """Return a response for a client that disconnected while it sent its body; nobody receives this response."""
    return make_error("the body is incomplete", 400)


async def answer_internal_error(_request: Request, _exception: Exception) -> Response:
    """Return the response for an internal error; the traceback goes to standard error, not to the client."""
    return make_error("internal error", 500)
