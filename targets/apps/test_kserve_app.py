"""KServe's own application, judged in this process by the fixture `oip_report`: no port, no recipe, a line a test."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fastapi import FastAPI
from kserve import InferOutput, InferRequest, InferResponse, Model
from kserve.model_repository import ModelRepository
from kserve.protocol.dataplane import DataPlane
from kserve.protocol.model_repository_extension import ModelRepositoryExtension
from kserve.protocol.rest.server import RESTServer

from conformance import Report

APP = "kserve.model_server:app"  # where KServe keeps it


class Iris(Model):  # type: ignore[misc]  # whose package is not installed where types are checked
    """A custom model as people write them: its metadata say what it takes and gives."""

    def __init__(self) -> None:
        super().__init__("iris")
        self.ready = True

    def get_input_types(self) -> list[dict[str, Any]]:
        """Return the inputs of the metadata."""
        return [{"name": "x", "datatype": "FP32", "shape": [-1, 4]}]

    def get_output_types(self) -> list[dict[str, Any]]:
        """Return the outputs of the metadata."""
        return [{"name": "kind", "datatype": "INT64", "shape": [-1]}]

    async def predict(self, payload: InferRequest, headers: Any = None, response_headers: Any = None) -> InferResponse:
        """Return the remainder by three of each row's sum."""
        del headers, response_headers
        kinds = (payload.inputs[0].as_numpy().sum(axis=1) * 10).astype(np.int64) % 3
        output = InferOutput(name="kind", shape=list(kinds.shape), datatype="INT64", data=kinds)
        return InferResponse(
            response_id=payload.id or "1",
            model_name=self.name,
            infer_outputs=[output],
            requested_outputs=payload.request_outputs,
            use_binary_outputs=payload.use_binary_outputs,
        )


@pytest.fixture(scope="session")
def oip_target() -> FastAPI:
    """Return KServe's application with one model."""
    from kserve.model_server import app

    registry = ModelRepository()
    registry.update(Iris())
    data_plane, repository = DataPlane(model_registry=registry), ModelRepositoryExtension(model_registry=registry)
    RESTServer(APP, data_plane, repository, http_port=0).create_application()
    return app


@pytest.fixture
def oip_options() -> dict[str, Any]:
    """Judge the deployed model by its own plain answers."""
    return {"models": ["iris"]}


def test_kserve_keeps_what_its_clients_rely_on(oip_report: Report) -> None:
    assert oip_report.verdict == "partial", str(oip_report)  # of one model
