"""Conversion between tensors of Triton's python backend and numpy arrays.

The backend converts every datatype itself except BF16, which numpy lacks. BF16 is exchanged through DLPack, the
backend's other interface: a tensor is a C structure with a datatype code, and its bits are read and written as uint16.
"""

from __future__ import annotations

import ctypes
from math import prod
from typing import Any

import numpy as np
import triton_python_backend_utils as pb_utils

Array = np.ndarray[Any, Any]

CPU = (1, 0)  # kDLCPU, device 0
BFLOAT = 4  # kDLBfloat


class DLTensor(ctypes.Structure):
    """The first fields of the structure that a DLPack capsule points to (dlpack.h)."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class Bfloats:
    """A uint16 array that declares itself as BF16 through the DLPack protocol."""

    def __init__(self, array: Array) -> None:
        # Copied into separate, writable, row-major memory.
        self._capsule = np.array(array, np.uint16, order="C").__dlpack__()
        _tensor_of(self._capsule).code = BFLOAT
        # The backend takes ownership of the capsule and renames it, which numpy's destructor cannot handle.
        _set_destructor(self._capsule, None)

    def __dlpack__(self, stream: object = None) -> object:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return CPU


def read(tensor: Any, datatype: str) -> Array:
    """Return the elements of an input; BF16 as uint16."""
    if datatype != "BF16":
        array: Array = tensor.as_numpy()
        return array
    shape = tuple(tensor.shape())
    if 0 in shape:
        return np.zeros(shape, np.uint16)
    capsule = tensor.to_dlpack()
    memory = _tensor_of(capsule)
    return np.frombuffer(ctypes.string_at(memory.data + memory.byte_offset, 2 * prod(shape)), np.uint16).reshape(shape)


def write(name: str, array: Array, datatype: str) -> Any:
    """Return an output of the backend; BF16 is passed as uint16."""
    if datatype != "BF16":
        return pb_utils.Tensor(name, array)
    return pb_utils.Tensor.from_dlpack(name, Bfloats(array))


def _tensor_of(capsule: object) -> DLTensor:
    return DLTensor.from_address(_pointer(capsule, b"dltensor"))


_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_pointer.restype = ctypes.c_void_p
_set_destructor = ctypes.pythonapi.PyCapsule_SetDestructor
_set_destructor.argtypes = [ctypes.py_object, ctypes.c_void_p]
_set_destructor.restype = ctypes.c_int
