"""`oip-conformance models export`: what is written for each server, and when nothing is."""

from __future__ import annotations

import ast
import json
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import text_format
from hatchling.builders.wheel import WheelBuilder
from tritonclient.grpc import model_config_pb2

from conformance.commands import main
from conformance.export import ExportError, export
from conformance.export.server_formats import FORMATS
from conformance.roles import roles
from conformance.roles.placement import Placement
from conformance.transport import config

ROOT = Path(__file__).parents[2]
BF16 = {"identity_bf16", "cast_bf16_fp32", "cast_fp32_bf16"}
FP16 = {"identity_fp16", "cast_fp16_fp32", "cast_fp32_fp16", "documented_mixed", "documented_all_outputs"}
VERSIONED = {"versioned"}
LEFT_OUT = {
    "triton": {"rank0"},
    "kserve": BF16 | VERSIONED,
    "mlserver": BF16,
    "dynamo": BF16 | FP16 | VERSIONED,
    "python": VERSIONED,
}
# What exported code may import beside the standard library and the files beside it; KServe cannot be without grpc.
PACKAGES = {"numpy", "triton_python_backend_utils", "kserve", "grpc", "mlserver", "dynamo", "starlette"}

Export = Callable[..., Path]


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Export:
    """Return the folder with all roles in one format, written once for all tests."""
    written: dict[str, Path] = {}

    def folder(form: str) -> Path:
        if form not in written:
            written[form] = tmp_path_factory.mktemp(form)
            export(form, written[form])
        return written[form]

    return folder


def served(form: str) -> list[str]:
    return [name for name in roles.load() if name not in LEFT_OUT[form]]


def models(form: str, folder: Path) -> dict[str, Any]:
    """Return the roles of the exported models as data, by the names of the models."""
    if form in ("kserve", "dynamo", "python"):
        return dict(json.loads((folder / "roles.json").read_text(encoding="utf-8")))
    pattern = {"triton": "models/*/1/role.json", "mlserver": "*/role.json"}[form]
    written = {path.parent: json.loads(path.read_text(encoding="utf-8")) for path in folder.glob(pattern)}
    if form == "triton":
        return {path.parent.name: role for path, role in written.items()}
    return {json.loads((path / "model-settings.json").read_text())["name"]: role for path, role in written.items()}


# --- what is written -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMATS)
def test_every_role_is_written_or_left_out_with_a_reason(form: str, tmp_path: Path) -> None:
    done = export(form, tmp_path / "new" / "folder")
    assert set(done.left_out) == LEFT_OUT[form]
    assert list(done.models) == served(form)
    assert set(models(form, tmp_path / "new" / "folder")) == set(served(form))


def test_what_one_server_lacks_is_left_out(tmp_path: Path) -> None:
    done = export("triton", tmp_path, without=["BF16", "FP16"])
    assert set(done.left_out) == LEFT_OUT["triton"] | BF16 | FP16
    assert done.left_out["cast_bf16_fp32"] == "it has no datatype BF16"


@pytest.mark.parametrize("form", FORMATS)
def test_roles_are_data_with_whole_shapes(form: str, exported: Export) -> None:
    for name, role in models(form, exported(form)).items():
        known = roles.load()[name]
        assert role["compute"] == known.compute
        assert role.get("table", []) == list(known.table)
        for side, specs in (("inputs", known.inputs), ("outputs", known.outputs)):
            batch = [-1] if known.batching else []
            assert role[side] == [
                {"name": spec.name, "datatype": spec.datatype, "shape": [*batch, *spec.shape]} for spec in specs
            ]


@pytest.mark.parametrize("form", FORMATS)
def test_nothing_that_is_exported_needs_more_than_numpy_and_the_server(form: str, exported: Export) -> None:
    files = [path for path in exported(form).rglob("*.py") if "models/" not in str(path) or "/multi/" in str(path)]
    assert len(files) == {"triton": 3, "kserve": 2, "mlserver": 2, "dynamo": 2, "python": 4}[form]
    for path in files:
        beside = {each.stem for each in path.parent.glob("*.py")}
        assert imports(path) <= sys.stdlib_module_names | PACKAGES | beside


