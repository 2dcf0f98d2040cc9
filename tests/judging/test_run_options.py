"""What a user gets wrong on the command line or in a file is told in one line; tests/run has the exit status."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conformance.judging.run_options import ServerOptions, read_client_options, read_server_options
from conformance.plugin.options import has_client, has_target
from conformance.spec.options import add_run_options
from conformance.spec.user_error import UserError

X = "--target-url=http://x"
INFINITE_STATUS = (
    '{"log": {"_target": "http://x", "entries": [{"startedDateTime": "2026-01-01T00:00:00+00:00", "time": 1, "_scope": '
    '"survey", "_call": 0, "_place": 0, "request": {"method": "GET", "url": "http://x/v2", "headers": []}, "response": '
    '{"status": Infinity, "httpVersion": "HTTP/1.1", "headers": [], "content": {"text": ""}}}]}}'
)
FORGED_RECORDING = '{"log": {"_target": "http://x", "entries": [{}]}}'
FIXED = 'url = "http://x"\n[limits]\nfixed_shapes = true\n[roles]\nmulti = "m"'


def parse(arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_run_options(parser.add_argument)
    parser.add_argument("-n", dest="dist", default="no")  # pytest-xdist's
    return parser.parse_args(shlex.split(arguments))


def expect_error(message: str, read: Callable[..., object], arguments: str, *more: Any) -> None:
    with pytest.raises(UserError) as raised:
        read(parse(arguments), lambda _: "", *more)
    assert str(raised.value).startswith(message)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--target-url=ftp://x", "--target-url 'ftp://x' is not an http or https URL"),
        (f"{X} --target-header=oops", "--target-header: write it as 'Name: value'"),
        (f"{X} --conformance-concurrency=0", "--conformance-concurrency 0: give a number from 1 to 64"),
        (f"{X} --target-timeout=0", "--target-timeout 0: give seconds between 0 and 3600"),
        ("--target-url=https://x --target-ca=nowhere.pem", "--target-ca nowhere.pem: no such file"),
        (f"{X} --conformance-report=r.txt", "--conformance-report r.txt: unknown suffix '.txt'"),
        (f"{X} --conformance-report=no/r.json", "--conformance-report no/r.json: no folder"),
        (f"{X} --target-extension=gzip", "--target-extension: unknown 'gzip'; give one of"),
        ("--target-grpc=host", "--target-grpc 'host' is not an address: give HOST:PORT, or grpcs://HOST:PORT for TLS"),
        (f"{X} --target-extension=classification_grpc", "--target-extension classification_grpc needs --target-grpc "),
        (f"{X} --target-grpc=reference", "--target-grpc=reference cannot be combined with the --target-url"),
        ("--target-grpc=x:1 '--target-header=A: \xe9'", "--target-header 'A' cannot be sent over gRPC"),
        (f"{X} --conformance-baseline=gone", "--conformance-baseline gone: No such file or directory"),
        (f"{X} --conformance-update-baseline", "--conformance-update-baseline needs --conformance-baseline FILE"),
        (f"{X} --conformance-robustness -n 2", "--conformance-robustness cannot be combined with -n"),
        ("--target-config=gone.toml", "--target-config gone.toml: No such file or directory"),
        ("--target-replay=r.har", "--target-replay: r.har: No such file or directory"),
        ("--target-replay=f --conformance-profile=explore", "--target-replay cannot be combined with --conformance-pr"),
    ],
)
def test_an_option_that_cannot_be_used(arguments: str, message: str) -> None:
    expect_error(message, read_server_options, arguments, {})


@pytest.mark.parametrize(
    ("option", "text", "message"),
    [
        ("baseline", '[[known]]\ncheck = "a"', "--conformance-baseline f: known.0: 'reason' is a required"),
        ("replay", "{", "f is not a recording of this suite: not JSON: Expecting"),
        ("replay", '{"log": {"entries": []}}', "f is not a recording of this suite: KeyError: '_target'"),
        ("replay", FORGED_RECORDING, "f is not a recording of this suite: KeyError: 'started"),
        ("replay", "[" * 100_000, "f is not a recording of this suite: not JSON: nests too deeply"),
        ("replay", INFINITE_STATUS, "f is not a recording of this suite: ValueError: response: status has the wrong"),
        ("baseline", "a = " + "[" * 100_000, "--conformance-baseline f: not TOML: nests too deeply"),
        ("config", "a = " + "[" * 100_000, "f: not TOML: nests too deeply"),
        ("config", "url =", "f: not TOML: Invalid value (at end of document)"),
        ("config", 'uri = "http://x"', "f: Additional properties are not allowed ('uri' was unexpected)"),
        ("config", "timeout = 0", "f: timeout: 0 is less than or equal to the minimum of 0"),
        ("config", "rate = 0", "f: rate: 0 is less than the minimum of 0.01"),
        ("config", "[roles]\n", "f has no url: add one, or give --target-url"),
        ("config", '[roles]\nidentity_int31 = "a"', "f: roles: there is no role 'identity_int31'; similar: identity_i"),
        (
            *("config", '[roles.fixed]\nmodel = "a"\ninputs = { INPU = "b" }'),
            "f: roles.fixed.inputs: there is no tensor 'INPU'; similar: INPUT",
        ),
        ("config", '[headers]\nA = "${NO_SUCH}"', "f: headers.A: the environment has no variable NO_SUCH"),
        ("config", 'url = "http://x"\n[tls]\nca = "gone.pem"', "--target-ca gone.pem: no such file"),
        ("config", "[limits]\nmax_batch = -1", "f: limits.max_batch: -1 is less than the minimum of 0"),
        ("config", "[limits]\nfixed_shapes = 1", "f: limits.fixed_shapes: 1 is not of type 'boolean'"),
        ("config", "[limits]\ndatatypes = []", "f: limits.datatypes: [] should be non-empty"),
        ("config", "[limits]\nbatch = 4", "f: limits: Additional properties are not allowed ('batch' was unexpected)"),
        ("config", FIXED, "f: roles.multi: the role has a variable shape, beyond limits.fixed_shapes: remove one of "),
    ],
)
def test_a_file_that_cannot_be_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str, text: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("f").write_text(text)
    name, before = {
        "baseline": (f"{X} --conformance-baseline=f", ""),
        "replay": ("--target-replay=f", "--target-replay: "),
        "config": ("--target-config=f", "" if message.startswith("--") else "--target-config "),
    }[option]
    expect_error(f"{before}{message}", read_server_options, name, {})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--target-url=reference", "--target-url cannot be combined with --client-adapter"),
        ("--target-model=m", "--target-model cannot be combined with --client-adapter"),
        ('''"--client-adapter=python 'x"''', '--client-adapter "python \'x": No closing quotation'),
        ("'--client-adapter= '", "--client-adapter: give a command"),
        ("--client-timeout=0", "--client-timeout 0: give seconds up to 600"),
        ("--conformance-profile=explore", "--conformance-profile explore is only for servers"),
    ],
)
def test_an_option_that_does_not_fit_a_client(arguments: str, message: str) -> None:
    expect_error(message, read_client_options, f"--client-adapter=a {arguments}")


# --- where options come from ------------------------------------------------------------------------------------------


def read_from(arguments: str = "", **ini: str) -> ServerOptions:
    return read_server_options(parse(arguments), lambda name: ini.get(name, ""), {})


@pytest.mark.parametrize("where", ["environment", "ini", "file"])
@pytest.mark.parametrize(("name", "value"), [("url", "http://x"), ("grpc", "x:1")])
def test_what_is_judged_may_be_named_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str, where: str
) -> None:
    (tmp_path / "t.toml").write_text(f'{name} = "{value}"\n')
    ini = {f"oip_target_{name}": value} if where == "ini" else {}
    arguments = f"--target-config={tmp_path / 't.toml'}" if where == "file" else ""
    if where == "environment":
        monkeypatch.setenv(f"OIP_TARGET_{name.upper()}", value)
    assert has_target(parse(arguments), lambda name: ini.get(name, ""))
    assert getattr(read_from(arguments, **ini).target, name) == value


@pytest.mark.parametrize("where", ["environment", "ini"])
def test_an_adapter_may_be_named_elsewhere(monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    ini = {"oip_client_adapter": "a 'b c'"} if where == "ini" else {}
    if where == "environment":
        monkeypatch.setenv("OIP_CLIENT_ADAPTER", "a 'b c'")
    assert has_client(parse(""), lambda name: ini.get(name, ""))
    assert read_client_options(parse(""), lambda name: ini.get(name, "")).arguments == ("a", "b c")


def test_command_line_before_environment_before_ini_before_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = 'url = "http://x"\ntimeout = 4\n[headers]\nX-A = "file"\nX-B = "${VALUE}"\n'
    (tmp_path / "t.toml").write_text(text)
    monkeypatch.setenv("VALUE", "t")
    ini = {"oip_target_config": str(tmp_path / "t.toml"), "oip_target_timeout": "5"}
    assert read_from(f"--target-config={tmp_path / 't.toml'}").timeout_s == 4
    assert read_from(**ini).timeout_s == 5
    monkeypatch.setenv("OIP_TARGET_TIMEOUT", "6")
    assert read_from(**ini).timeout_s == 6
    found = read_from("--target-timeout=7 '--target-header=x-a: told'", **ini)
    assert (found.timeout_s, found.target.headers) == (7, ("X-B: t", "x-a:told"))
