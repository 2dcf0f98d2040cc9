"""What an answer to a request that uses an extension says of whether a server has it: refused, ignored, or answered."""

from __future__ import annotations

import json
import struct
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

from conformance.discovery.discovery_result import DiscoveryResult
from conformance.discovery.placement_search import find_placements
from conformance.judging.session import Session
from conformance.roles.placement import Placement
from conformance.spec.extensions import OVER_HTTP
from conformance.transport.settings import Settings
from conformance.transport.target import Target
from conformance.wire.request import INFERENCE_HEADER
from tests.support.servers import JsonOnly, serve

Document = dict[str, Any]


class JsonServer(JsonOnly):
    """A server of JSON, which takes INT32 as binary data, too, where a subclass wants that."""

    def do_POST(self) -> None:  # noqa: N802
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        length = self.headers.get(INFERENCE_HEADER)
        if "/identity_int32/" not in self.path:
            self._answer(404, {"error": "unknown"})
        elif length == "0":
            self.raw(body)
        elif length is not None:
            self.binary(json.loads(body[: int(length)]), body[int(length) :])
        else:
            self.plain(json.loads(body))

    def raw(self, body: bytes) -> None:
        del body
        self._answer(400, {"error": "not JSON"})

    def binary(self, document: Document, tail: bytes) -> None:
        del document, tail
        self._answer(400, {"error": "not JSON"})

    def plain(self, document: Document) -> None:
        self.outputs(document["inputs"][0])

    def outputs(self, tensor: Document, **members: Any) -> None:
        """Answer with an output in JSON."""
        output = {
            "name": "OUTPUT",
            "datatype": "INT32",
            "shape": tensor["shape"],
            "data": tensor.get("data"),
            **members,
        }
        self._answer(200, {"model_name": "identity_int32", "outputs": [output]})

    def bytes_of(self, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(200)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


class TakesBinary(JsonServer):
    """Binary inputs are taken, binary outputs are never given."""

    def binary(self, document: Document, tail: bytes) -> None:
        self.outputs(document["inputs"][0], data=list(struct.unpack(f"<{len(tail) // 4}i", tail)))


class TakesBinaryRefusesOutputs(TakesBinary):
    """Binary inputs are taken, and the parameter for outputs is refused."""

    def binary(self, document: Document, tail: bytes) -> None:
        if document.get("outputs"):
            self._answer(400, {"error": "unknown parameter"})
        else:
            super().binary(document, tail)


class GivesBinary(JsonServer):
    """Binary outputs are given where they are asked for, binary inputs are refused."""

    def plain(self, document: Document) -> None:
        wanted = [output for output in document.get("outputs", ()) if output.get("parameters", {}).get("binary_data")]
        tensor = document["inputs"][0]
        if not wanted:
            self.outputs(tensor)
            return
        data = struct.pack(f"<{len(tensor['data'])}i", *tensor["data"])
        output = {"name": "OUTPUT", "datatype": "INT32", "shape": tensor["shape"]}
        head = json.dumps({"outputs": [{**output, "parameters": {"binary_data_size": len(data)}}]}).encode()
        self.bytes_of(head + data, self.header(len(head)))

    def header(self, length: int) -> dict[str, str]:
        return {INFERENCE_HEADER: str(length)}


class GivesBinaryWithoutHeader(GivesBinary):
    """Binary outputs are given, and the header is missing."""

    def header(self, length: int) -> dict[str, str]:
        del length
        return {}


class RawWithoutHeader(JsonServer):
    """Raw requests are answered with bytes and no header."""

    def raw(self, body: bytes) -> None:
        self.bytes_of(body, {})


class RawWithoutOutputs(JsonServer):
    """Raw requests are answered with a document that has no outputs."""

    def raw(self, body: bytes) -> None:
        del body
        self._answer(200, {"model_name": "identity_int32"})


class ClassesOfFloats(JsonServer):
    """Classes are pairs of numbers, under the output's own datatype."""

    def plain(self, document: Document) -> None:
        wanted = [output for output in document.get("outputs", ()) if "classification" in output.get("parameters", {})]
        tensor = document["inputs"][0]
        if wanted:
            self.outputs(tensor, shape=[1, 2], data=[7, 0])
        else:
            self.outputs(tensor)


class RefusesOptions(JsonServer):
    """Parameters of outputs are refused."""

    def plain(self, document: Document) -> None:
        if any(output.get("parameters") for output in document.get("outputs", ())):
            self._answer(422, {"error": "unknown parameter"})
        else:
            super().plain(document)


def discover_server(handler: type[BaseHTTPRequestHandler]) -> DiscoveryResult:
    with serve(handler) as url, Session(Target(Settings(url, timeout=5))) as session:
        return session.discover()


@pytest.mark.parametrize(
    ("handler", "offered"),
    [
        (JsonOnly, set()),
        (JsonServer, set()),
        (RefusesOptions, set()),
        (TakesBinary, {"binary_tensor_data"}),
        (TakesBinaryRefusesOutputs, {"binary_tensor_data"}),
        (GivesBinary, {"binary_tensor_data"}),
        (GivesBinaryWithoutHeader, {"binary_tensor_data"}),
        (RawWithoutHeader, {"raw"}),
        (RawWithoutOutputs, {"raw"}),
        (ClassesOfFloats, {"classification"}),
    ],
)
def test_answered_is_offered_refused_or_ignored_is_not(
    handler: type[BaseHTTPRequestHandler], offered: set[str]
) -> None:
    found = discover_server(handler)
    assert found.offered == dict.fromkeys(offered, "works")
    assert set(found.refusals) == set(OVER_HTTP) - offered
    assert found.broken == []


def test_what_no_model_can_be_asked_for_is_not_called_absent() -> None:
    class Empty(JsonOnly):
        """Serves no model."""

        def do_GET(self) -> None:  # noqa: N802
            self._answer(200 if self.path == "/v2" else 404, {"name": "empty"})

        def do_POST(self) -> None:  # noqa: N802
            self._answer(404, {"error": "unknown"})

    found = discover_server(Empty)
    assert set(found.refusals.values()) == {""}
    assert found.describe_absence("raw") == "not tried: no model with one input"
    assert discover_server(JsonOnly).describe_absence("raw").startswith("not offered: HTTP 400")


def test_a_parameter_that_is_ignored_is_told_from_a_refusal() -> None:
    assert discover_server(JsonServer).refusals["classification"] == "the server ignores its parameters"
    assert discover_server(RefusesOptions).refusals["classification"].startswith("HTTP 422")


# --- models with the name of a role -----------------------------------------------------------------------------------

OWN_TENSORS = {"inputs": [{"name": "features", "datatype": "FP32", "shape": [-1]}], "outputs": []}
NOTE = "identity_int32 is another model: its inputs are features FP32 [-1]"


def describing(tensors: Document, status: int, answer: Document | None = None) -> type[JsonOnly]:
    """Return a server whose model identity_int32 has these metadata, and answers inference with this status.

    With status 200 it computes the role, unless `answer` is what it says to everything.
    """

    class Described(JsonOnly):
        def do_GET(self) -> None:  # noqa: N802
            if self.path == "/v2/models/identity_int32":
                self._answer(200, {"name": "identity_int32", **tensors})
            else:
                self._answer(404, {"error": "unknown"})

        def do_POST(self) -> None:  # noqa: N802
            if status == 200 and answer is None and "/identity_int32/" in self.path:
                super().do_POST()
                return
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            is_known = status >= 400 or (answer is not None and "/identity_int32/" in self.path)
            self._answer(*((status, answer or {"error": "unknown"}) if is_known else (404, {"error": "unknown"})))

    return Described


@pytest.mark.parametrize(
    ("tensors", "status", "notes"),
    [
        (OWN_TENSORS, 400, [NOTE]),
        (OWN_TENSORS, 500, [NOTE]),
        # its metadata are wrong: it answers the plain request of the role
        (OWN_TENSORS, 200, []),
        # its metadata are those of the role, or say nothing about tensors
        ({**OWN_TENSORS, "outputs": [{"name": "OUTPUT", "datatype": "INT32", "shape": [-1]}]}, 400, []),
        ({"inputs": [], "outputs": []}, 400, []),
        ({"inputs": [{"name": "features"}], "outputs": []}, 400, []),
    ],
)
def test_a_model_with_other_tensors_that_refuses_the_role_is_another_model(
    tensors: Document, status: int, notes: list[str]
) -> None:
    handler = describing(tensors, status)
    found = discover_server(handler)
    assert found.describe_other_models() == notes
    assert set(found.roles) == (set() if notes else {"identity_int32"})
    with serve(handler) as url, Session(Target(Settings(url, timeout=5))) as session:
        assert set(find_placements(session.target, ["identity_int32"])) <= set(found.roles)


@pytest.mark.parametrize(("output", "is_other"), [("score", True), ("OUTPUT", False)])
def test_a_model_with_other_tensors_that_answers_anything_is_told_by_its_outputs(output: str, is_other: bool) -> None:
    answer = {"outputs": [{"name": output, "datatype": "FP32", "shape": [1], "data": [0.5]}]}
    found = discover_server(describing(OWN_TENSORS, 200, answer))
    assert found.describe_other_models() == ([NOTE] if is_other else [])


def test_a_role_that_the_user_places_is_judged_on_that_model() -> None:
    placements = {"identity_int32": Placement("identity_int32")}
    target = serve(describing(OWN_TENSORS, 400))
    with target as url, Session(Target(Settings(url, timeout=5)), placements=placements) as session:
        assert (session.discover().roles, session.discovery_result.other_models) == (
            {"identity_int32": "identity_int32"},
            {},
        )


# --- models without metadata ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [404, 500])
@pytest.mark.parametrize("served", [{"identity_fp16"}, {"identity_fp16", "identity_int32"}, set[str]()])
def test_a_model_without_metadata_that_answers_a_plain_request_fills_its_role(status: int, served: set[str]) -> None:
    class Undescribed(JsonOnly):
        def do_GET(self) -> None:  # noqa: N802
            self._answer(200 if self.path == "/v2" else status, {"name": "undescribed"})

        def do_POST(self) -> None:  # noqa: N802
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            name, binary = self.path.split("/")[3], self.headers.get(INFERENCE_HEADER)
            takes = name in served and (binary not in {None, "0"}) == (name == "identity_fp16")
            self._answer(200 if takes and body else 404, {"outputs": []})

    found = discover_server(Undescribed)
    assert set(found.roles) == served
    assert found.broken == []


@pytest.mark.parametrize("served", [{"identity_int32"}, set[str]()])
def test_metadata_for_any_name_are_no_model(served: set[str]) -> None:
    class Obliging(JsonOnly):
        def do_GET(self) -> None:  # noqa: N802
            self._answer(200, {"name": "obliging"} if self.path == "/v2" else {})

        def do_POST(self) -> None:  # noqa: N802
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self._answer(200 if self.path.split("/")[3] in served else 404, {"outputs": []})

    assert set(discover_server(Obliging).roles) == served