def imports(path: Path) -> set[str]:
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module or "." for node in nodes if isinstance(node, ast.ImportFrom)]
    return {name.partition(".")[0] for name in names}


@pytest.mark.parametrize("form", FORMATS)
def test_the_role_map_and_the_readme(form: str, tmp_path: Path) -> None:
    export(form, tmp_path, ["scores", "identity_int32"], prefix="oip-")
    role_map = tomllib.loads((tmp_path / "target.toml").read_text(encoding="utf-8"))
    at_8000 = {"url": "http://127.0.0.1:8000"}
    addresses = {"triton": at_8000, "python": at_8000, "dynamo": {"grpc": "127.0.0.1:8787"}}
    assert {name: role_map[name] for name in role_map if name != "roles"} == addresses.get(
        form, {"url": "http://127.0.0.1:8080"}
    )
    assert role_map["roles"] == {"identity_int32": "oip-identity_int32", "scores": "oip-scores"}
    assert set(models(form, tmp_path)) == {"oip-identity_int32", "oip-scores"}
    assert config.load(tmp_path / "target.toml").roles == {
        "identity_int32": Placement("oip-identity_int32"),
        "scores": Placement("oip-scores"),
    }
    assert (tmp_path / "README.md").read_text(encoding="utf-8").startswith("# Model roles for ")


def test_the_templates_travel_in_the_wheel() -> None:
    shipped = {file.distribution_path for file in WheelBuilder(str(ROOT)).recurse_included_files()}
    folder = ROOT / "conformance/export/templates"
    templates = {path.relative_to(ROOT).as_posix() for path in folder.rglob("*.*") if path.suffix in (".py", ".md")}
    assert len(templates) == 14
    assert templates <= shipped


@pytest.mark.parametrize("form", ["triton", "mlserver"])
def test_versions_of_a_model_are_written_beside_each_other(form: str, tmp_path: Path) -> None:
    export(form, tmp_path, ["versioned"])
    files = {"triton": "models/versioned/{}/role.json", "mlserver": "versioned-{}/role.json"}[form]
    for version in ("1", "2"):
        assert json.loads((tmp_path / files.format(version)).read_text())["version"] == version
    if form == "triton":
        assert "version_policy: { all { } }" in (tmp_path / "models/versioned/config.pbtxt").read_text()
    else:
        settings = [json.loads(path.read_text()) for path in sorted(tmp_path.glob("*/model-settings.json"))]
        assert [(each["name"], each["parameters"]["version"]) for each in settings] == [
            ("versioned", "1"),
            ("versioned", "2"),
        ]


# --- Triton ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", served("triton"))
def test_config_pbtxt_declares_the_role(name: str, exported: Export) -> None:
    folder = exported("triton") / "models" / name
    declared = text_format.Parse((folder / "config.pbtxt").read_text(encoding="utf-8"), model_config_pb2.ModelConfig())
    role = roles.load()[name]
    assert (declared.name, declared.backend) == (name, "python")
    assert declared.max_batch_size == (64 if role.batching else 0)
    (group,) = declared.instance_group
    assert (group.count, group.kind) == (1, group.KIND_CPU)
    for tensors, specs in ((declared.input, role.inputs), (declared.output, role.outputs)):
        assert [(one.name, model_config_pb2.DataType.Name(one.data_type), list(one.dims)) for one in tensors] == [
            (spec.name, f"TYPE_{spec.datatype}".replace("BYTES", "STRING"), list(spec.shape)) for spec in specs
        ]
    files = {one.name: one.label_filename for one in declared.output if one.label_filename}
    assert set(files) == set(role.labels)
    for output, labels in role.labels.items():
        assert (folder / files[output]).read_text(encoding="utf-8") == "\n".join([*labels, ""])


