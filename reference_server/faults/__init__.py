"""Switchable faults: the server made wrong in one place, to show that a check can fail.

A fault replaces one step of the server, a function or method of its modules, by a body that gets the original first:

    @fault("response.join", breaks="BIN-ORDER-O")
    def binary_outputs_in_reverse(original, head, binary):
        \"\"\"Binary data follow the JSON in reverse.\"\"\"
        return original(head, list(binary)[::-1])

`python -m reference_server --list-steps` lists the steps and what they take; a body that takes something else is an
error as soon as the faults are loaded. A fault's name is the function's, with hyphens; its docstring says what the
server does. `breaks` names the requirements, as ids of the suite's ledger: these and no others are to be found unmet.
The one that the fault is about comes first; those that cannot help seeing it follow. The bodies stand in the modules
of this package, by area.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

from reference_server import steps

Body = Callable[..., Any]


@dataclass(frozen=True)
class Fault:
    """One fault.

    Attributes:
        name: on the command line.
        steps: what is replaced: "module.function" or "module.Class.method" of this server.
        breaks: ids of the requirements that the server no longer meets.
        body: takes the original step first, then what the step takes.
        broad: it breaks so much that nobody can say which checks fail; it only must not go unseen.
        large: it shows only in what the suite's quick profile leaves out, the large and the many alike.
        walks: the kind of request by which it shows in the suite's walk, where it takes two things at once; else "".
        surveyed: it shows while the suite looks at what the server offers.
    """

    name: str
    steps: tuple[str, ...]
    breaks: tuple[str, ...]
    body: Body
    broad: bool = False
    large: bool = False
    walks: str = ""
    surveyed: bool = False

    @property
    def summary(self) -> str:
        """What the server does, in one sentence."""
        return (inspect.getdoc(self.body) or "").partition("\n")[0]

    @property
    def over_grpc(self) -> bool:
        """Whether it is over gRPC alone; a fault of what both transports share is seen over HTTP."""
        return all(step.startswith("grpc_") for step in self.steps)

    @property
    def area(self) -> str:
        """The module in which it stands."""
        return self.body.__module__.rpartition(".")[2]

    def require_fit(self) -> None:
        """Require that the body takes what each step takes; raises what `steps.require_fit` raises."""
        for step in self.steps:
            steps.require_fit(self.body, step)


def fault(
    *replaced: str,
    breaks: str | Sequence[str] = (),
    broad: bool = False,
    large: bool = False,
    walks: str = "",
    surveyed: bool = False,
) -> Callable[[Body], Fault]:
    """Make a fault of a body; see `Fault`."""

    def make(body: Body) -> Fault:
        ids = (breaks,) if isinstance(breaks, str) else tuple(breaks)
        return Fault(body.__name__.replace("_", "-"), replaced, ids, body, broad, large, walks, surveyed)

    return make


@cache
def load() -> dict[str, Fault]:
    """Return every fault by name, in the order of the modules.

    Raises:
        AttributeError: the server has no step that a fault replaces.
        TypeError: a fault takes something else than its step. For faults over gRPC, whose packages may be missing, both
            are raised by `switch_on`.
    """
    modules = [importlib.import_module(f"{__name__}.{found.name}") for found in pkgutil.iter_modules(__path__)]
    faults = [value for module in modules for value in vars(module).values() if isinstance(value, Fault)]
    for found in faults:
        if not found.over_grpc:
            found.require_fit()
    return {found.name: found for found in faults}


@contextmanager
def switch_on(found: Fault) -> Iterator[None]:
    """Put the fault in the place of its steps, and the steps back afterwards.

    Raises:
        AttributeError: the server has no such step.
        TypeError: the fault takes something else than its step.
    """
    found.require_fit()
    places = [steps.find_place(step) for step in found.steps]
    before = [vars(owner).get(name, _INHERITED) for owner, name in places]
    for owner, name in places:
        setattr(owner, name, _replacement(found.body, owner, name))
    try:
        yield
    finally:
        for (owner, name), old in zip(places, before, strict=True):
            if old is _INHERITED:
                delattr(owner, name)
            else:
                setattr(owner, name, old)


_INHERITED = object()


def _replacement(body: Body, owner: Any, name: str) -> Callable[..., Any]:
    """Return a function, so that it becomes a method where the step is one; a coroutine where the step is one."""
    original = getattr(owner, name)
    if inspect.iscoroutinefunction(original):

        @functools.wraps(original)
        async def step(*arguments: Any, **named: Any) -> Any:
            return await body(original, *arguments, **named)

        return step

    @functools.wraps(original)
    def plain(*arguments: Any, **named: Any) -> Any:
        return body(original, *arguments, **named)

    return plain
