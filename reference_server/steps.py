"""The steps of the server that a fault can replace: the functions and methods of its modules, and their parameters."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

import reference_server

# Modules without steps: the command line, the faults, and this module.
_MODULES_WITHOUT_STEPS = ("__main__", "faults", "steps")

Definition = tuple[Any, str]


def find_definition(step: str) -> Definition:
    """Return the module or class that defines a step, and the name of the step in this module or class.

    `step`: "module.function" or "module.Class.method", as `list_names` yields them.

    Raises AttributeError: the server has no such step.
    """
    module, *classes, name = step.split(".")
    owner: Any = importlib.import_module(f"reference_server.{module}")
    for part in classes:
        owner = getattr(owner, part)
    getattr(owner, name)
    return owner, name


def list_names() -> Iterator[str]:
    """Yield every step, module by module in source order, without inherited methods.

    Raises ImportError: a package that the gRPC modules need is not installed.
    """
    for found in pkgutil.iter_modules(reference_server.__path__):
        if found.name not in _MODULES_WITHOUT_STEPS:
            module = importlib.import_module(f"reference_server.{found.name}")
            yield from (f"{found.name}.{name}" for name in _list_functions(module, module.__name__))


def _list_functions(owner: Any, module: str) -> Iterator[str]:
    for name, value in vars(owner).items():
        if inspect.isclass(value) and value.__module__ == module:
            yield from (f"{name}.{method}" for method in _list_functions(value, module))
        elif inspect.isfunction(value) and value.__module__ == module and _has_source(value):
            yield name


def _has_source(function: FunctionType) -> bool:
    """Say whether a function is written in a source file, unlike the generated methods of a dataclass."""
    return function.__code__.co_filename != "<string>"


def describe_step(step: str) -> str:
    """Return a step as a line: its name, its parameters, and the first line of its docstring."""
    owner, name = find_definition(step)
    function = getattr(owner, name)
    summary = (function.__doc__ or "").strip().partition("\n")[0]
    taken = ", ".join(inspect.signature(function).parameters)
    return f"{step}({taken})" + (f": {summary}" if summary else "")


def check_parameters(body: Callable[..., Any], step: str) -> None:
    """Check that a fault's body takes the original function and then the step's parameters.

    Raises:
        AttributeError: the server has no such step.
        TypeError: the body has other parameters.
    """
    owner, name = find_definition(step)
    parameters = inspect.signature(getattr(owner, name)).parameters.values()
    given = [parameter.name for parameter in parameters if parameter.kind is parameter.POSITIONAL_OR_KEYWORD]
    named = [parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY]
    row = inspect.unwrap(body)
    needs: frozenset[str] = getattr(getattr(row, "bodies", {}).get(step, row), "needs", frozenset())
    if unknown := needs - {*given, *named, *(["body"] if "http" in given else [])}:
        raise TypeError(f"{row.__name__} takes {', '.join(sorted(unknown))}, and cannot replace {describe_step(step)}")
    try:
        inspect.signature(body).bind(None, *given, **dict.fromkeys(named))
    except TypeError as error:
        taken = inspect.signature(body)
        raise TypeError(f"{body.__name__}{taken} cannot replace {describe_step(step)}: {error}") from None
