"""Packs: extensions outside this repository, each one a Python distribution that is found by its entry point.

A pack is an installed package, named by an entry point of the group `oip_conformance.packs`. It has `requirements.toml`
and `sentences.toml`, of the same form as those of the suite, modules with checks, and may have `roles.toml`.
docs/develop/packs.md explains how to write one.

Nothing of a pack is imported until its name is asked for. Then all of it is validated before anything is registered:
a faulty pack is one line, and changes nothing. Its rows run alone, behind those of the suite, and its results affect
only its own verdict.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from conformance import checks
from conformance.roles import formulas, roles
from conformance.roles.model import Model
from conformance.roles.roles import Role
from conformance.spec import data_files, documents, files, ledger, schemas
from conformance.spec.check import Check
from conformance.spec.documents import Sentence
from conformance.spec.extensions import CHOICES, EXTENSIONS, PACK, PROTOCOL, ROBUSTNESS
from conformance.spec.ledger import GRPC_SUFFIX, Level, Requirement
from conformance.spec.text import escape_text
from conformance.spec.user_error import UserError
from conformance.transport import config
from conformance.transport.config import TargetConfig

GROUP = "oip_conformance.packs"
# What packs may import and which files they have. A pack names the number that it was written for.
INTERFACE = 1
REQUIREMENTS, SENTENCES, ROLES = "requirements.toml", "sentences.toml", "roles.toml"
_NAME = re.compile(r"(?!area_|over_)[a-z][a-z0-9]*(_[a-z0-9]+)*")  # the prefixes are of other markers for `-m`
_TAKEN = {*CHOICES, *checks.PACKAGES, ROBUSTNESS, PACK, *(level.lower() for level in Level)}
_KEYS = {"level", "concern", "basis", "statement", "sources", "note", "symptom", "usage", "look_alike", "grpc"}
MAX_REASON_CHARS = 300


class PackError(UserError):
    """A pack cannot be used; the message is one line that names the pack."""


@dataclass(frozen=True, slots=True)
class Pack:
    """A loaded pack.

    Attributes:
        name: the name of its entry point: the extension, and the first part of the ids of its checks.
        version: the version of its distribution.
        digest: the SHA-256 of the files of its package.
    """

    name: str
    version: str
    digest: str
    requirements: Mapping[str, Requirement]
    sentences: Mapping[str, Sentence]
    roles: Mapping[str, Role]
    checks: tuple[Check, ...]

    @property
    def identity(self) -> dict[str, str]:
        """The name, version and digest, which say exactly which pack judged."""
        return {"name": self.name, "version": self.version, "digest": self.digest}


_LOADED: dict[str, Pack] = {}


def split_extensions(
    names: Sequence[str], option: str = "--target-extension"
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the extensions of the suite among some names, and the packs; load the packs.

    Raises:
        PackError: a name is neither, or its pack cannot be used.
    """
    named = tuple(dict.fromkeys(name for name in names if name not in CHOICES))
    for name in named:
        load(name, option)
    return tuple(name for name in names if name in CHOICES), named


def load_target_file(path: str | None, names: Sequence[str] = ()) -> TargetConfig:
    """Read a target file, whose roles may be those of packs: of `names`, or of its own `extensions`.

    Raises:
        UserError: a pack or the file cannot be used.
    """
    split_extensions(names)
    if path:
        split_extensions(config.read_entries(Path(path)).get("extensions", ()), f"--target-config {path}")
    return config.load_given(path)


def list_checks(name: str) -> tuple[Check, ...] | None:
    """Return the checks of a loaded pack; None if no such pack is loaded."""
    return _LOADED[name].checks if name in _LOADED else None


def list_loaded() -> tuple[str, ...]:
    """Return the names of the loaded packs."""
    return tuple(_LOADED)


def load_pack_of_id(identity: str) -> Pack | None:
    """Return the installed pack that the id of a requirement or check, or a role, belongs to by its prefix, or None.

    Raises:
        PackError: the pack cannot be used.
    """
    names = {entry.name for entry in entry_points(group=GROUP)}
    for name in sorted(names, key=len, reverse=True):  # one name may begin with another
        if identity.lower().startswith((_make_prefix(name).lower(), f"{name}.", f"{name}_")):
            return load(name)
    return None


