"""MLServer runtime for the model roles; the role.json beside each model-settings.json defines the role.

MLServer leaves it to the runtime to check names, datatypes and shapes of the inputs, and to select the outputs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import role_compute
from mlserver import MLModel
from mlserver.codecs import NumpyCodec
from mlserver.errors import InferenceError
from mlserver.types import InferenceRequest, InferenceResponse, RequestInput, ResponseOutput
from mlserver.utils import get_model_uri


class RoleModel(MLModel):
    """A model role."""

    async def load(self) -> bool:
        """Read the role."""
        self.role = json.loads(Path(await get_model_uri(self.settings)).read_text(encoding="utf-8"))
        return True

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        """Answer a request."""
        try:
            role_compute.check(self.role, [(each.name, _datatype(each), each.shape) for each in payload.inputs])
            arrays = role_compute.run(self.role, {each.name: _array(each) for each in payload.inputs})
            outputs = {
                spec["name"]: _output(spec["name"], spec["datatype"], array)
                for spec, array in zip(self.role["outputs"], arrays)  # noqa: B905 (not in Python 3.9)
            }
            wanted = [each.name for each in payload.outputs or []] or list(outputs)
            chosen = [outputs[name] for name in wanted]
        except KeyError as error:
            raise InferenceError(f"there is no output {error}") from error
        except (ValueError, TypeError, OverflowError) as error:  # numpy's errors for data that do not fit the tensor
            raise InferenceError(str(error)) from error
        return InferenceResponse(model_name=self.name, model_version=self.version, outputs=chosen)


def _datatype(given: RequestInput) -> str:
    return str(getattr(given.datatype, "value", given.datatype))


def _array(given: RequestInput) -> role_compute.Array:
    if _datatype(given) != "BYTES":
        array: role_compute.Array = NumpyCodec.decode_input(given)
        return array
    # NumpyCodec builds a fixed-width string array, which loses trailing zero bytes.
    elements = [each if isinstance(each, bytes) else str(each).encode() for each in _flat(given.data)]
    return role_compute.texts(elements, given.shape)


def _flat(data: Any) -> Iterator[Any]:
    """Yield the elements of nested arrays, row by row."""
    for each in getattr(data, "root", data):
        if isinstance(each, list):
            yield from _flat(each)
        else:
            yield each


def _output(name: str, datatype: str, array: role_compute.Array) -> ResponseOutput:
    # Not with NumpyCodec, which encodes NaN as null.
    return ResponseOutput(name=name, datatype=datatype, shape=list(array.shape), data=array.ravel().tolist())
