"""One model role for Triton's python backend: role.json defines the role, role_compute.py computes it.

Triton itself checks names, datatypes and shapes of the inputs against config.pbtxt.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import role_compute
import triton_python_backend_utils as pb_utils
import triton_tensors


class TritonPythonModel:
    """The class that the backend looks for."""

    def initialize(self, _args: Mapping[str, str]) -> None:
        """Read the role."""
        self.role = json.loads((Path(__file__).parent / "role.json").read_text(encoding="utf-8"))

    def execute(self, requests: Sequence[Any]) -> list[Any]:
        """Answer each request."""
        return [self._answer(request) for request in requests]

    def _answer(self, request: Any) -> Any:
        inputs = {}
        for spec in self.role["inputs"]:
            tensor = pb_utils.get_input_tensor_by_name(request, spec["name"])
            inputs[spec["name"]] = triton_tensors.read(tensor, spec["datatype"])
        try:
            arrays = role_compute.run(self.role, inputs)
        except role_compute.RefusedError as error:
            return pb_utils.InferenceResponse(error=pb_utils.TritonError(str(error), pb_utils.TritonError.INVALID_ARG))
        outputs = zip(self.role["outputs"], arrays)  # noqa: B905 (not in Python 3.9)
        return pb_utils.InferenceResponse(
            [triton_tensors.write(spec["name"], array, spec["datatype"]) for spec, array in outputs]
        )
