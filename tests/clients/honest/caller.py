"""What a caller asks of the client, and what it is given."""

from __future__ import annotations

from dataclasses import dataclass

BINARY = "binary"


class UnsupportedError(Exception):
    """The client has no way to ask for this."""


class MalformedError(Exception):
    """An answer that contradicts itself or the documents."""


class RefusedError(Exception):
    """The error that the caller gets.

    Attributes:
        status: of HTTP, or the name of gRPC's code; empty where there is none.
    """

    def __init__(self, message: str, status: str = "") -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Tensor:
    """A tensor.

    Attributes:
        data: its binary form: little-endian, row-major, each element of BYTES behind its length in 4 bytes.
        form: how it is to be sent, `binary` or `json`.
    """

    name: str
    datatype: str
    shape: tuple[int, ...]
    data: bytes
    form: str = BINARY

    @property
    def is_binary(self) -> bool:
        return self.form == BINARY


@dataclass(frozen=True)
class RequestedOutput:
    """An output that is asked for; `form` and `classes` are None where nothing is said of them."""

    name: str
    form: str | None = None
    classes: int | None = None


@dataclass(frozen=True)
class CallerRequest:
    """One inference that is asked for; None is what is left out."""

    model: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[RequestedOutput, ...] | None = None
    all_outputs: str | None = None
    id: str | None = None
    version: str | None = None
    is_raw: bool = False
    coding: str | None = None
    accepts: str | None = None


@dataclass(frozen=True)
class Class:
    """One class of a classified output."""

    value: str
    index: int
    label: str | None = None


@dataclass(frozen=True)
class CallerResult:
    """What the caller is given: the outputs, and the id of the answer."""

    outputs: tuple[Tensor, ...]
    id: str | None = None
