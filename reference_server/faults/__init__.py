"""Switchable faults: each breaks one behaviour of the server, to show that a check can fail.

A fault replaces a step of the server (a function or method of its modules) with a body. The first argument of the body
is the original function:

    @fault("response.join", breaks="BIN-ORDER-O")
    def binary_outputs_in_reverse(original, head, binary):
        \"\"\"The server sends binary data of outputs in the reverse of the order in the JSON.\"\"\"
        return original(head, list(binary)[::-1])

`python -m reference_server --list-steps` lists the steps and their parameters; a body with other parameters is an error
when the faults are loaded. A fault's name is the function's, with hyphens; its docstring says what the server does.
Most faults are rows of a family instead (`families`), which need no signature.
`breaks` lists requirement ids of the suite: the suite must report exactly these as unmet. The first is the requirement
that the fault targets; the others are requirements that the fault cannot avoid breaking. Each module of this package
holds the faults of one area.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from types import ModuleType
from typing import Any

from reference_server.steps import check_parameters, find_definition

Body = Callable[..., Any]


@dataclass(frozen=True)
class Fault:
    """One fault.

    Attributes:
        name: name on the command line; `collect` gives a fault without one the name of its variable.
        steps: the replaced functions: "module.function" or "module.Class.method" of this server.
        breaks: ids of the requirements that the server no longer meets.
        body: takes the original step first, then the step's parameters.
        broad: whether the fault breaks too many requirements to list them; at least one check must fail.
        walks: the kind of requests that show the fault, such as "json", or "calls" for gRPC calls, if only requests
            that combine two features show it; otherwise "".
        in_discovery: whether the fault is visible during discovery.
    """

    name: str
    steps: tuple[str, ...]
    breaks: tuple[str, ...]
    body: Body
    broad: bool = False
    walks: str = ""
    in_discovery: bool = False

    @property
    def summary(self) -> str:
        """What the server does, in one sentence."""
        return (inspect.getdoc(self.body) or "").partition("\n")[0]

    @property
    def over_grpc(self) -> bool:
        """Whether the fault affects only gRPC; a fault in shared code is visible over HTTP."""
        return all(step.startswith("grpc_") for step in self.steps)

    @property
    def area(self) -> str:
        """The name of the fault's module."""
        return self.body.__module__.rpartition(".")[2]

    def says(self, sentence: str) -> Fault:
        """Say in one sentence what the server does, and return the fault."""
        self.body.__doc__ = sentence
        return self

    def check_parameters(self) -> None:
        """Check that the body takes the parameters of each step; raises the errors of `steps.check_parameters`."""
        for step in self.steps:
            check_parameters(self.body, step)


def fault(
    *replaced: str, breaks: str | Sequence[str] = (), broad: bool = False, walks: str = "", in_discovery: bool = False
) -> Callable[[Body], Fault]:
    """Return a decorator that turns a body into a fault; see `Fault` for the parameters."""

    def make(body: Body) -> Fault:
        ids = (breaks,) if isinstance(breaks, str) else tuple(breaks)
        return Fault(body.__name__.replace("_", "-"), replaced, ids, body, broad, walks, in_discovery)

    return make


@cache
def load() -> dict[str, Fault]:
    """Return every fault by name, in the order of the modules.

    Raises:
        AttributeError: a fault replaces a step that the server does not have.
        TypeError: a fault has other parameters than its step.

    Faults that affect only gRPC are not checked here, since the gRPC packages may be missing; `switch_on` checks them.
    """
    faults = collect(__name__, __path__)
    for found in faults.values():
        if not found.over_grpc:
            found.check_parameters()
    return faults


def collect(package: str, path: Iterable[str]) -> dict[str, Fault]:
    """Return the faults of the modules of a package by name, in the order of the modules."""
    modules = [importlib.import_module(f"{package}.{found.name}") for found in pkgutil.iter_modules(path)]
    faults = [_name_fault(name, value, module) for module in modules for name, value in _list_faults(module)]
    return {found.name: found for found in faults}


def _list_faults(module: ModuleType) -> list[tuple[str, Fault]]:
    """Return the faults of a module by variable; a private one is a part of others."""
    return [(name, value) for name, value in vars(module).items() if isinstance(value, Fault) and name[0] != "_"]


def _name_fault(variable: str, found: Fault, module: ModuleType) -> Fault:
    """Return a fault; name it after its variable if it has no name."""
    if found.name:
        return found
    found.body.__name__, found.body.__module__ = variable, module.__name__
    return replace(found, name=variable.replace("_", "-"))


@contextmanager
def switch_on(found: Fault) -> Iterator[None]:
    """Replace the steps by the fault, and restore them afterwards.

    Raises:
        AttributeError: the server has no such step.
        TypeError: the fault has other parameters than its step.
    """
    found.check_parameters()
    definitions = [find_definition(step) for step in found.steps]
    before = [vars(owner).get(name, _INHERITED) for owner, name in definitions]
    for owner, name in definitions:
        setattr(owner, name, _wrap_body(found.body, owner, name))
    try:
        yield
    finally:
        for (owner, name), old in zip(definitions, before, strict=True):
            if old is _INHERITED:
                delattr(owner, name)
            else:
                setattr(owner, name, old)


_INHERITED = object()


def _wrap_body(body: Body, owner: Any, name: str) -> Callable[..., Any]:
    """Return a function that runs a fault's body in place of a step; a coroutine function if the step is one."""
    original = getattr(owner, name)
    if inspect.iscoroutinefunction(original):

        @functools.wraps(original)
        async def call_async_body(*arguments: Any, **named: Any) -> Any:
            return await body(original, *arguments, **named)

        return call_async_body

    @functools.wraps(original)
    def call_body(*arguments: Any, **named: Any) -> Any:
        return body(original, *arguments, **named)

    return call_body
