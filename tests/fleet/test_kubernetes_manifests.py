"""The manifests of docs/kubernetes: as the API's own schemas have them, and their commands and fleet as ours does."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from conformance.commands import main
from conformance.fleet import fleet_file, units
from conformance.spec.options import OPTIONS

FOLDER = Path(__file__).parents[2] / "docs/kubernetes"
VERSIONS = ("1.31", "1.34")
MANIFESTS = [
    (f"{path.name}-{document['kind']}", document)
    for path in sorted(FOLDER.glob("*.yaml"))
    for document in yaml.safe_load_all(path.read_text(encoding="utf-8"))
]
on_each = pytest.mark.parametrize("manifest", [one for _, one in MANIFESTS], ids=[name for name, _ in MANIFESTS])


@pytest.mark.parametrize("version", VERSIONS)
@on_each
def test_a_manifest_is_one_of_the_api(manifest: dict[str, Any], version: str) -> None:
    kubernetes_validate.validate(manifest, version, strict=True)


@on_each
def test_a_manifest_with_a_member_that_the_api_does_not_know_shows(manifest: dict[str, Any]) -> None:
    wrong = deepcopy(manifest)
    wrong["metadata"]["nmae"] = "x"
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, VERSIONS[0], strict=True)


def pods(node: Any) -> Iterator[dict[str, Any]]:
    """Yield what is below a member `containers`, wherever it stands."""
    for value in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from pods(value)
    if isinstance(node, dict) and "containers" in node:
        yield node


CONTAINERS = [container for _, one in MANIFESTS for pod in pods(one) for container in pod["containers"]]


def test_commands_have_options_that_there_are() -> None:
    by_command = {container["args"][0]: container["args"] for container in CONTAINERS}
    names = [arg.partition("=")[0] for arg in by_command["run"] if arg.startswith("--")]
    assert [name for name in names if name not in OPTIONS] == []
    assert main._parse_arguments(by_command["fleet"], None).workers == 4


def test_what_is_mounted_is_there() -> None:
    for _, manifest in MANIFESTS:
        for pod in pods(manifest):
            volumes = {volume["name"] for volume in pod["volumes"]}
            assert {mount["name"] for each in pod["containers"] for mount in each["volumeMounts"]} == volumes


def test_the_fleet_of_the_manifest_can_be_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODEL_TOKEN", "t")
    (text,) = [one["data"]["fleet.toml"] for _, one in MANIFESTS if one["kind"] == "ConfigMap"]
    (tmp_path / "fleet.toml").write_text(text)
    found = units.make_units(fleet_file.load(tmp_path / "fleet.toml"), here=True)
    assert [unit.name for unit in found] == ["resnet50", "bert"]