def test_a_triton_model_is_a_folder_like_this(tmp_path: Path) -> None:
    export("triton", tmp_path, ["scores_two_outputs"])
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.*")) == [
        "README.md",
        "models/scores_two_outputs/1/model.py",
        "models/scores_two_outputs/1/role.json",
        "models/scores_two_outputs/1/role_compute.py",
        "models/scores_two_outputs/1/triton_tensors.py",
        "models/scores_two_outputs/config.pbtxt",
        "models/scores_two_outputs/labels_RANKS.txt",
        "target.toml",
    ]
    assert (tmp_path / "models/scores_two_outputs/config.pbtxt").read_text(encoding="utf-8") == (
        'name: "scores_two_outputs"\n'
        'backend: "python"\n'
        "max_batch_size: 0\n"
        'input [ { name: "IN_SCORES" data_type: TYPE_FP32 dims: [ 4 ] } ]\n'
        'input [ { name: "IN_RANKS" data_type: TYPE_INT32 dims: [ 3 ] } ]\n'
        'output [ { name: "SCORES" data_type: TYPE_FP32 dims: [ 4 ] } ]\n'
        'output [ { name: "RANKS" data_type: TYPE_INT32 dims: [ 3 ] label_filename: "labels_RANKS.txt" } ]\n'
        "instance_group [ { count: 1 kind: KIND_CPU } ]\n"
    )


# --- MLServer --------------------------------------------------------------------------------------------------------


def test_mlserver_settings(exported: Export) -> None:
    folder = exported("mlserver")
    assert json.loads((folder / "settings.json").read_text()) == {"debug": False, "parallel_workers": 0}
    assert json.loads((folder / "batching" / "model-settings.json").read_text()) == {
        "name": "batching",
        "implementation": "role_models.RoleModel",
        "parameters": {"uri": "./role.json"},
        "inputs": [{"name": "INPUT", "datatype": "INT32", "shape": [-1, 3]}],
        "outputs": [{"name": "OUTPUT", "datatype": "INT32", "shape": [-1, 3]}],
    }


# --- when nothing is written -----------------------------------------------------------------------------------------

REFUSED: list[tuple[list[str], str]] = [
    (["--role=identity_int33"], "unknown role 'identity_int33'; did you mean identity_int32"),
    (["--role=zzz"], "unknown role 'zzz'"),
    (["--role=fixed", "--role=rank0"], "triton cannot serve rank0: its config.pbtxt cannot declare a tensor without"),
    (["--role=identity_bf16", "--without=BF16"], "triton cannot serve identity_bf16: it has no datatype BF16"),
    (["--prefix=../"], "the prefix '../' cannot begin the name of a model"),
    (["--prefix=."], "the prefix '.' cannot begin the name of a model"),
    (["--prefix=a\n"], "the prefix 'a\\n' cannot begin the name of a model"),
]


@pytest.mark.parametrize(("arguments", "message"), REFUSED)
def test_what_cannot_be_exported(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.main(["models", "export", "--format=triton", *arguments, str(tmp_path / "out")]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(f"oip-conformance: error: {message}")
    assert printed.err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_folder_in_use(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("mine")
    for folder, message in ((tmp_path, "is not empty"), (tmp_path / "file", "is not a folder")):
        assert main.main(["models", "export", "--format=kserve", str(folder)]) == 2
        assert capsys.readouterr().err == f"oip-conformance: error: {folder} {message}\n"
    with pytest.raises(ExportError, match=r"^cannot write .*/file/below: Not a directory$"):
        export("kserve", tmp_path / "file" / "below")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["models"], "the following arguments are required: ACTION"),
        (["models", "export", "DIR"], "the following arguments are required: --format"),
        (["models", "export", "--format=ovms", "DIR"], "invalid choice: 'ovms'"),
        (["models", "export", "--format=triton"], "the following arguments are required: DIR"),
    ],
)
def test_usage(arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main.main(arguments)
    assert stopped.value.code == 2
    assert text in capsys.readouterr().err


def test_what_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["models", "export", "--format=triton", str(tmp_path / "all")]) == 0
    assert capsys.readouterr().out == (
        "left out: rank0: triton cannot serve it: its config.pbtxt cannot declare a tensor without dimensions\n"
        f"58 models in {tmp_path}/all; its README.md says how to start them\n"
    )
    assert main.main(["models", "export", "--format=mlserver", "--role=multi", str(tmp_path / "one")]) == 0
    assert capsys.readouterr().out == f"1 model in {tmp_path}/one; its README.md says how to start them\n"
