"""The record of options: what follows from it agrees with the parsers, the target file and its schema."""

from __future__ import annotations

import argparse
from dataclasses import fields
from typing import Any

import pytest

from conformance.commands import main
from conformance.spec import schemas
from conformance.spec.options import (
    OPTIONS,
    Option,
    add_run_options,
    format_arguments,
    list_given_arguments,
    read_target_values,
    read_value,
)
from conformance.spec.user_error import UserError
from conformance.transport.config import TargetConfig

VALUES: dict[type, Any] = {bool: True, list: ["a b", "c=d"], str: "text", float: 0.5, int: 0}
# What only the target file sets.
FILE_ONLY = {"never", "restart", "limits", "roles"}


def example(option: Option) -> Any:
    some = VALUES[option.kind]
    return (option.choices[-1:] if option.kind is list else option.choices[-1]) if option.choices else some


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_run_options(parser.add_argument)
    return parser.parse_args(arguments)


@pytest.mark.parametrize("option", OPTIONS.values(), ids=OPTIONS)
def test_a_formatted_option_is_parsed_to_the_same_value(option: Option) -> None:
    value = example(option)
    arguments = format_arguments({option.name: value})
    given = parse(arguments)
    assert getattr(given, option.dest) == (list(value) if option.kind is list else value)
    assert list_given_arguments(given, option.name) == arguments


def test_options_that_are_not_given_are_not_formatted() -> None:
    assert list_given_arguments(parse([]), "--target-", "--client-") == []
    assert format_arguments({"--target-url": None, "--target-ca": "", "--target-model": [], "--target-rate": 0}) == [
        "--target-rate=0"
    ]


def test_each_key_is_in_the_schema_of_the_target_file_and_in_its_record() -> None:
    keys = {option.key for option in OPTIONS.values() if option.key}
    tables = schemas.load_schema("target")["properties"]
    in_schema = {name for name in tables if name != "tls"} | {f"tls.{name}" for name in tables["tls"]["properties"]}
    assert keys == in_schema - FILE_ONLY
    assert set(read_target_values(parse([]))) == {field.name for field in fields(TargetConfig)} - FILE_ONLY


def test_each_subcommand_of_the_record_has_its_options() -> None:
    (top,) = [action for action in main.build_parser()._actions if action.dest == "command"]
    (below,) = [action for action in top.choices["client"]._actions if action.dest == "client_command"]  # type: ignore[index]
    (models,) = [action for action in top.choices["models"]._actions if action.dest == "action"]  # type: ignore[index]
    parsers = {**top.choices, **below.choices, **models.choices}  # type: ignore[dict-item]
    for option in OPTIONS.values():
        for command in option.commands:
            assert option.name in parsers[command]._option_string_actions, command


def test_a_text_that_is_no_number_is_one_line() -> None:
    with pytest.raises(UserError, match=r"^OIP_TARGET_TIMEOUT or oip_target_timeout is not a number: 'soon'$"):
        read_value("--target-timeout", parse([]), lambda _: "soon")
