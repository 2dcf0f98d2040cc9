"""Tests of tables: one test looks at every entry, and names all that fail."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest


def _all(*arguments: Any) -> str:
    return ", ".join(map(str, arguments))


def on_each(
    entries: Iterable[Any] | Callable[[], Iterable[Any]], name: Callable[..., str] = _all
) -> Callable[[Callable[..., None]], Any]:
    """Make one test of a body that looks at one entry of a table; thousands would cost more than what they look at.

    Fixtures are the body's arguments by keyword alone.

    Args:
        entries: what the body is called with, or a function that returns them when the test runs; plain tuples are
            several arguments.
        name: what an entry is called where it fails, from the same arguments.
    """

    def made(body: Callable[..., None]) -> Callable[..., None]:
        def test(**fixtures: Any) -> None:
            failed = []
            for entry in entries() if callable(entries) else entries:
                arguments = entry if type(entry) is tuple else (entry,)
                try:
                    body(*arguments, **fixtures)
                except Exception as error:
                    failed.append(f"{name(*arguments)}: {type(error).__name__}: {error}")
            if failed:
                pytest.fail("\n".join(failed), pytrace=False)

        parameters = inspect.signature(body).parameters.values()
        fixtures = [one for one in parameters if one.kind is one.KEYWORD_ONLY]
        test.__signature__ = inspect.Signature(fixtures)  # type: ignore[attr-defined]
        test.__name__, test.__doc__ = body.__name__, body.__doc__
        return test

    return made


def row_name(check: Any, row: Any) -> str:
    return f"{check.id} [{row.id}]"


def own_id(entry: Any) -> str:
    found: str = entry.id
    return found


def own_name(entry: Any) -> str:
    found: str = entry.name
    return found
