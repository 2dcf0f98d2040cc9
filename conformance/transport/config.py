"""The settings of one target: from the file of `--target-config`, defined by `schemas/target.schema.json`, and options.

The command line, the environment and pytest's ini file take precedence over the file. An error message is one line
that names the file, the setting, and the remedy.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from conformance.roles import roles
from conformance.roles.declared_limits import Limits, drop_empty, find_excess_of_role
from conformance.roles.guessed_inputs import UserInputs, UserTensor
from conformance.roles.placement import Placement
from conformance.spec import files, options, schemas
from conformance.transport import settings
from conformance.transport.header_values import expand, expand_headers, expand_variables
from conformance.transport.settings import DEFAULT_TIMEOUT_S, Settings, SettingsError
from conformance.wire.request import Names


@dataclass(frozen=True, slots=True)
class TargetConfig:
    """The settings of a target from its file and from options; None or empty if they are not set.

    Attributes:
        headers: the headers, each as "Name: value" with an expanded value; never part of an error message.
        never: patterns of checks that the suite must not run.
        restart: see `Restart.command`; never part of an error message.
        roles: role -> placement; None: the suite finds models by the names of the roles.
        limits: the limits of the server (`roles.declared_limits`).
        models: deployed model to judge -> the inputs that the user defines for the model; empty inputs are generated
            from the model's metadata.
    """

    url: str | None = None
    grpc: str | None = None
    timeout: float | None = None
    rate: float | None = None
    headers: tuple[str, ...] = field(default=(), repr=False)
    tls_ca: str | None = None
    tls_insecure: bool = False
    extensions: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    restart: str = field(default="", repr=False)
    roles: Mapping[str, Placement] | None = None
    limits: Limits = field(default_factory=dict)
    models: Mapping[str, UserInputs] = field(default_factory=dict)

    def override(self, values: Mapping[str, Any]) -> TargetConfig:
        """Return the settings with other values, by field; a value that is not given leaves that of the file.

        A header replaces those of the file with the same name. Models are judged before those of the file.
        """
        given = {name: value for name, value in values.items() if options.is_given(value)}
        own = tuple(given.pop("headers", ()))
        names = {_parse_header_name(header) for header in own}
        headers = (*(header for header in self.headers if _parse_header_name(header) not in names), *own)
        models = {**{name: {} for name in given.pop("models", ())}, **self.models}
        return replace(self, **given, headers=headers, models=models)

    def build_settings(self, url: str, grpc: str | None = None) -> Settings:
        """Return the settings of connections to these addresses.

        Raises SettingsError: an address, a header, the certificates, the timeout or the rate cannot be used.
        """
        if self.tls_ca and not Path(self.tls_ca).is_file():
            raise SettingsError(f"--target-ca {self.tls_ca}: no such file")
        made = settings.make_settings(
            url,
            self.headers,
            ca_file=self.tls_ca,
            insecure=self.tls_insecure,
            timeout=DEFAULT_TIMEOUT_S if self.timeout is None else self.timeout,
            grpc=grpc,
            rate=self.rate,
            restart=self.restart,
        )
        made.build_ssl_context()
        return made


def read_options(
    given: Any,
    file: TargetConfig | None = None,
    ini: Callable[[str], Any] | None = None,
    chosen: Mapping[str, Any] = MappingProxyType({}),
) -> TargetConfig:
    """Return the settings of a file, overridden by a parsed command line.

    Args:
        given: the parsed command line, as a namespace.
        file: the settings of the file, if there is one.
        ini: see `options.read_value`.
        chosen: values that override all others, by field.

    Raises UserError: a header refers to a variable or a file that does not exist, or a number is none.
    """
    values = options.read_target_values(given, ini)
    return (file or TargetConfig()).override({**values, "headers": expand_headers(values["headers"]), **chosen})


def load_given(path: str | None) -> TargetConfig:
    """Read the settings from the file of `--target-config`; empty without a file. Raises SettingsError: see `load`."""
    return load(Path(path)) if path else TargetConfig()


def _parse_header_name(header: str) -> str:
    return header.partition(":")[0].strip().lower()


def load(path: Path) -> TargetConfig:
    """Read the settings from the file.

    Raises SettingsError: the file cannot be read, is not TOML, violates the schema, or names a variable, file, role or
    tensor that does not exist.
    """
    entries = read_entries(path)
    try:
        return build_config(entries, path.parent)
    except SettingsError as error:
        raise SettingsError(f"--target-config {path}: {error}") from None


def read_entries(path: Path) -> dict[str, Any]:
    """Return the entries of the file unchanged, without expanding environment variables or reading other files.

    Raises SettingsError: the file cannot be read, is not TOML, or violates the schema.
    """
    try:
        entries = files.parse_toml(files.read_text(path))
        _validate_schema(entries)
    except (files.UnreadableError, SettingsError) as error:
        raise SettingsError(f"--target-config {path}: {error}") from error
    return entries


def _validate_schema(entries: Mapping[str, Any]) -> None:
    error = schemas.find_error(entries, schemas.load_schema("target"))
    if error is not None:
        place = ".".join(str(part) for part in error.absolute_path)
        if place.startswith("headers"):  # the message of jsonschema quotes the value
            raise SettingsError(f"{place}: the name and the value of a header are texts")
        raise SettingsError(f"{place}: {error.message}" if place else error.message)


def build_config(entries: Mapping[str, Any], folder: Path) -> TargetConfig:
    """Build the configuration from entries that are valid under the schema.

    Raises SettingsError: a variable is not set, a file cannot be read, or a role or tensor does not exist.
    """
    limits = drop_empty(entries.get("limits", {}))
    tls, placed = entries.get("tls", {}), entries.get("roles")
    return TargetConfig(
        url=expand_variables(entries["url"], "url") if "url" in entries else None,
        grpc=expand_variables(entries["grpc"], "grpc") if "grpc" in entries else None,
        headers=tuple(
            f"{name}: {expand(value, f'headers.{name}', folder)}" for name, value in entries.get("headers", {}).items()
        ),
        timeout=entries.get("timeout"),
        rate=entries.get("rate"),
        tls_ca=str(folder / tls["ca"]) if "ca" in tls else None,
        tls_insecure=tls.get("insecure", False),
        extensions=tuple(entries.get("extensions", ())),
        never=tuple(entries.get("never", ())),
        restart=entries.get("restart", ""),
        limits=limits,
        roles=placed and {role: _parse_placement(role, entry, limits) for role, entry in placed.items()},
        models=build_user_inputs(entries.get("models", {})),
    )


def build_user_inputs(tables: Mapping[str, Any]) -> dict[str, UserInputs]:
    """Convert the tables `models.NAME` of a file to the inputs that the user defines for each model."""
    return {
        model: {
            name: UserTensor(tuple(tensor["shape"]), tensor["data"], tensor.get("datatype", ""))
            for name, tensor in table.get("inputs", {}).items()
        }
        for model, table in tables.items()
    }


def format_tables(models: Mapping[str, UserInputs]) -> dict[str, Any]:
    """Convert the user's inputs for each model to the tables that `build_user_inputs` reads."""
    return {
        model: {"inputs": {name: _build_table(tensor) for name, tensor in given.items()}}
        for model, given in models.items()
    }


