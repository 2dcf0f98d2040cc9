"""What is altered in the honest client: to make it wrong (`faults`), or different and right (`variations`).

An alteration replaces one function or method of the client by a body that gets the original first:

    @fault("request.json_length", misses="CLIENT-SENDS-HEADER-LENGTH")
    def counts_characters(original, text):
        \"\"\"The inference header counts the characters of the JSON.\"\"\"
        return str(len(text.decode()))

Its name is the function's, with hyphens; its docstring says what the client does, in one sentence. `misses` names the
requirements that the client no longer meets, and for which alone it is to be named: first the one that the fault is
about, then those that cannot help seeing it.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cache
from operator import attrgetter
from typing import Any
from unittest.mock import patch

Body = Callable[..., Any]
Original = Callable[..., Any]
CLIENT = "tests.clients.honest"
ROW = "row"  # the name of an alteration that has none before it is loaded


@dataclass(frozen=True)
class Alteration:
    """One alteration.

    Attributes:
        steps: what is replaced, "module.function" or "module.Class.method" of the client.
        misses: the requirements that the client no longer meets; empty for a variation without advice.
        body: takes the original step first, then what the step takes.
        broad: it breaks so much that rows about other requirements cannot help seeing it, or come to no verdict.
        datatypes: the datatypes that it concerns; empty if any.
    """

    name: str
    steps: tuple[str, ...]
    misses: tuple[str, ...]
    body: Body
    broad: bool = False
    datatypes: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        """What the client does, in one sentence."""
        return (inspect.getdoc(self.body) or "").partition("\n")[0]

    @property
    def subject(self) -> str:
        """The module in which it stands."""
        return self.body.__module__.rpartition(".")[2]

    def says(self, sentence: str) -> Alteration:
        """Say in one sentence what the client does, and return the alteration."""
        self.body.__doc__ = sentence
        return self

    @property
    def transports(self) -> tuple[str, ...]:
        """Over which transports the client is another: by the modules of the steps."""
        if all(step.startswith("grpc_") for step in self.steps):
            return ("grpc",)
        shared = any(step.startswith(("tensors.", "lines.", "grpc_")) for step in self.steps)
        return ("http", "grpc") if shared else ("http",)


def alteration(*steps: str, misses: str = "", broad: bool = False, datatypes: str = "") -> Callable[[Body], Alteration]:
    """Make an alteration of a body; requirements and datatypes are separated by blanks.

    With datatypes, what the step takes first is a tensor or a datatype; of others than these the step is the original.
    """

    def made(body: Body) -> Alteration:
        named = tuple(datatypes.split())
        altered = _limited(body, named) if named else body
        return Alteration(body.__name__.replace("_", "-"), steps, tuple(misses.split()), altered, broad, named)

    return made


def _limited(body: Body, datatypes: Sequence[str]) -> Body:
    @functools.wraps(body)
    def altered(original: Original, subject: Any, *others: Any) -> Any:
        is_meant = getattr(subject, "datatype", subject) in datatypes
        return body(original, subject, *others) if is_meant else original(subject, *others)

    return altered


fault = variation = alteration


@cache
def load(kind: str) -> dict[str, Alteration]:
    """Return every alteration of a kind, `faults` or `variations`, by name."""
    package = importlib.import_module(f"tests.clients.{kind}")
    modules = [
        importlib.import_module(f"{package.__name__}.{one.name}") for one in pkgutil.iter_modules(package.__path__)
    ]
    found = [
        _name_row(variable, value, module.__name__)
        for module in modules
        for variable, value in vars(module).items()
        if isinstance(value, Alteration)
    ]
    return {one.name: one for one in found}


def _name_row(variable: str, found: Alteration, module: str) -> Alteration:
    """Return an alteration; name it after its variable if it is a row of `steps`."""
    if found.name != ROW:
        return found
    found.body.__name__, found.body.__module__ = variable, module
    return replace(found, name=variable.replace("_", "-"))


@contextmanager
def apply(*altered: Alteration, taken: Callable[[], object] = lambda: None) -> Iterator[None]:
    """Alter the client of this process; `taken` is called whenever an altered step is taken."""
    with ExitStack() as stack:
        for one in altered:
            for step in one.steps:
                stack.enter_context(_replaced(step, one.body, taken))
        yield


@contextmanager
def _replaced(step: str, body: Body, taken: Callable[[], object]) -> Iterator[None]:
    module, _, inner = step.partition(".")
    place, _, name = inner.rpartition(".")
    owner: Any = importlib.import_module(f"{CLIENT}.{module}")
    owner = attrgetter(place)(owner) if place else owner
    original = getattr(owner, name)

    @functools.wraps(original)
    def replacement(*arguments: Any, **named: Any) -> Any:
        taken()
        return body(original, *arguments, **named)

    with patch.object(owner, name, replacement):
        yield
