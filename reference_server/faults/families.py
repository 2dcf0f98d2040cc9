r"""Families of faults: a fault as a row, made of a step, a condition and an effect.

    line_end_behind_the_last_tensor = JOIN.after("BIN-BODY-O", lambda body: body + b"\n").says(
        "The server adds a line feed after the last binary output of an answer."
    )

The name of the variable is the fault's name. The functions of a row hide the signature of the step: a condition takes
those parameters of the step that it names, and `result`; a function that changes a value takes this value, and then
what it names. A name that the step does not have is an error when the faults are loaded. For a step that takes `http`,
functions may also take `body`, the body of the request as it was received.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, NoReturn

from reference_server.errors import InferenceError
from reference_server.faults import Fault

Function = Callable[..., Any]
Ids = str | Sequence[str]
Values = dict[str, Any]
RESULT, BODY = "result", "body"
OPTIONS = ("when", "broad", "walks", "in_discovery")


class Step(str):
    """The name of a step, and the families of faults that replace it.

    Each method returns a fault, and takes as options `broad`, `walks` and `in_discovery` of `Fault` and `when`, the
    condition. A fault without one applies to every call; a condition that takes `result` is asked after the step.
    """

    __slots__ = ()

    def after(self, breaks: Ids, change: Function, **options: Any) -> Fault:
        """`change` takes the result of the step and returns another."""
        return self._make_fault(breaks, options, result=change)

    def before(self, breaks: Ids, /, **changes: Any) -> Fault:
        """Each function of `changes` takes the argument of its name, or the result, and returns another."""
        options = {name: changes.pop(name) for name in OPTIONS if name in changes}
        return self._make_fault(breaks, options, result=changes.pop(RESULT, None), arguments=changes)

    def instead(self, breaks: Ids, answer: Function, **options: Any) -> Fault:
        """`answer` returns the result, and the step does not run."""
        return self._make_fault(breaks, options, instead=answer)

    def on_refusal(self, breaks: Ids, answer: Function, **options: Any) -> Fault:
        """If the step refuses, `answer` takes the error and returns a result, or raises another error."""
        return self._make_fault(breaks, options, refusal=answer)

    def refuse(
        self,
        breaks: Ids = (),
        when: Function | None = None,
        *,
        status: int | None = 400,
        afterwards: bool = False,
        **options: Any,
    ) -> Fault:
        """The server refuses with a status, before the step or afterwards; without one, it fails with an exception."""

        def raise_error(*_: Any) -> NoReturn:
            raise RuntimeError(MESSAGE) if status is None else InferenceError(MESSAGE, status)

        names_result = when is not None and RESULT in _list_parameters(when)
        effect = {RESULT if afterwards or names_result else "instead": raise_error}
        return self._make_fault(breaks, {"when": when, **options}, **effect)

    def _make_fault(self, breaks: Ids, options: Values, **functions: Any) -> Fault:
        effect = Effect(options.pop("when", None), **functions)

        def body(original: Function, *given: Any, **named: Any) -> Any:
            return effect.run(original, given, named)

        body.needs = effect.names  # type: ignore[attr-defined]
        return Fault("", (self,), (breaks,) if isinstance(breaks, str) else tuple(breaks), body, **options)


MESSAGE = "this server refuses such a request"


class EncodeOutput(Step):
    """The step that returns an output's entry in the JSON, and its binary data."""

    __slots__ = ()

    def change_entry(self, breaks: Ids, change: Function, **options: Any) -> Fault:
        """`change` takes the entry, may name `data` and the parameters of the step, and returns another entry."""

        def change_pair(pair: tuple[Any, Any], model: Any, output: Any, tensor: Any) -> tuple[Any, Any]:
            values = {"data": pair[1], "model": model, "output": output, "tensor": tensor}
            return _call(change, values, pair[0]), pair[1]

        if unknown := {*_list_parameters(change)[1:]} - {"data", "model", "output", "tensor"}:
            raise TypeError(f"a change of an entry takes {', '.join(sorted(unknown))}, which {self} does not have")
        return self.after(breaks, change_pair, **options)