def load(name: str, option: str = "--target-extension") -> Pack:
    """Return an installed pack, and let the suite find its requirements and sentences; `option` named it.

    Raises:
        PackError: no such pack is installed, or it cannot be used.
    """
    if name not in _LOADED:
        found = _find_entry_point(name, option)
        try:
            pack = _build_pack(found)
        except (Exception, SystemExit) as error:  # whatever foreign code raises
            text = str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {error}"
            raise PackError(
                f"the pack {_describe(found)} cannot be used: {escape_text(text, MAX_REASON_CHARS)}"
            ) from None
        ledger.add_requirements_of_pack(pack.requirements)
        documents.add_sentences_of_pack(pack.sentences)
        roles.add_roles_of_pack(pack.roles)
        _LOADED[name] = pack
    return _LOADED[name]


def _find_entry_point(name: str, option: str) -> EntryPoint:
    found = entry_points(group=GROUP)
    own = {_describe(entry): entry for entry in found if entry.name == name}
    if not own:
        installed = ", ".join(sorted({entry.name for entry in found})) or "none"
        raise PackError(
            f"{option}: unknown {escape_text(name, 60)!r}; give one of {', '.join(CHOICES)}, or an installed pack "
            f"(installed: {escape_text(installed, MAX_REASON_CHARS)})"
        )
    if len(own) > 1:
        raise PackError(f"two packs have one name: {' and '.join(sorted(own))}; uninstall one")
    return next(iter(own.values()))


def _describe(entry: EntryPoint) -> str:
    about = f" of {entry.dist.name} {entry.dist.version}" if entry.dist else ""
    return escape_text(f"{entry.name}{about}", 100)


# --- what is in a pack ------------------------------------------------------------------------------------------------


def _build_pack(entry: EntryPoint) -> Pack:
    name = entry.name
    if not _NAME.fullmatch(name) or name in _TAKEN:
        raise PackError(f"it cannot be called {name}: give lower-case words joined by _, which the suite does not use")
    package = importlib.import_module(entry.value)
    _expect_interface(package)
    folder = Path(package.__path__[0])
    sentences = _read_sentences(folder)
    requirements = _read_requirements(folder, name, sentences)
    own_roles = _read_roles(folder, name)
    made = tuple(_collect_checks(package))
    _expect_usable_checks(name, made, requirements, own_roles)
    version = entry.dist.version if entry.dist else "unknown"
    return Pack(
        name,
        version,
        data_files.compute_digest((folder,)),
        requirements,
        sentences,
        own_roles,
        made,
    )


def _expect_interface(package: ModuleType) -> None:
    wanted = getattr(package, "INTERFACE", None)
    if not hasattr(package, "__path__"):
        raise PackError("its entry point names a module, not a package with files beside it")
    if wanted != INTERFACE:
        hint = (
            "update oip-conformance" if isinstance(wanted, int) and wanted > INTERFACE else "see docs/develop/packs.md"
        )
        raise PackError(f"it has INTERFACE = {wanted!r}, and this suite has {INTERFACE}: {hint}")


def _read_file(path: Path, schema: str, **added: str) -> dict[str, Any]:
    """Return the tables of a file of a pack; `added` are members that the schema demands and packs do not write.

    The schema does not know ids of requirements over gRPC, which in the suite follow from those over HTTP.
    """
    try:
        tables: dict[str, Any] = ledger.join_lines(files.parse_toml(files.read_text(path)))
    except files.UnreadableError as error:
        raise PackError(f"{path.name}: {error}") from None
    for key, table in tables.items() if added else ():
        parts = (table, table.get("grpc", {})) if isinstance(table, dict) else (table,)
        if not all(isinstance(part, dict) and part.keys() <= _KEYS for part in parts):
            raise PackError(f"{path.name}: {key}: the keys of a requirement are {', '.join(sorted(_KEYS))}")
    whole = {key.replace(GRPC_SUFFIX, "-GRPC"): {**added, **own} for key, own in tables.items()} if added else tables
    if fault := schemas.find_error(whole, schemas.load_schema(schema)):
        raise PackError(f"{path.name}: {schemas.describe_error(fault)}")
    return tables


def _read_roles(folder: Path, name: str) -> dict[str, Role]:
    """Return the roles of a pack by name; their prefix is the name of the pack."""
    if not (folder / ROLES).exists():
        return {}
    found = roles.parse_roles(_read_file(folder / ROLES, "roles"), name)
    for role in found.values():
        if not role.name.startswith(f"{name}_"):
            raise PackError(f"{ROLES}: {role.name} does not begin with {name}_")
        if role.name in roles.load_with_packs():
            raise PackError(f"{ROLES}: there is another role {role.name}")
        _expect_computable(role)
    return found


