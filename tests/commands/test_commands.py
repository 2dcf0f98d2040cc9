"""The `oip-conformance` command: output, exit status, and what becomes of `run` and `serve`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from conformance import __version__
from conformance.commands import main
from conformance.pages import pages
from conformance.roles import roles
from conformance.spec import ledger
from tests.support.servers import judge


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("BIN-ORDER-O", "BIN-ORDER-O\n  Level      MUST, literal\n"),
        ("bin-order-o", "BIN-ORDER-O\n  Level      MUST, literal\n"),
        ("golden.valid-case-is-answered", "golden.valid-case-is-answered\n  Claim      The server answers a golden"),
        ("headers.octet-stream-request-is-accepted [json-outputs]", "headers.octet-stream-request-is-accepted\n"),
        ("binary-outputs-in-reverse", "binary-outputs-in-reverse\n  Fault      The server sends binary data"),
    ],
)
def test_explain_prints_a_requirement_a_check_or_a_fault(
    name: str, title: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.main(["explain", name]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith(title)
    assert printed.err == ""


def test_explain_prints_several(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["explain", "BIN-ORDER-O", "headers.octet-stream-request-is-accepted", "[json-outputs]"]) == 0
    titles = [line for line in capsys.readouterr().out.splitlines() if line[:1].strip()]
    assert titles == ["BIN-ORDER-O", "headers.octet-stream-request-is-accepted"]


def test_explain_lists_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["explain"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["BIN-LISTED", "SHOULD", "exchange", "metadata"]
    assert [line.split()[0] for line in lines] == list(ledger.load())
    assert {len(line.split()) for line in lines if not line.startswith("ROBUST")} == {4}


def test_requirements_prints_the_index(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["requirements"]) == 0
    assert capsys.readouterr().out == pages.render_index()


def test_requirements_writes_pages_without_results_where_there_are_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "docs" / "requirements"
    assert main.main(["requirements", "-o", str(folder)]) == 0
    assert capsys.readouterr().out == f"wrote 17 pages into {folder}\n"
    assert {path.name for path in folder.iterdir()} == set(pages.render(()))
    assert "Real servers" not in (folder / "headers.md").read_text(encoding="utf-8")


def test_requirements_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert main.main(["requirements", "-o", str(tmp_path / "file")]) == 2
    assert capsys.readouterr().err == f"oip-conformance: error: cannot write {tmp_path / 'file'}: File exists\n"


class ProcessReplacement(Exception):  # noqa: N818 (not an error: it ends the process as execv would)
    """The process has become another program."""


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, list[str]]]:
    """What the process was to become: path and command of each call."""
    found: list[tuple[str, list[str]]] = []

    def execv(path: str, command: list[str]) -> None:
        found.append((path, command))
        raise ProcessReplacement

    monkeypatch.setattr(os, "execv", execv)
    return found


@pytest.mark.parametrize("arguments", [["--port", "0"], ["--help"], ["--fault", "a", "--", "-x"], []])
def test_serve_becomes_the_reference_server(arguments: list[str], calls: list[tuple[str, list[str]]]) -> None:
    with pytest.raises(ProcessReplacement):
        main.main(["serve", *arguments])
    assert calls == [(sys.executable, [sys.executable, "-m", "reference_server", *arguments])]


@pytest.mark.parametrize("options", [[], ["-k", "ordering", "-n", "2"], ["--target-grpc=h:1", "--help"]])
def test_run_becomes_pytest(options: list[str], calls: list[tuple[str, list[str]]]) -> None:
    with pytest.raises(ProcessReplacement):
        main.main(["run", "http://h:8000", *options])
    assert calls == [(sys.executable, [sys.executable, "-m", "pytest", "--target-url=http://h:8000", *options])]


@pytest.mark.parametrize(
    "options",
    [["--target-config=t.toml"], ["-k", "ordering", "--target-grpc", "h:1"], ["--target-url=http://h:8000", "-x"]],
)
def test_run_takes_the_server_that_an_option_names(options: list[str], calls: list[tuple[str, list[str]]]) -> None:
    with pytest.raises(ProcessReplacement):
        main.main(["run", *options])
    assert calls == [(sys.executable, [sys.executable, "-m", "pytest", *options])]


@pytest.mark.parametrize(
    ("arguments", "status", "stream", "text"),
    [
        (["--version"], 0, "out", f"oip-conformance {__version__}\n"),
        (["--help"], 0, "out", "oip-conformance explain BIN-ORDER-O "),
        ([], 2, "err", "the following arguments are required: COMMAND"),
        (["verify", "a", "b"], 2, "err", "one argument too many: 'b'"),
        (["requirements", "--outputs=secret"], 2, "err", "unknown option --outputs, did you mean --output?; see "),
        (["certify", "http://h:8000"], 2, "err", "required: --vendor, --product, --product-version, --contact, -o"),
        (["run", "http://h:8000", "--conformance-profile=fast"], 4, "err", "--conformance-profile: invalid choice: "),
        (["run", "http://h:8000", "--target-timeout", "soon"], 4, "err", "--target-timeout: invalid float value: "),
        (["client", "run", "--client-timeout=soon", "--", "a"], 4, "err", "--client-timeout: invalid float value: "),
        (["--ver"], 2, "err", "error: "),
    ],
)
def test_usage(arguments: list[str], status: int, stream: str, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main.main(arguments)
    assert stopped.value.code == status
    printed = capsys.readouterr()
    assert text in getattr(printed, stream)
    assert printed.err.count("\n") == (stream == "err")
    assert "secret" not in printed.err


NO_URL = "run needs the URL of a server: oip-conformance run URL [OPTION ...]\n"


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (["verfy", "x"], 2, "there is no command 'verfy', did you mean verify?; see `oip-conformance --help`"),
        (["http://h:8000"], 2, "put a command before the URL, such as `oip-conformance run URL`; see "),
        (
            ["explain", "BIN-ORDERS-O"],
            2,
            "no requirement, check or fault is called 'BIN-ORDERS-O'; did you mean BIN-ORDER-O",
        ),
        (["roles", "score"], 2, "there is no role score: did you mean scores"),
        (["doctor"], 2, "doctor needs the URL of a server: oip-conformance doctor URL\n"),
        (["run"], 4, NO_URL),  # pytest's status: 2 means interrupted
        (["run", "-k", "ordering"], 4, NO_URL),
    ],
)
def test_a_mistake_is_one_line(words: list[str], status: int, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(words) == status
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(f"oip-conformance: error: {message}")
    assert printed.err.count("\n") == 1


@pytest.mark.parametrize("name", main.COMMANDS)
def test_every_command_explains_itself(name: str) -> None:
    (action,) = [action for action in main.build_parser([name])._actions if action.dest == "command"]
    assert isinstance(action.choices, dict)
    parser = action.choices[name]
    assert name == "serve" or str(parser.description).endswith((".", "the extra completion."))
    assert [one.dest for one in parser._actions if not (one.help or one.choices)] == []


# --- roles ------------------------------------------------------------------------------------------------------------


def test_a_role_is_described_for_those_who_deploy_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["roles", "scores_some_labels", "emit", "scores_batching_labelled"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "    is      SCORES = INPUT" in lines
    assert "    labels  SCORES: cat, dog; the others have none" in lines
    counted = 'NUMBERS = [1, 2, ... COUNTS[0]], TEXTS = ["t1", "t2", ... "t" + COUNTS[1]]; each may be empty'
    assert f"    is      {counted}" in lines
    assert "    labels  SCORES: cat, dog, bird, fish" in lines
    assert any(
        line.startswith("    needs   a batch dimension in front of every shape, of 1 to 64 items") for line in lines
    )


def test_every_role_has_a_formula(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["roles"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert sum(line.startswith("    is      ") and len(line) > 20 for line in lines) == len(roles.load())


def test_run_help_lists_the_options_of_the_suite(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main.main(["run", "--help"])
    printed = capsys.readouterr().out
    assert ended.value.code == 0
    assert printed.startswith("usage: oip-conformance run URL [OPTION ...]\n")
    assert "--conformance-evidence DIR" in printed
    assert "--client-adapter" not in printed
    assert printed.endswith("`pytest --help` lists all of them.\n")


def test_client_run_help_lists_no_option_for_servers(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main.main(["client", "run", "--help"])
    printed = capsys.readouterr().out
    assert "--conformance-evidence DIR" in printed
    assert not [
        name for name in ("--target", "seed", "dangerous", "concurrency", "robustness") if f"-{name}" in printed
    ]


@pytest.mark.parametrize(
    ("option", "hint"),
    [("--conformance-raport=x.json", "did you mean --conformance-report? `oip"), ("--wrong", "`oip"), ("-Z", "`oip")],
)
def test_an_unknown_option_is_one_sentence(tmp_path: Path, option: str, hint: str) -> None:
    run = judge(tmp_path, "--target-url=http://127.0.0.1:1", option)
    assert run.returncode == 4
    name = option.partition("=")[0]
    assert run.stderr.strip() == (
        f"ERROR: unknown option {name}; {hint}-conformance run --help` lists the options of the suite, `pytest --help` "
        "those of pytest"
    )


@pytest.mark.parametrize("command", ["init", "doctor"])
@pytest.mark.parametrize("arguments", [["http://127.0.0.1:1"], ["--target-url", "http://127.0.0.1:1"]])
def test_a_command_takes_a_url_alone(command: str, arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main([command, *arguments]) == 2
    assert capsys.readouterr().err.startswith("oip-conformance: error: cannot connect to http://127.0.0.1:1: ")


def test_commands_that_ask_a_server_start_the_bundled_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["doctor", "reference"]) == 0
    assert "then                oip-conformance run reference\n" in capsys.readouterr().out
    assert main.main(["init", "reference"]) == 0
    assert '\nurl = "reference"\n' in capsys.readouterr().out
