"""The suite through a real reverse proxy.

What a gateway asks for can be given, and what a gateway does is not held against the server behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
import trustme

from conformance.spec.outcome import ReasonKind
from tests.support import nginx
from tests.support.doc_blocks import read_recipe
from tests.support.few_rows import FEW_ROWS
from tests.support.nginx import Gateway
from tests.support.scripts import run as run_script
from tests.support.servers import FEW_MODELS, judge, run_bundled, run_proxy
from tests.support.valid_reports import read_valid_report

Behind = Callable[[str], AbstractContextManager[Gateway]]

# Rows over httpx, kept and fresh connections, and over raw sockets, for each of which headers and paths are made anew.
FEW = "metadata or request_follows_its_json or pipelined or segments or (flight and not large)"
TOKEN = "tok-of-the-gateway"  # noqa: S105 - of no service


@pytest.fixture(scope="session")
def program(pytestconfig: pytest.Config) -> Path:
    return nginx.find_nginx(pytestconfig.cache.mkdir("nginx"))


@pytest.fixture(scope="module")
def reference() -> Iterator[str]:
    """The URL of a server with models for all that a gateway may change: sizes, forms, raw requests, classes."""
    roles = ("identity_uint8", "identity_fp32", "identity_bytes", "cast_int32_fp32", "raw_variable", "scores_batching")
    with run_bundled(*FEW_MODELS, *[f"--model={role}" for role in roles]) as url:
        yield url


@pytest.fixture
def gateway(program: Path, reference: str, tmp_path: Path) -> Behind:
    """Return what runs nginx with these `server` blocks in front of the reference server."""
    folder = tmp_path / "nginx"
    folder.mkdir()
    return lambda servers: nginx.run_nginx(program, folder, reference, servers)


def with_a_model(folder: Path) -> list[dict[str, Any]]:
    """Return the rows for which the server has a model."""
    every: list[dict[str, Any]] = read_valid_report(folder / "r.json")["rows"]
    return [check for check in every if (check["reason"] or {}).get("kind") != ReasonKind.NO_MODEL]


def outcomes(folder: Path) -> set[str]:
    return {check["outcome"] for check in with_a_model(folder)}


def advised(folder: Path) -> set[str]:
    """Return the requirements of advice: a page in the place of an error object is nginx's, not the server's."""
    return {row["failure"]["requirement"] for row in with_a_model(folder) if row["outcome"] == "advisory"}


def judge_refused(folder: Path, *arguments: str) -> str:
    """Run the suite on a gateway that lets it have nothing, and return the one line that says why."""
    run = judge(folder, "--target-timeout=1", *arguments)
    assert run.returncode == 6, run.stdout
    assert run.stdout.count("incomplete: ") == 1
    assert run.stderr == ""
    assert "Traceback" not in run.stdout
    return run.stdout.splitlines()[-1]


def test_a_base_path_that_the_gateway_strips(gateway: Behind, tmp_path: Path) -> None:
    with gateway("server { listen LISTEN; location /models/x/ { proxy_pass UPSTREAM/; } }") as front:
        url = f"http://127.0.0.1:{front.port}"
        run = judge(tmp_path, f"--target-url={url}/models/x", "-k", FEW, *FEW_ROWS, "--conformance-report=r.json")
        asked = front.log.read_text().splitlines()
        without = judge_refused(tmp_path, f"--target-url={url}")
    assert run.returncode == 0, run.stdout
    assert (read_valid_report(tmp_path / "r.json")["target"]["url"], outcomes(tmp_path)) == (
        f"{url}/models/x",
        {"pass"},
    )
    assert len(asked) > 30
    assert [line for line in asked if " /models/x/v2" not in line] == []
    assert "HTTP 404" in without


NAMED = "server { listen LISTEN; server_name models.example; location / { proxy_pass UPSTREAM; } }"


def test_a_virtual_host(gateway: Behind, tmp_path: Path) -> None:
    with gateway(f"server {{ listen LISTEN default_server; return 404; }} {NAMED}") as front:
        url = f"--target-url=http://127.0.0.1:{front.port}"
        run = judge(
            tmp_path, url, "--target-header=Host: models.example", "-k", FEW, *FEW_ROWS, "--conformance-report=r.json"
        )
    assert run.returncode == 0, run.stdout
    assert outcomes(tmp_path) == {"pass"}


@pytest.mark.parametrize(("answer", "shown"), [("404", "HTTP 404"), ("444", "closed without an answer")])
def test_another_host_than_the_virtual_one(gateway: Behind, tmp_path: Path, answer: str, shown: str) -> None:
    with gateway(f"server {{ listen LISTEN default_server; return {answer}; }} {NAMED}") as front:
        assert shown in judge_refused(tmp_path, f"--target-url=http://127.0.0.1:{front.port}")


def test_a_bearer_token(gateway: Behind, tmp_path: Path) -> None:
    guard = f'if ($http_authorization != "Bearer {TOKEN}") {{ return 401; }}'
    with gateway(f"server {{ listen LISTEN; {guard} location / {{ proxy_pass UPSTREAM; }} }}") as front:
        url = f"--target-url=http://127.0.0.1:{front.port}"
        written = ("--conformance-report=r.json", "--conformance-evidence=evidence", "--junitxml=j.xml", "-v")
        run = judge(tmp_path, url, f"--target-header=Authorization: Bearer {TOKEN}", "-k", FEW, *FEW_ROWS, *written)
        without = judge_refused(tmp_path, url)
        wrong = judge_refused(tmp_path, url, "--target-header=Authorization: Bearer another")
    assert run.returncode == 0, run.stdout
    assert outcomes(tmp_path) == {"pass"}
    assert "HTTP 401" in without
    assert "HTTP 401" in wrong
    files = [path.read_text() for path in tmp_path.glob("*.*") if path.is_file()]
    assert len(files) == 2
    assert [text for text in (run.stdout, run.stderr, *files) if TOKEN in text] == []


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def encrypted(folder: Path, authority: trustme.CA, name: str) -> str:
    """Return the `server` block of a gateway with a certificate for `name` from a private CA."""
    certificate = authority.issue_cert(name)
    certificate.private_key_and_cert_chain_pem.write_to_path(folder / "gateway.pem")
    authority.cert_pem.write_to_path(folder / "ca.pem")
    keys = "ssl_certificate ../gateway.pem; ssl_certificate_key ../gateway.pem;"
    return f"server {{ listen LISTEN ssl; {keys} location / {{ proxy_pass UPSTREAM; }} }}"


@pytest.mark.parametrize("how", ["--target-ca=ca.pem", "--target-insecure"])
def test_tls_with_a_private_ca(gateway: Behind, tmp_path: Path, authority: trustme.CA, how: str) -> None:
    with gateway(encrypted(tmp_path, authority, "127.0.0.1")) as front:
        url = f"--target-url=https://127.0.0.1:{front.port}"
        run = judge(tmp_path, url, how, "-k", FEW, *FEW_ROWS, "--conformance-report=r.json")
    assert run.returncode == 0, run.stdout
    assert outcomes(tmp_path) == {"pass"}


@pytest.mark.parametrize(
    ("name", "arguments", "reason"),
    [
        ("127.0.0.1", [], "unable to get local issuer certificate"),
        ("models.example", ["--target-ca=ca.pem"], "IP address mismatch"),
    ],
    ids=["unknown CA", "another name"],
)
def test_tls_that_cannot_be_verified(
    gateway: Behind, tmp_path: Path, authority: trustme.CA, name: str, arguments: list[str], reason: str
) -> None:
    with gateway(encrypted(tmp_path, authority, name)) as front:
        url = f"https://127.0.0.1:{front.port}"
        line = judge_refused(tmp_path, f"--target-url={url}", *arguments)
    assert line.startswith(f"incomplete: cannot connect to {url}: ")
    assert "certificate verify failed" in line
    assert reason in line
    assert ("; --target-ca FILE names the certificates to trust" in line) == (not arguments)


ELSEWHERE = "OIP-ERROR-ELSEWHERE"
PLAIN = "location / { proxy_pass UPSTREAM; }"
BUSY = (
    "gzip on; gzip_types *; gzip_min_length 0; client_max_body_size 0; keepalive_requests 7;"
    'location / { proxy_pass http://kept; proxy_http_version 1.1; proxy_set_header Connection "";'
    ' proxy_set_header Accept-Encoding "";'  # nginx compresses, not the server behind it
    " proxy_request_buffering off; proxy_buffering off; }"
)


LARGE_REQUESTS = (
    "state.answer-is-whole-for-a-slow-reader",
    "state.cancelled-answer-harms-no-other",
    "state.large-answers-in-flight-are-their-own",
)


def test_nginx_as_it_comes_takes_a_megabyte_and_changes_nothing_else(gateway: Behind, tmp_path: Path) -> None:
    with gateway(f"server {{ listen LISTEN; {PLAIN} }}") as front:
        url = f"--target-url=http://127.0.0.1:{front.port}"
        # the next judges everything; here stands what is large, and the framing of all that is not
        run = judge(tmp_path, url, "-k", "not (walk or errors or golden or json)", "--conformance-report=r.json")
    assert run.returncode == 0, run.stdout
    assert outcomes(tmp_path) == {"pass", "observed", "advisory"}
    unjudged = [check for check in with_a_model(tmp_path) if check["outcome"] == "advisory"]
    assert {check["check"].partition(".")[0] for check in unjudged} == {"datatypes", "state"}
    assert [c["row"] for c in unjudged if "HTTP 413" not in c["message"]] == []
    assert advised(tmp_path) == {ELSEWHERE}
    large = [check["row"] for check in unjudged if check["check"] not in LARGE_REQUESTS]
    assert [row for row in large if "1MiB" not in row and "104857" not in row] == []


def test_nginx_that_compresses_and_keeps_connections_is_no_other_server(gateway: Behind, tmp_path: Path) -> None:
    with gateway(f"server {{ listen LISTEN; {BUSY} }}") as front:
        url = f"--target-url=http://127.0.0.1:{front.port}"
        run = judge(tmp_path, url, "--conformance-profile=quick", "--conformance-report=r.json")
    assert run.returncode == 0, run.stdout
    report = read_valid_report(tmp_path / "r.json")
    assert report["verdict"] == "partial"  # of the profile quick
    assert outcomes(tmp_path) <= {"pass", "observed", "not_applicable"}
    compressed = [c["observation"] for c in with_a_model(tmp_path) if c["check"] == "state.gzip-answer-is-the-answer"]
    assert compressed
    assert set(compressed) == {"gzip"}


def test_nginx_that_limits_the_rate_turns_requests_in_flight_away(gateway: Behind, tmp_path: Path) -> None:
    zone = "limit_req_zone $binary_remote_addr zone=one:1m rate=50r/s;"
    with gateway(f"{zone} server {{ listen LISTEN; limit_req zone=one burst=4 nodelay; {PLAIN} }}") as front:
        url = f"--target-url=http://127.0.0.1:{front.port}"
        run = judge(tmp_path, url, "-k", "beside or flight", "--conformance-report=r.json")
        asked = front.log.read_text()
    assert run.returncode == 0, run.stdout
    assert asked.count('" 503 ') > 10
    assert outcomes(tmp_path) <= {"pass", "not_applicable", "advisory"}
    assert advised(tmp_path) <= {ELSEWHERE}


def test_nginx_that_refuses_clients_by_name(gateway: Behind, tmp_path: Path) -> None:
    guard = 'if ($http_user_agent ~ "^(curl|python-requests)/") { return 403; }'
    with gateway(f"server {{ listen LISTEN; {guard} {PLAIN} }}") as front:
        url = f"--target-url=http://127.0.0.1:{front.port}"
        run = judge(tmp_path, url, "-k", "metadata or sizes or client", "--conformance-report=r.json")
    assert run.returncode == 0, run.stdout
    assert read_valid_report(tmp_path / "r.json")["target"]["refused_clients"] == {
        "requests": "HTTP 403",
        "curl": "HTTP 403",
    }
    assert outcomes(tmp_path) <= {"pass", "observed", "not_applicable", "advisory"}
    assert advised(tmp_path) <= {ELSEWHERE}


def test_a_server_that_dies_behind_its_gateway_is_gone(program: Path, reference: str, tmp_path: Path) -> None:
    folder = tmp_path / "nginx"
    folder.mkdir()
    servers = f"server {{ listen LISTEN; {PLAIN} }}"
    with (
        run_proxy(reference, connections=200) as upstream,
        nginx.run_nginx(program, folder, upstream, servers) as front,
    ):
        url = f"http://127.0.0.1:{front.port}"
        options = ("--conformance-profile=quick", "--target-timeout=3", "--conformance-report=r.json")
        run = judge(tmp_path, f"--target-url={url}", *options)
    assert run.returncode == 1, run.stdout[-2000:]
    last = run.stdout.splitlines()[-1]
    assert f"the target is gone: {url} answers everything with HTTP 502" in last
    found = [check["outcome"] for check in read_valid_report(tmp_path / "r.json")["rows"]]
    assert found.count("error") > 200
    assert found.count("fail") == 1  # the answer in the middle of which the server died, or the row after it


# --- the cookbook ----------------------------------------------------------------------------------------------------


def judge_by_recipe(folder: Path, script: str, address: str, port: int) -> str:
    """Run the command of a recipe on a gateway, with few rows about metadata, and return what it printed."""
    few = " ".join(("-k metadata", *FEW_ROWS))
    done = run_script(folder, script.replace(address, f"127.0.0.1:{port}"), PYTEST_ADDOPTS=few)
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_the_recipe_for_nginx(gateway: Behind, tmp_path: Path) -> None:
    block = read_recipe("A server behind nginx", "nginx")
    assert "listen 8080;" in block
    with gateway(block.replace("8080", "LISTEN").replace("http://127.0.0.1:8000", "UPSTREAM")) as front:
        judge_by_recipe(tmp_path, read_recipe("A server behind nginx", "sh"), "127.0.0.1:8080", front.port)
        asked = front.log.read_text().splitlines()
    assert [line for line in asked if " /models/v2" not in line] == []


def test_the_recipe_for_a_private_ca(gateway: Behind, tmp_path: Path, authority: trustme.CA) -> None:
    with gateway(encrypted(tmp_path, authority, "127.0.0.1")) as front:
        judge_by_recipe(tmp_path, read_recipe("A private CA", "sh"), "127.0.0.1:8443", front.port)


def test_the_recipe_for_a_token(gateway: Behind, tmp_path: Path) -> None:
    guard = f'if ($http_authorization != "Bearer {TOKEN}") {{ return 401; }}'
    with gateway(f"server {{ listen LISTEN; {guard} location / {{ proxy_pass UPSTREAM; }} }}") as front:
        printed = judge_by_recipe(tmp_path, read_recipe("A token", "sh"), "127.0.0.1:8080", front.port)
    assert TOKEN not in printed