def combine(breaks: Ids, *parts: Fault, **options: Any) -> Fault:
    """Return a fault with the effects of several, each on its own steps."""
    bodies = {str(step): part.body for part in parts for step in part.steps}

    def body(original: Function, *given: Any, **named: Any) -> Any:
        return bodies[_name_step(original)](original, *given, **named)

    body.bodies = bodies  # type: ignore[attr-defined]
    return Fault("", tuple(bodies), (breaks,) if isinstance(breaks, str) else tuple(breaks), body, **options)


# --- what a fault does to its step -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Effect:
    """A condition and what follows if it holds: the functions of a fault; see `Step`."""

    when: Function | None
    instead: Function | None = None
    result: Function | None = None
    refusal: Function | None = None
    arguments: Mapping[str, Function] = field(default_factory=dict)

    @cached_property
    def names(self) -> frozenset[str]:
        """The names that a step needs to have."""
        asked = [_list_parameters(function) for function in (self.when, self.instead) if function is not None]
        changing = [function for function in (self.result, self.refusal, *self.arguments.values()) if function]
        asked += [_list_parameters(function)[1:] for function in changing]
        return frozenset(self.arguments).union(*asked) - {RESULT}

    def run(self, original: Function, given: tuple[Any, ...], named: Values) -> Any:
        """Run the step, changed."""
        values = dict(zip(_inspect_step(original), given, strict=False)) | named
        if inspect.iscoroutinefunction(original):
            return self._run_async(original, values)
        arguments = dict(values)
        if not self._is_due(values):
            return original(**arguments)
        if self.instead is not None:
            return _call(self.instead, values)
        try:
            found = original(**self._change_arguments(arguments, values))
        except InferenceError as error:
            found = self._answer_refusal(error, values)
        return self._change_result(found, values)

    async def _run_async(self, original: Function, values: Values) -> Any:
        arguments = dict(values)
        if BODY in self.names:
            values[BODY] = await values["http"].body()
        if not self._is_due(values):
            return await original(**arguments)
        if self.instead is not None:
            return _call(self.instead, values)
        try:
            found = await original(**self._change_arguments(arguments, values))
        except InferenceError as error:
            found = self._answer_refusal(error, values)
        return self._change_result(found, values)

    def _is_due(self, values: Values) -> bool:
        return self.when is None or RESULT in _list_parameters(self.when) or bool(_call(self.when, values))

    def _change_arguments(self, arguments: Values, values: Values) -> Values:
        for name, function in self.arguments.items():
            arguments[name] = values[name] = _call(function, values, values[name])
        return arguments

    def _answer_refusal(self, error: InferenceError, values: Values) -> Any:
        if self.refusal is None:
            raise error
        return _call(self.refusal, values, error)

    def _change_result(self, found: Any, values: Values) -> Any:
        if self.result is None:
            return found
        known = {**values, RESULT: found}
        is_due = self.when is None or RESULT not in _list_parameters(self.when) or bool(_call(self.when, known))
        return _call(self.result, known, found) if is_due else found


def _call(function: Function, values: Values, *first: Any) -> Any:
    """Call a function with what it names; `first` are the arguments before these."""
    return function(*first, **{name: values[name] for name in _list_parameters(function)[len(first) :]})


@cache
def _list_parameters(function: Function) -> tuple[str, ...]:
    """Return the names of the parameters that a function of a fault needs."""
    parameters = inspect.signature(function).parameters.values()
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return tuple(each.name for each in parameters if each.kind in kinds and each.default is each.empty)


@cache
def _inspect_step(step: Function) -> tuple[str, ...]:
    return tuple(inspect.signature(step).parameters)


def _name_step(function: Function) -> str:
    return f"{function.__module__.removeprefix('reference_server.')}.{function.__qualname__}"
