"""Files that people hand to us, and strangers to them: read whole, or refused with a sentence that says why.

A name may lead to a pipe that never ends, to a device that yields zeros for ever, or to a text that nests until the
stack is full. So only regular files are read, up to a size, and whatever a reader trips over is one kind of error.
"""

from __future__ import annotations

import json
import os
import stat
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

from conformance.spec.text import escape_text

T = TypeVar("T")

# Bytes. What people write is small; what a run writes is not.
MAX_HANDWRITTEN_BYTES: Final = 4 * 1024 * 1024
MAX_RUN_FILE_BYTES: Final = 1024 * 1024 * 1024


class UnreadableError(ValueError):
    """A file cannot be read, or is not what it should be; the message is one safe line without the file's name."""


class NotOpenedError(UnreadableError):
    """There is no such file, or it may not be read."""


def read_bytes(path: Path, most: int = MAX_HANDWRITTEN_BYTES) -> bytes:
    """Return what a regular file holds.

    Args:
        path: of the file; a link is followed.
        most: bytes that it may have.

    Raises:
        NotOpenedError: it is not there, or may not be read.
        UnreadableError: it is no regular file, or larger.
    """
    try:
        # Without waiting: to open a pipe would take until somebody writes to it.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            found = os.fstat(descriptor)
            if stat.S_ISDIR(found.st_mode):
                raise UnreadableError("is a folder")
            if not stat.S_ISREG(found.st_mode):
                raise UnreadableError("is no regular file")
            if found.st_size > most:
                raise UnreadableError(f"is larger than {most} bytes")
            return file.read(most + 1)
    except OSError as error:
        raise NotOpenedError(error.strerror or "cannot be read") from error


def read_text(path: Path, most: int = MAX_HANDWRITTEN_BYTES) -> str:
    """Return the text of a file in UTF-8.

    Raises:
        UnreadableError: see `read_bytes`; or it is not UTF-8.
    """
    octets = read_bytes(path, most)
    return convert_errors(octets.decode)


def parse_toml(text: str) -> dict[str, Any]:
    """Return what a text in TOML says.

    Raises:
        UnreadableError: it is not TOML, or says more than anybody reads.
    """
    return convert_errors(lambda: tomllib.loads(text), "not TOML: ")


def parse_json(text: str | bytes) -> Any:
    """Return what a text in JSON says.

    Raises:
        UnreadableError: it is not JSON, or says more than anybody reads.
    """
    return convert_errors(lambda: json.loads(text), "not JSON: ")


def convert_errors(read: Callable[[], T], prefix: str = "") -> T:
    """Return what a reader returns that trips over odd data in one of the ways of Python.

    Raises:
        UnreadableError: it tripped.
    """
    try:
        return read()
    except RecursionError as error:
        raise UnreadableError(f"{prefix}nests too deeply") from error
    except UnreadableError:
        raise
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError) as error:
        raise UnreadableError(f"{prefix}{escape_text(_said(error), 300)}") from error


def _said(error: Exception) -> str:
    """Return what an error says; of those whose text is a bare value, the kind, too."""
    return str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
