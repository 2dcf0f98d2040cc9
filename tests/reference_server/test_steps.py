"""The steps that faults replace: each is listed with what it takes, and faults have to take the same."""

from __future__ import annotations

import subprocess
import sys

import pytest

from reference_server import response, steps
from reference_server.errors import InferenceError
from reference_server.faults import Fault, load, switch_on
from reference_server.faults import steps as steps_of_faults
from reference_server.faults.families import combine


def in_front(original: object, head: object, binary: object) -> None: ...
def too_little(original: object) -> None: ...
def too_much(original: object, head: object, binary: object, more: object) -> None: ...
def any_number(original: object, *arguments: object, **named: object) -> None: ...


def test_every_step_of_a_fault_is_listed() -> None:
    listed = set(steps.list_names())
    places = [steps.find_definition(step) for fault in load().values() for step in fault.steps if step not in listed]
    assert [name for owner, name in places if name in vars(owner)] == []  # the others are inherited
    assert listed > {"response.join", "framing.BinaryData.__init__", "grpc_methods.model_ready"}


def test_a_step_is_described_with_what_it_takes() -> None:
    assert steps.describe_step("response.join").startswith("response.join(head, binary): ")


@pytest.mark.parametrize("body", [in_front, any_number])
def test_a_body_that_takes_what_the_step_takes_fits(body: object) -> None:
    steps.check_parameters(body, "response.join")  # type: ignore[arg-type]


@pytest.mark.parametrize("body", [too_little, too_much])
def test_a_body_that_takes_something_else_is_named_with_its_step(body: object) -> None:
    with pytest.raises(TypeError, match=r"too_.* cannot replace response\.join\(head, binary\)"):
        steps.check_parameters(body, "response.join")  # type: ignore[arg-type]


@pytest.mark.parametrize("step", ["response.no_such_step", "models.Model.no_such_step"])
def test_a_step_that_is_not_there_is_an_error(step: str) -> None:
    with pytest.raises(AttributeError, match="no_such_step"), switch_on(Fault("x", (step,), (), any_number)):
        pass


def test_a_fault_over_grpc_is_held_to_its_step_when_it_is_switched_on() -> None:
    fault = Fault("x", ("grpc_methods.model_ready",), (), too_little)
    with pytest.raises(TypeError, match=r"cannot replace grpc_methods\.model_ready"), switch_on(fault):
        pass


def test_a_row_that_names_what_its_step_does_not_have_is_an_error() -> None:
    row = steps_of_faults.JOIN.after((), lambda body, http: body + http)
    with pytest.raises(TypeError, match=r"takes http, and cannot replace response\.join\(head, binary\)"):
        row.check_parameters()
    with pytest.raises(TypeError, match=r"takes http, which response\.encode_output does not have"):
        steps_of_faults.ENCODE_OUTPUT.change_entry((), lambda entry, http: entry | http)


def run_join(row: Fault, head: bytes, *binary: bytes) -> bytes:
    with switch_on(row):
        return response.join(head, binary)


def test_a_row_changes_arguments_and_the_result_where_its_condition_holds() -> None:
    row = steps_of_faults.JOIN.before(
        (), head=lambda head: head.upper(), binary=lambda binary, head: [head, *binary], result=lambda body: body + b"!"
    )
    assert run_join(steps_of_faults.JOIN.after((), lambda body: body[::-1]), b"ab", b"c") == b"cba"
    assert run_join(row, b"ab", b"c") == b"ABABc!"
    row = steps_of_faults.JOIN.after((), lambda body: body.lower(), when=lambda head, result: head in result[2:])
    assert (run_join(row, b"A", b"xxA"), run_join(row, b"A", b"xx")) == (b"axxa", b"Axx")


def test_a_row_refuses_before_its_step_or_afterwards() -> None:
    for row in (
        steps_of_faults.JOIN.refuse((), lambda head: head == b"no", status=413),
        steps_of_faults.JOIN.refuse((), lambda result: result == b"no", status=413),
    ):
        assert run_join(row, b"yes") == b"yes"
        with pytest.raises(InferenceError) as refusal:
            run_join(row, b"no")
        assert refusal.value.status == 413


def test_a_row_answers_for_its_step() -> None:
    refusing = steps_of_faults.JOIN.refuse((), status=413)
    assert run_join(steps_of_faults.JOIN.instead((), lambda head: head * 2), b"ab") == b"abab"
    row = steps_of_faults.JOIN.on_refusal((), lambda error, head: head + b"%d" % error.status)
    with switch_on(refusing):
        assert run_join(row, b"ab") == b"ab413"


def test_a_combined_fault_does_to_each_step_what_its_part_does() -> None:
    parts = (
        steps_of_faults.JOIN.after((), lambda body: body.upper()),
        steps_of_faults.FRAME.before((), head=lambda head: head + b"c"),
    )
    with switch_on(combine((), *parts)):
        assert response.frame(b"ab", [b"x"]).body == b"ABCX"


def test_the_command_line_lists_the_steps() -> None:
    command = [sys.executable, "-m", "reference_server", "--list-steps"]
    run = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert [line.partition("(")[0] for line in run.stdout.splitlines()] == list(steps.list_names())


def test_faults_are_listed_where_the_packages_of_grpc_are_not_installed() -> None:
    absent = "import sys; sys.modules.update(dict.fromkeys(('google', 'grpc', 'h2', 'tritonclient')))"
    program = f"{absent}; from reference_server import faults; print(len(faults.load()))"
    listed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert int(listed.stdout) == len(load())