def _expect_computable(role: Role) -> None:
    """Require that the computation of a role turns sample values of its inputs into its outputs."""
    try:
        formulas.format_formula(role)
        model = Model(role, role.name)
        tensors = model.sample()
        shapes = [tensor.shape for tensor in model.expected(tensors)]
    except Exception as error:  # each computation has demands of its own
        text = f"its tensors do not fit the computation {role.compute}: {type(error).__name__}: {error}"
        raise PackError(f"{ROLES}: {role.name}: {text}") from None
    for spec, shape in zip(role.outputs, shapes, strict=True):
        declared = ((-1,) if role.batching else ()) + spec.shape
        if len(declared) != len(shape) or any(size not in (-1, own) for size, own in zip(declared, shape, strict=True)):
            raise PackError(f"{ROLES}: {role.name}: {spec.name} of {role.compute} has the shape {list(shape)}")
    if unknown := role.labels.keys() - {spec.name for spec in role.outputs}:
        raise PackError(f"{ROLES}: {role.name}: there are labels of {min(unknown)}, which is no output")


def _read_sentences(folder: Path) -> dict[str, Sentence]:
    tables = _read_file(folder / SENTENCES, "sentences")
    known = {
        *documents.load_documents(),
        *(one.document.key for pack in _LOADED.values() for one in pack.sentences.values()),
    }
    if twice := sorted(tables.keys() & known):
        raise PackError(f"{SENTENCES}: there is another document {twice[0]}")
    found = (documents.build_sentences(documents.build_document(key, table), table) for key, table in tables.items())
    return {one.key: one for sentences in found for one in sentences}


def _read_requirements(folder: Path, name: str, sentences: Mapping[str, Sentence]) -> dict[str, Requirement]:
    """Return the requirements of a pack by id; their prefix keeps them apart from those of the suite."""
    known = {*ledger.load(), *(other for pack in _LOADED.values() for other in pack.requirements)}
    found = {}
    of_pack = {"extension": name, "area": PACK, "page": ""}
    tables = _read_file(folder / REQUIREMENTS, "ledger", extension=PROTOCOL).items()
    for identity, table in (each for key, own in tables for each in ledger.expand_table(key, {**own, **of_pack})):
        if not identity.startswith(_make_prefix(name)):
            raise PackError(f"{REQUIREMENTS}: {identity} does not begin with {_make_prefix(name)}")
        if identity in known or identity in found:
            raise PackError(f"{REQUIREMENTS}: there is another requirement {identity}")
        if missing := [
            key for key in table["sources"] if key not in sentences and key not in documents.load_sentences()
        ]:
            raise PackError(f"{REQUIREMENTS}: {identity} cites {missing[0]}, which no document has")
        found[identity] = ledger.build_requirement(identity, table)
    return found


def _make_prefix(name: str) -> str:
    return f"{name.upper().replace('_', '-')}-"


def _collect_checks(package: ModuleType) -> Iterator[Check]:
    """Yield the checks in the modules of a package, sorted by module and then as they stand there."""
    for found in sorted(pkgutil.iter_modules(package.__path__), key=lambda one: one.name):
        module = importlib.import_module(f"{package.__name__}.{found.name}")
        for made in vars(module).values():
            if isinstance(made, Check) and made.body.__module__ == module.__name__:
                yield from (made, *made.also)


def _expect_usable_checks(
    name: str, made: Sequence[Check], requirements: Mapping[str, Requirement], own_roles: Mapping[str, Role]
) -> None:
    checks.expect_unique_ids(made)
    cited = {each for check in made for case in check.cases for each in case.requirements}
    known = {*own_roles, *roles.load()}
    for check in made:
        if check.area != name or len(check.over) != 1 or check.judges_discovery:
            raise PackError(
                f"the check {check.id} is not `{name}.` and some words, over HTTP or gRPC, on rows of its own"
            )
        for case in check.cases:
            if not case.requirements or not set(case.requirements) <= requirements.keys():
                raise PackError(
                    f"{case.label} cites {', '.join(case.requirements) or 'nothing'}: cite what {REQUIREMENTS} has"
                )
            if other := [each for each in case.requirements if requirements[each].transport not in check.over]:
                raise PackError(f"{case.label} cites {other[0]}: cite requirements with {GRPC_SUFFIX} over gRPC alone")
            if case.role is not None and case.role not in known:
                raise PackError(f"{case.label} needs the role {case.role}, which neither the suite nor {ROLES} has")
            if unknown := set(case.row.needs) - {*EXTENSIONS}:
                raise PackError(f"{case.label} needs {unknown.pop()}, which is no extension of the suite")
    if idle := [each for each, entry in requirements.items() if entry.level is Level.MUST and each not in cited]:
        raise PackError(f"no check cites {idle[0]}")
