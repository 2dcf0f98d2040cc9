"""Reads files from untrusted sources completely, or rejects them with an error message.

A path may be an endless pipe, a device that yields zeros, or a text nested until the stack overflows. So only regular
files up to a maximum size are read, and all errors of parsers become one exception.
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

# Bytes. Handwritten files are small; files written by a run are not.
MAX_HANDWRITTEN_BYTES: Final = 4 * 1024 * 1024
MAX_RUN_FILE_BYTES: Final = 1024 * 1024 * 1024


class UnreadableError(ValueError):
    """A file cannot be read, or has the wrong content; the message is one safe line without the file's name."""


class NotOpenedError(UnreadableError):
    """The file does not exist, or access is denied."""


def read_bytes(path: Path, max_bytes: int = MAX_HANDWRITTEN_BYTES) -> bytes:
    """Return the content of a regular file.

    Args:
        path: of the file; a link is followed.
        max_bytes: the maximum size of the file.

    Raises:
        NotOpenedError: the file does not exist, or access is denied.
        UnreadableError: the path is not a regular file, or the file is too large.
    """
    try:
        # Non-blocking: opening a pipe would otherwise wait for a writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            found = os.fstat(descriptor)
            if stat.S_ISDIR(found.st_mode):
                raise UnreadableError("is a folder")
            if not stat.S_ISREG(found.st_mode):
                raise UnreadableError("is not a regular file")
            if found.st_size > max_bytes:
                raise UnreadableError(f"is larger than {max_bytes} bytes")
            return file.read(max_bytes + 1)
    except OSError as error:
        raise NotOpenedError(error.strerror or "cannot be read") from error


def read_text(path: Path, max_bytes: int = MAX_HANDWRITTEN_BYTES) -> str:
    """Return the text of a UTF-8 file. Raises UnreadableError: see `read_bytes`; or the file is not UTF-8."""
    octets = read_bytes(path, max_bytes)
    return convert_errors(octets.decode)


def parse_toml(text: str) -> dict[str, Any]:
    """Parse a TOML text. Raises UnreadableError: the text is not TOML, or exceeds the limits of the parser."""
    return convert_errors(lambda: tomllib.loads(text), "not TOML: ")


def parse_json(text: str | bytes) -> Any:
    """Parse a JSON text. Raises UnreadableError: the text is not JSON, or exceeds the limits of the parser."""
    return convert_errors(lambda: json.loads(text), "not JSON: ")


def convert_errors(read: Callable[[], T], prefix: str = "") -> T:
    """Call `read`, and convert exceptions that malformed data causes, such as KeyError, to `UnreadableError`.

    Raises UnreadableError: `read` raised such an exception; the message begins with `prefix`.
    """
    try:
        return read()
    except RecursionError as error:
        raise UnreadableError(f"{prefix}nests too deeply") from error
    except UnreadableError:
        raise
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError) as error:
        raise UnreadableError(f"{prefix}{escape_text(_format_error(error), 300)}") from error


def _format_error(error: Exception) -> str:
    """Return the message of an error, with its type unless it is a ValueError."""
    return str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
