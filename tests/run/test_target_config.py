"""`--target-config` as a user meets it: other names for models and tensors, precedence, what is kept back, errors."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from conformance.roles import roles
from conformance.transport import config
from tests.support.few_rows import FEW_ROWS
from tests.support.renamed_server import IN, MODEL, OUT
from tests.support.servers import judge

ORDER = "response_follows_its_json"
QUICK = ("--conformance-profile=quick", "--conformance-report=r.json", *FEW_ROWS)


def mapped(url: str) -> str:
    """Return a file that maps every role, with versions and tensor names."""
    lines = [f'url = "{url}"']
    for role in roles.load().values():
        lines += [f"[roles.{role.name}]", f'model = "{MODEL}{role.name}"', 'version = "1"']
        for member, specs, prefix in (("inputs", role.inputs, IN), ("outputs", role.outputs, OUT)):
            names = ", ".join(f'{spec.name} = "{prefix}{spec.name}"' for spec in specs)
            lines.append(f"{member} = {{ {names} }}")
    return "\n".join(lines)


# Not applicable where answers name the version that metadata list, and where names are mapped.
NOT_OF_THIS_SERVER = {"errors.unlisted-version-is-refused", "errors.misnamed-input-is-refused"}


def test_other_names_of_models_and_tensors_are_judged_alike(tmp_path: Path, renamed: str) -> None:
    (tmp_path / "t.toml").write_text(mapped(renamed))
    run = judge(tmp_path, "--target-config=t.toml", *QUICK)
    assert run.returncode == 0, run.stdout[-3000:]
    report = json.loads((tmp_path / "r.json").read_text())
    assert report["verdict"] == "partial"
    assert report["target"]["roles"]["multi"] == f"{MODEL}multi"
    left_out = {check["check"] for check in report["rows"] if check["outcome"] == "not_applicable"}
    assert {"golden.valid-case-is-answered", "golden.invalid-case-is-refused"} <= left_out
    assert left_out <= {"golden.valid-case-is-answered", "golden.invalid-case-is-refused", *NOT_OF_THIS_SERVER}
    musts = [entry for entry in report["requirements"] if entry["level"] == "MUST" and entry["area"] != "grpc"]
    assert {entry["verdict"] for entry in musts} == {"pass"}


def test_a_map_is_the_whole_map(tmp_path: Path, reference: str) -> None:
    (tmp_path / "t.toml").write_text(f'url = "{reference}"\n[roles]\nidentity_int32 = "identity_int32"\n')
    run = judge(tmp_path, "--target-config=t.toml", *QUICK)
    assert json.loads((tmp_path / "r.json").read_text())["target"]["roles"] == {"identity_int32": "identity_int32"}
    shown = re.search(
        r"^Rows of MUSTs whose role no model fills, in this profile and beyond: (\d+)\. (.*)$", run.stdout, re.M
    )
    assert shown is not None
    assert re.fullmatch(r"MUSTs that these rows leave unjudged: \d+\.", shown[2])
    assert "\n      multi  " in run.stdout


def test_a_role_on_a_model_that_is_not_there_ends_the_run(tmp_path: Path, reference: str) -> None:
    (tmp_path / "t.toml").write_text(f'url = "{reference}"\n[roles]\nidentity_int32 = "gone"\n')
    run = judge(tmp_path, "--target-config=t.toml")
    assert run.returncode == 6
    assert f"incomplete: role identity_int32: {reference} serves no model gone: HTTP 404" in run.stdout


def test_what_is_kept_back_is_not_sent_and_the_run_says_incomplete(tmp_path: Path, small: str) -> None:
    never = 'never = ["state.*", "ordering.response-follows-its-json[INT64-*]"]'
    (tmp_path / "t.toml").write_text(f'url = "{small}"\n{never}\n')
    run = judge(tmp_path, "--target-config=t.toml", "--conformance-profile=quick", "--conformance-report=r.json")
    checks = json.loads((tmp_path / "r.json").read_text())["rows"]
    rows = {check["row"] for check in checks if check["check"] == "ordering.response-follows-its-json"}
    assert not any(check["check"].startswith("state.") for check in checks)
    assert rows
    assert not any(row.startswith("INT64-") for row in rows)
    assert "is incomplete" in run.stdout.splitlines()[-1]
    assert run.returncode == 6


def test_the_example_of_the_page_is_a_file_that_can_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).parents[2] / "docs" / "judging.md").read_text(encoding="utf-8")
    (tmp_path / "t.toml").write_text(page.partition("```toml\n")[2].partition("```")[0])
    monkeypatch.setenv("MODEL_TOKEN", "t")
    found = config.load(tmp_path / "t.toml")
    assert found.headers == ("Authorization: Bearer t",)
    assert found.roles is not None
    assert (found.roles["multi"].version, found.roles["multi"].names.inputs) == ("3", {"IN_BOOL": "flags"})


def test_environment_ini_file_and_target_file_are_heeded(tmp_path: Path, small: str) -> None:
    """Which comes before which: tests/judging/test_run_options.py."""
    (tmp_path / "t.toml").write_text('url = "http://x"\ntimeout = 4\n[headers]\nX-B = "${VALUE}"\n')
    (tmp_path / "pytest.ini").write_text("[pytest]\noip_target_timeout = 5\noip_target_config = t.toml\n")
    judge(tmp_path, "--conformance-report=r.json", "-k", ORDER, VALUE="t", OIP_TARGET_URL=small)
    report = json.loads((tmp_path / "r.json").read_text())
    assert report["target"]["url"] == small
    assert (report["options"]["timeout_s"], report["options"]["headers"]) == (5, ["X-B"])


def test_what_has_ended_servers_is_sent_last_and_where_asked_for_alone(tmp_path: Path, small: str) -> None:
    ended = ("classified-strings", "classes-of-no-elements", "2-32-", "2-63-by", "product-2-to")
    counts = []
    for more in (("--co", "-q"), ("--conformance-dangerous", "-v")):
        run = judge(tmp_path, f"--target-url={small}", "-k", "errors or golden", *more)
        lines = [line for line in run.stdout.splitlines() if "::" in line]
        counts.append(len(lines))
        dangerous = [index for index, line in enumerate(lines) if any(name in line for name in ended)]
        assert dangerous == list(range(len(lines) - len(dangerous), len(lines)))
    assert counts[1] == counts[0] + 7
