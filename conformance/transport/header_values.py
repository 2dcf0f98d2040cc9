"""Expands header values that refer to an environment variable or a file.

    Authorization: Bearer ${TOKEN}    the value of an environment variable
    X-Key: @/run/secrets/key          the text of a file, without white space around it

So secrets need not be part of a command line, which every process of a machine can read, or of a shared file.
`$${` stands for a literal `${`, and `@@` at the beginning for a literal `@`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from conformance.spec import files
from conformance.transport.settings import SettingsError

_MAX_FILE_BYTES: Final = 64 * 1024  # bytes of a file that holds a value
_VARIABLE: Final = re.compile(r"(\$?)\$\{(?:(\w+)\})?")


def expand_headers(headers: Iterable[str]) -> list[str]:
    """Return the headers of the command line, each as "Name: value", with expanded values.

    Raises SettingsError: a variable is not set, or a file cannot be read.
    """
    return [_expand_header(header) for header in headers]


def _expand_header(header: str) -> str:
    name, colon, value = header.partition(":")
    return f"{name}:{expand(value.strip(), f'--target-header {name!r}')}" if colon else header


def expand(value: str, setting: str, folder: Path | None = None) -> str:
    """Expand a header value.

    `setting`: the option or setting that has the value; messages begin with it.
    `folder`: the base folder of relative file names; None: the current folder.

    Raises SettingsError: a variable is not set, or a file cannot be read.
    """
    if value.startswith("@") and not value.startswith("@@"):
        return _read_file((folder or Path()) / value[1:], setting)
    return expand_variables(value[1:] if value.startswith("@@") else value, setting)


def expand_variables(text: str, setting: str) -> str:
    """Replace each ${NAME} in the text by the value of the environment variable.

    Raises SettingsError: the environment has no such variable; the message begins with `setting`.
    """

    def find_value(found: re.Match[str]) -> str:
        if found[1]:
            return found[0][1:]
        if found[2] is None:
            raise SettingsError(
                f"{setting}: ${{ begins the name of a variable, ${{NAME}}; write $${{ for a literal ${{"
            )
        if found[2] not in os.environ:
            raise SettingsError(f"{setting}: the environment has no variable {found[2]}")
        return os.environ[found[2]]

    return _VARIABLE.sub(find_value, text)


def _read_file(path: Path, setting: str) -> str:
    try:
        return files.read_text(path, _MAX_FILE_BYTES).strip()
    except files.UnreadableError as error:
        hint = "" if path.exists() else "; write @@ for a value that begins with @"
        raise SettingsError(f"{setting}: cannot read the file {path}: {error}{hint}") from error
