"""Writes the tables of a `--target-config` file: the models that fill roles, and deployed models without a role."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from conformance.discovery.deployed_model import SAMPLES
from conformance.roles import roles
from conformance.roles.declared_limits import LIMITS, Limits
from conformance.roles.guessed_inputs import UserInputs, UserTensor
from conformance.roles.placement import Placement
from conformance.spec.text import escape_text, join_some

BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")  # a TOML key that needs no quotes
MAX_LISTED_ROLES = 8
FILL_IN = "Replace each ... by a value that the model accepts, and remove the # of these lines:"
LIMITS_HEAD = """
# What the server cannot do at all: rows that need more do not apply, and the verdict names these limits.
# Without this table such rows need models (`oip-conformance models export`), and the verdict is partial.
# """
PLACEHOLDERS = {"datatype": '"..."', "shape": "[...]", "data": "[...]  # row by row"}


def format_limits_table(limits: Limits) -> str:
    """Return the TOML table of the limits of a server."""
    lines = [f"{name} = {json.dumps(value)}  # {LIMITS[name].meaning}\n" for name, value in limits.items()]
    return f"\n[limits]\n{''.join(lines)}"


def format_proposed_limits(proposed: Limits) -> str:
    """Return a TOML comment with the limits that deployed models suggest; only the user knows whether they hold."""
    return LIMITS_HEAD + format_limits_table(proposed).lstrip().replace("\n", "\n# ").removesuffix("# ")


def format_roles_table(found: Mapping[str, Placement]) -> str:
    """Return the TOML table of roles and their models, or a comment if no model fills any role."""
    every = roles.load()
    missing = [role for role in every if role not in found]
    of_packs = [role for role in found if role not in every]
    if not found:
        return "\n# No model of this server fills a role of the suite (`oip-conformance roles`).\n"
    count = f"{len(every) - len(missing)} of {len(every)}"
    title = f"\n# {count} roles are filled by models of this server; the others are not judged.\n"
    lines = "".join(f"{role} = {_format_placement(found[role])}\n" for role in (*every, *of_packs) if role in found)
    rest = f"# without a model: {join_some(missing, MAX_LISTED_ROLES)} (`oip-conformance roles`)\n" if missing else ""
    return f"{title}[roles]\n{lines}{rest}"


def format_model_tables(models: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a TOML table for each model without a role. `models` is `DiscoveryResult.models`."""
    if not models:
        return ""
    title = (
        "\n# Models without a role, judged by their own answers to plain requests: the same as --target-model NAME.\n"
    )
    return title + "\n".join(_format_model(name, model) for name, model in models.items())


def format_input_tables(models: Mapping[str, UserInputs]) -> str:
    """Return a TOML table for each model input that the user gives."""
    return "".join(
        _format_input(name, place, tensor) for name, given in models.items() for place, tensor in given.items()
    )


def _format_input(model: str, name: str, tensor: UserTensor) -> str:
    members = {
        **({"datatype": quote(tensor.datatype)} if tensor.datatype else {}),
        "shape": str(list(tensor.shape)),
        "data": f"[{', '.join(_format_element(element) for element in tensor.data)}]",
    }
    lines = [f"{member} = {value}" for member, value in members.items()]
    return "\n".join(["", f"[models.{_quote_key(model)}.inputs.{_quote_key(name)}]", *lines, ""])


def _format_element(element: object) -> str:
    """Format an element as TOML, which has the same numbers and booleans as JSON."""
    return quote(element) if isinstance(element, str) else json.dumps(element)


def _format_model(name: str, model: Mapping[str, Any]) -> str:
    table = f"models.{_quote_key(name)}"
    signature = (
        f"{_format_tensors(model['inputs'])} -> {_format_tensors(model['outputs'])}"
        if model["inputs"]
        else "unknown tensors"
    )
    if not model["trouble"]:
        samples = [f"# {line}" for line in format_samples(name, model)]
        return "\n".join([f"[{table}]  # {signature}; accepts inputs made from its metadata", *samples]) + "\n"
    refusal = f"# {escape_text(model['refusal'], 400)}"
    if not model["missing"]:  # no input of a user would help, and an active table would abort the run
        return f"# [{table}]\n{refusal}\n"
    return "\n".join([f"[{table}]  # {signature}", refusal, f"# {FILL_IN}", *_format_placeholders(table, model)]) + "\n"


def format_samples(name: str, model: Mapping[str, Any]) -> list[str]:
    """Return the TOML lines for samples that the user has to complete; empty if the model needs none."""
    if model["missing"] != SAMPLES:
        return []
    lines = []
    for tensor in model["sent"]:
        lines += [f"[models.{_quote_key(name)}.inputs.{_quote_key(tensor['name'])}]", f"shape = {tensor['shape']}"]
        lines += [f"data = [[...], [...]]  # {tensor['datatype']}, row by row: samples with different answers"]
    return lines


def _format_placeholders(table: str, model: Mapping[str, Any]) -> Iterator[str]:
    """Yield TOML comments for the user to complete: a table for each input in the metadata, or one example table."""
    for tensor in model["inputs"]:
        sizes = ", ".join("..." if size < 0 else str(size) for size in tensor["shape"])
        yield f"# [{table}.inputs.{_quote_key(tensor['name'])}]"
        yield f"# shape = [{sizes}]"
        yield f"# data = [...]  # {tensor['datatype']}, row by row"
    if not model["inputs"]:
        yield f"# [{table}.inputs.NAME]"
        yield from (f"# {member} = {value}" for member, value in PLACEHOLDERS.items())


def _format_tensors(tensors: Sequence[Mapping[str, Any]]) -> str:
    return escape_text(", ".join(f"{each['name']} {each['datatype']} {each['shape']}" for each in tensors), 300)


def _format_placement(placement: Placement) -> str:
    members: Sequence[tuple[str, Mapping[str, str]]] = (
        ("inputs", placement.names.inputs),
        ("outputs", placement.names.outputs),
    )
    version = [f"version = {quote(placement.version)}"] if placement.version else []
    parts = [*version, *(f"{member} = {{ {_format_renames(names)} }}" for member, names in members if names)]
    model = quote(placement.model)
    return f"{{ model = {model}, {', '.join(parts)} }}" if parts else model


def _format_renames(names: Mapping[str, str]) -> str:
    return ", ".join(f"{ours} = {quote(theirs)}" for ours, theirs in names.items())


def _quote_key(text: str) -> str:
    return text if BARE_KEY.fullmatch(text) else quote(text)


def quote(text: str) -> str:
    """Quote a text as a TOML basic string. The result is a JSON string in which DEL is escaped as well."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