def _build_table(tensor: UserTensor) -> dict[str, Any]:
    datatype = {"datatype": tensor.datatype} if tensor.datatype else {}
    return {**datatype, "shape": list(tensor.shape), "data": list(tensor.data)}


def _parse_placement(role: str, entry: str | Mapping[str, Any], limits: Limits) -> Placement:
    _expect_known_name(role, roles.load_with_packs(), "roles", "role")
    if excess := find_excess_of_role(limits, roles.load_with_packs()[role]):
        raise SettingsError(f"roles.{role}: the role has {excess[1]}, beyond limits.{excess[0]}: remove one of the two")
    if isinstance(entry, str):
        return Placement(entry)
    found = roles.load_with_packs()[role]
    for member, specs in (("inputs", found.inputs), ("outputs", found.outputs)):
        for name in entry.get(member, {}):
            _expect_known_name(name, [spec.name for spec in specs], f"roles.{role}.{member}", "tensor")
    return Placement(entry["model"], entry.get("version", ""), Names(entry.get("inputs", {}), entry.get("outputs", {})))


def _expect_known_name(name: str, names: Collection[str], setting: str, kind: str) -> None:
    if name not in names:
        near = difflib.get_close_matches(name, names, 1) or sorted(names)[:4]
        hint = "; name the pack of a role in `extensions`" if kind == "role" else ""
        raise SettingsError(f"{setting}: there is no {kind} {name!r}; similar: {', '.join(near)}{hint}")
