"""`REPRODUCE.md` of a folder: how to verify it and repeat the run; generated from manifest and report alone."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping

from conformance.certification.manifest import Manifest
from conformance.discovery.config_tables import format_input_tables, format_limits_table, format_roles_table
from conformance.report import markdown
from conformance.report.findings import find_requirement
from conformance.roles.declared_limits import describe_limits
from conformance.roles.guessed_inputs import UserInputs
from conformance.roles.placement import Placement
from conformance.spec.check import format_key
from conformance.spec.ledger import Party
from conformance.spec.options import format_arguments
from conformance.spec.outcome import CONFORMANT, INTEROPERABLE, PARTIAL
from conformance.spec.report import Report
from conformance.transport import client_names
from conformance.transport.config import build_user_inputs
from conformance.transport.settings import DEFAULT_TIMEOUT_S

_TEXT = """\
# {label} by {vendor}

Judged by oip-conformance {version} under the profile `{profile}`{standing}{models}. Contact: {contact}

## Verify this folder

    pip install 'oip-conformance[{extras}]=={version}'{packs}
    oip-conformance verify .

Every exchange of the run is in `run.har.xz`. `verify` judges it again, without the {party}, and compares.
{names}
## Make the run again

{product}{preparation}:

    {command}
{file}"""
_NAMES_SECTION = """
## Under which names

{names}
"""

_STANDINGS: Mapping[str, str] = {
    CONFORMANT: "",
    PARTIAL: """, and certified as partial: it meets {met} of the {of} MUSTs that
apply; the others were not judged""",
    INTEROPERABLE: """, and certified as interoperable: it meets every MUST about
exchanges and the transport, but not every MUST about refusals""",
}

_PREPARE_ADAPTER = "Install the client and an adapter of it (docs/clients.md), and"
_ROLES = "the model roles (`oip-conformance models export`)"
_FILE = """
`target.toml` contains {what}:

```toml{tables}```
"""
_NAMES, _INPUTS = "the names of the models that fill the roles on this server", "inputs for models"
_LIMITS = "the limits of this server"


def render(made: Manifest, report: Report) -> str:
    """Return the text of `REPRODUCE.md` for a manifest and a report."""
    is_client = made.party == Party.CLIENT
    packs = ", ".join(f"{pack['name']} {pack['version']}" for pack in made.packs or ())
    limits = f", for a server {describe_limits(made.limits)}" if made.limits else ""
    return _TEXT.format(
        label=markdown.text(made.label),
        vendor=markdown.text(made.vendor),
        contact=markdown.text(made.contact),
        profile=made.profile,
        standing=_STANDINGS[made.standing].format(**made.coverage or {}) + limits,
        version=made.suite["version"],
        extras="grpc,signing" if "grpc" in report["target"] else "signing",
        packs=f"  # and the pack {packs}" if packs else "",
        product="".join(f"{line}\n" for line in _list_product_lines(made)),
        party=made.party,
        names="" if is_client else _NAMES_SECTION.format(names=_describe_client_names(report)),
        models=f", with the deployed models {models}" if (models := _format_models(report)) else "",
        preparation=_PREPARE_ADAPTER if is_client else f"Deploy {_describe_deployment(report)}, start the server, and",
        command=shlex.join(_build_command(made, report)),
        file=_render_target_file(made),
    )


def _format_models(report: Report) -> str:
    """Return the deployed models that were judged, as text; empty if there were none."""
    return ", ".join(markdown.code(name, 100) for name in report["options"].get("models", []))


def _describe_deployment(report: Report) -> str:
    models, has_roles = _format_models(report), bool(report["target"]["roles"])
    return " and ".join([*([_ROLES] if has_roles or not models else []), *([f"the models {models}"] if models else [])])


def _describe_client_names(report: Report) -> str:
    """Return as text how many rows were sent under the names of other clients, and whether a name changed an answer."""
    sent = [row for row in report["rows"] if row["exchanges"]]
    refused = report["target"].get("refused_clients", {})
    chosen = [
        client_names.choose_names(report["seed"], format_key(row["check"], row["row"]), refused)[0] for row in sent
    ]
    accepted = [client.http for name, client in client_names.COMMON_NAMES.items() if name not in refused]
    usual = [client for client in chosen if client is not client_names.OWN_CLIENT]
    differing = [row for row in sent if find_requirement(row).startswith("OIP-CLIENT-NAME") and row["failure"]]
    found = (
        f"{len(differing)} rows got other answers than under the name {client_names.OWN_CLIENT.http}"
        if differing
        else ""
    )
    return (
        f"{len(usual)} of {len(sent)} rows were sent under the names of common clients"
        f" ({', '.join(accepted)}, and those of gRPC), chosen by"
        f" the seed {report['seed']}: {found or 'no answer depended on the name'}."
        + (f" The server refuses these clients by name: {', '.join(refused)}." if refused else "")
    )


def _list_product_lines(made: Manifest) -> Iterator[str]:
    given = {
        "The product": made.product_url,
        "The image": made.container,
        "Command that prints its version": made.version_command,
    }
    lines = [f"* {what}: {markdown.code(value, 400)}" for what, value in given.items() if value]
    yield from [*lines, ""] if lines else []


def _build_command(made: Manifest, report: Report) -> list[str]:
    """Return the command to repeat the run: options that affect the verdict, without the identity of the certifier."""
    target, options = report["target"], report["options"]
    timeout = options["timeout_s"]
    is_client = made.party == Party.CLIENT
    of_server = {
        "--target-url": target["url"] if target["url"] != target.get("grpc") else None,
        "--target-grpc": target.get("grpc", "").removeprefix("grpc://"),
        "--target-config": "target.toml" if _render_target_file(made) else None,
        "--target-timeout": f"{timeout:g}" if timeout != DEFAULT_TIMEOUT_S else None,
    }
    given = {
        **({"--client-adapter": "..."} if is_client else of_server),
        "--profile": made.profile,
        "--conformance-gate": made.standing if made.standing == INTEROPERABLE else None,
        "--target-extension": [pack["name"] for pack in made.packs or ()],
        "--target-model": [name for name in made.models or () if name not in _find_user_inputs(made)],
        "--target-header": [f"{name}: ..." for name in options["headers"]],
        "--self-test": made.self_test,
        **{f"--{name}": "..." for name in ("vendor", "product", "product-version", "contact")},
    }
    return ["oip-conformance", "certify", *format_arguments(given), "-o", "DIR"]


def _find_user_inputs(made: Manifest) -> dict[str, UserInputs]:
    """Return the models for which the user gave inputs."""
    return {name: given for name, given in build_user_inputs(made.models or {}).items() if given}


def _render_target_file(made: Manifest) -> str:
    """Return the section with the file for `--target-config`; empty if the run needs no file."""
    placements = made.placements and {role: Placement.from_dict(entry) for role, entry in made.placements.items()}
    roles = [] if placements is None else [(_NAMES, format_roles_table(placements))]
    inputs = [(_INPUTS, format_input_tables(given))] if (given := _find_user_inputs(made)) else []
    limits = [(_LIMITS, format_limits_table(made.limits))] if made.limits else []
    parts = [*limits, *roles, *inputs]
    what = ", and ".join(said for said, _ in parts)
    return _FILE.format(what=what, tables="".join(tables for _, tables in parts)) if parts else ""
