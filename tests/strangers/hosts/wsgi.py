"""The application of `oip-conformance models export --format python` as Flask has it, for servers that speak WSGI."""

from __future__ import annotations

from flask import Flask, Response, abort, jsonify, request
from inference import HEADER, MODELS, VERSION, answer
from werkzeug.exceptions import HTTPException

app = Flask(__name__)


def find_model(name: str, version: str) -> str:
    if name not in MODELS or version != VERSION:
        abort(404, f"there is no model {name} of version {version}")
    return name


def infer(name: str, version: str = VERSION) -> Response:
    body = request.get_data()  # read before any refusal, or the rest of the body would look like the next request
    find_model(name, version)
    if request.headers.get("Content-Encoding", "identity") != "identity":
        abort(415, "the body has a content coding")
    lengths = [request.headers[HEADER]] if HEADER in request.headers else []
    content, status, headers = [*answer(name, body, lengths), 200, {}][:3]
    return Response(content, status, headers)


def describe_model(name: str, version: str = VERSION) -> Response:
    signature = {side: MODELS[find_model(name, version)][side] for side in ("inputs", "outputs")}
    return jsonify(name=name, versions=[VERSION], platform="python_numpy", **signature)


def is_model_ready(name: str, version: str = VERSION) -> Response:
    return jsonify(name=find_model(name, version), ready=True)


def describe_server() -> Response:
    return jsonify(name="roles", version="1", extensions=["binary_tensor_data", "classification"])


def is_healthy() -> Response:
    """Return that the server is live and ready."""
    return jsonify(live=True, ready=True)


for base in ("/v2/models/<name>", "/v2/models/<name>/versions/<version>"):
    app.add_url_rule(f"{base}/infer", f"{base}/infer", infer, methods=["POST"])
    app.add_url_rule(f"{base}/ready", f"{base}/ready", is_model_ready)
    app.add_url_rule(base, base, describe_model)
app.add_url_rule("/v2", "server", describe_server)
app.add_url_rule("/v2/health/live", "live", is_healthy)
app.add_url_rule("/v2/health/ready", "ready", is_healthy)


@app.errorhandler(Exception)
def refuse(error: Exception) -> tuple[Response, int]:
    """Return an error; refusals by inference.py, a model or numpy are ValueErrors."""
    if isinstance(error, HTTPException):
        return jsonify(error=error.description), error.code or 500
    return jsonify(error=str(error)), 400 if isinstance(error, ValueError) else 500
