"""Two models for aiSSEMBLE, `double` (FP32) and `add` (INT32), and the program that serves them.

`python handler.py DIR` copies this file into a folder; `python handler.py HTTP_PORT GRPC_PORT` serves the models there.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import uvicorn
from aissemble_open_inference_protocol_shared.handlers.model_handler import ModelHandler
from aissemble_open_inference_protocol_shared.types.dataplane import (
    Datatype,
    InferenceResponse,
    MetadataTensor,
    ModelMetadataResponse,
    ModelReadyResponse,
    ResponseOutput,
    TensorData,
)

HOST = "127.0.0.1"
VERSION = "1"
PROPERTIES = Path("krausening", "oip.properties")
INPUTS = {"double": ("X",), "add": ("A", "B")}
OUTPUTS = {"double": "Y", "add": "SUM"}
DATATYPES = {"double": (Datatype.FP32, "f4"), "add": (Datatype.INT32, "i4")}


class Handler(ModelHandler):
    """Serves the two models."""

    def infer(self, payload: Any, model_name: str, model_version: str | None = None) -> Any:
        """Return the output of a model: twice its input, or the sum of its inputs."""
        datatype, dtype = self._find_datatype(model_name, model_version)
        if {(one.name, one.datatype) for one in payload.inputs} != {(name, datatype) for name in INPUTS[model_name]}:
            raise ValueError(f"the inputs of {model_name} are {INPUTS[model_name]} of {datatype}")
        given = {one.name: np.array(one.data.root, dtype).reshape(one.shape) for one in payload.inputs}
        values = [given[name] for name in INPUTS[model_name]]
        result = sum(values if len(values) > 1 else values * 2)
        data, name = TensorData(root=np.ravel(result).tolist()), OUTPUTS[model_name]
        output = ResponseOutput(name=name, shape=list(np.shape(result)), datatype=datatype, data=data)
        wanted = [output.name for output in payload.outputs or ()]
        if unknown := set(wanted) - {name}:
            raise ValueError(f"no output {min(unknown)}")
        return InferenceResponse(model_name=model_name, model_version=model_version, id=payload.id, outputs=[output])

    def model_metadata(self, model_name: str, model_version: str | None = None) -> Any:
        """Return the signature of a model."""
        datatype, _ = self._find_datatype(model_name, model_version)
        inputs, outputs = (
            [MetadataTensor(name=name, datatype=datatype, shape=[-1]) for name in names]
            for names in (INPUTS[model_name], (OUTPUTS[model_name],))
        )
        return ModelMetadataResponse(
            name=model_name, versions=[VERSION], platform="python", inputs=inputs, outputs=outputs
        )

    def model_load(self, _: str) -> bool:
        """Say that the model is loaded."""
        return True

    def model_ready(self, model_name: str, model_version: str | None = None) -> Any:
        """Say that the model is ready."""
        self._find_datatype(model_name, model_version)
        return ModelReadyResponse(name=model_name, ready=True)

    def _find_datatype(self, model_name: str, model_version: str | None) -> tuple[Any, str]:
        if model_name not in DATATYPES or model_version not in {None, VERSION}:
            raise ValueError(f"unknown model {model_name}, or version {model_version}")
        return DATATYPES[model_name]


def prepare(folder: Path) -> None:
    """Write this file and the configuration into a folder."""
    (folder / PROPERTIES).parent.mkdir(parents=True, exist_ok=True)
    (folder / PROPERTIES).write_text("auth_enabled: false\n", encoding="utf-8")
    shutil.copy(__file__, folder / Path(__file__).name)


async def serve(http_port: int, grpc_port: str) -> None:
    """Serve HTTP and gRPC from the folder of the configuration."""
    os.environ |= {"AUTH_ENABLED": "false", "KRAUSENING_BASE": str(PROPERTIES.parent), "KRAUSENING_PASSWORD": "none"}
    os.environ |= {"GRPC_HOST": HOST, "GRPC_PORT": grpc_port}
    from aissemble_open_inference_protocol_fastapi.aissemble_oip_fastapi import AissembleOIPFastAPI
    from aissemble_open_inference_protocol_grpc.aissemble_oip_grpc import AissembleOIPgRPC

    app = AissembleOIPFastAPI(Handler()).server
    http = uvicorn.Server(uvicorn.Config(app, host=HOST, port=http_port, log_level="warning"))
    servers = [asyncio.create_task(each) for each in (http.serve(), AissembleOIPgRPC(Handler()).start_server())]
    await asyncio.wait(servers, return_when=asyncio.FIRST_COMPLETED)  # a signal ends only one of them


if __name__ == "__main__":
    if len(sys.argv) == 2:
        prepare(Path(sys.argv[1]))
    else:
        asyncio.run(serve(int(sys.argv[1]), sys.argv[2]))
