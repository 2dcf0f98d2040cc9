"""What a user gives as a secret is in nothing that we write, however a server repeats it; honest answers stay whole."""

from __future__ import annotations

import gzip
import re
import zlib
from base64 import b64decode, b64encode, urlsafe_b64encode
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest

from conformance.transport.credentials import find_unmaskable_headers, find_user_secrets, hide, hide_bytes
from conformance.transport.exchange import Exchange, FailureKind, TransportFailure
from conformance.transport.header_values import expand, expand_headers
from conformance.transport.masking import mask_exchange
from conformance.transport.settings import SettingsError, make_settings
from conformance.wire.grpc_request import GRPC_METHOD
from conformance.wire.request import Message
from tests.support.servers import JsonOnly, judge, serve

TOKEN = "tok/Sup3r+S3cret=vX9q-Z_w"  # noqa: S105 - made up
PASSWORD = "Geheim.niss:42"  # noqa: S105 - made up
SECRETS = find_user_secrets((("X-Anything", TOKEN),))


def percent(text: str) -> str:
    return "".join(f"%{ord(character):02X}" for character in text)


# How a server may write what it was sent.
SPELLINGS: dict[str, Callable[[str], str]] = {
    "as-it-is": str,
    "upper": str.upper,
    "lower": str.lower,
    "base64": lambda text: b64encode(text.encode()).decode(),
    "base64-behind-one": lambda text: b64encode(b"x" + text.encode()).decode(),
    "base64-behind-two": lambda text: b64encode(b"xy" + text.encode() + b"z").decode(),
    "base64-of-urls": lambda text: urlsafe_b64encode(b"?" + text.encode()).decode().rstrip("="),
    "hex": lambda text: text.encode().hex(),
    "HEX": lambda text: text.encode().hex().upper(),
    "hex-dump": lambda text: text.encode().hex(" "),
    "quoted": lambda text: quote(text, safe=""),
    "percent": percent,
    "json-escapes": lambda text: "".join(f"\\u{ord(character):04x}" for character in text),
    "JSON-ESCAPES": lambda text: "".join(f"\\u{ord(character):04X}" for character in text),
    "some-escapes": lambda text: text.replace("S", "\\u0053").replace("/", "\\/").replace("=", "&#x3D;"),
    "html": lambda text: text.replace("+", "&#43;").replace("/", "&#47;"),
    "repr": lambda text: "".join(f"\\x{ord(character):02x}" for character in text),
    "quoted-base64": lambda text: quote(b64encode(b"xy" + text.encode()).decode(), safe=""),
    "its-beginning": lambda text: text[:11],
    "its-end": lambda text: text[-9:],
    "cut-base64": lambda text: b64encode(text.encode()).decode()[:12],
}


@pytest.mark.parametrize("size", [0, 524_280])
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_secret_is_hidden_however_it_is_written(spelling: str, size: int) -> None:
    """So it is where it lies on the edge of what is looked at in one step."""
    written = SPELLINGS[spelling](TOKEN)
    body = b" " * size + f'{{"error": "<{written}>"}}'.encode()
    hidden = hide_bytes(body, SECRETS)
    assert len(hidden) == len(body)
    shown = hidden[size:].decode().removeprefix('{"error": "<').removesuffix('>"}')
    assert len(shown) == len(written)
    left = re.sub(r"\*+", "", shown)
    assert len(left) <= 7, left  # characters of base64 that hold some bits of what stands beside the secret, too
    assert "*" * (len(written) - 7) in shown


def test_of_basic_credentials_every_part_is_hidden() -> None:
    secrets = make_settings(f"http://user:{quote(PASSWORD)}@host").secrets
    whole = f"user:{PASSWORD}"
    for text in (whole, PASSWORD, b64encode(whole.encode()).decode(), percent(PASSWORD), quote(PASSWORD, safe="")):
        assert set(hide(text, secrets)[-len(PASSWORD) :]) == {"*"}


@pytest.mark.parametrize("value", ["Bearer ", "Token ", ""])
def test_authorization_scheme_is_not_masked(value: str) -> None:
    secrets = find_user_secrets((("Authorization", value + TOKEN),))
    assert hide(f"got {value}{TOKEN}", secrets) == f"got {value}{'*' * len(TOKEN)}"


# --- honest answers --------------------------------------------------------------------------------------------------

HONEST = (
    b'{"name":"x","extensions":["binary_tensor_data","classification","raw"]}',
    b'{"outputs":[{"name":"OUTPUT","datatype":"INT64","shape":[2],"data":[1234567890123,98765432101234]}]}',
    b'{"model_name":"identity_int32","parameters":{"binary_data_size":16777216}}',
    bytes(range(256)) * 64,
)


@pytest.mark.parametrize(
    "value",
    [
        *("binary_tensor_data", "my-binary_tensor_data-key", "identity_int32", "application/json"),
        *("1234567890123", "aaaaaaaaaaaa", "true"),
    ],
)
@pytest.mark.parametrize("body", HONEST)
def test_words_and_numbers_stay_in_honest_answers(value: str, body: bytes) -> None:
    assert hide_bytes(body, find_user_secrets((("X-Tenant", value),))) == body


def test_secret_echoed_from_request_body_is_not_masked() -> None:
    message = Message("/v2/models/m/infer", (), b'{"data": ["production-europe"]}')
    secrets = find_user_secrets((("X-Tenant", "production-europe"),))
    echo = Exchange(0, message, "http://x/", 200, (), b'{"data": ["production-europe"]}')
    assert mask_exchange(echo, secrets).body == echo.body
    other = Exchange(0, Message("/v2"), "http://x/", 200, (), b'{"data": ["production-europe"]}')
    assert mask_exchange(other, secrets).body == b'{"data": ["*****************"]}'


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("true", "fewer than 6 characters"),
        ("Bearer abc", "fewer than 6 characters"),
        ("ababababab", "fewer than 4 different"),
        ("123456789012", "a number"),
        ("classification", "a word of the protocol"),
    ],
)
def test_unmaskable_header_has_reason(value: str, why: str) -> None:
    ((name, said),) = find_unmaskable_headers([("Authorization", value), ("X-Key", TOKEN), ("Host", "a")])
    assert name == "Authorization"
    assert why in said


# --- exchanges -------------------------------------------------------------------------------------------------------


def test_every_part_of_an_exchange_is_masked() -> None:
    came = Exchange(
        0,
        Message("/m", method=GRPC_METHOD),
        "http://x/",
        400,
        ((f"x-{TOKEN}", "a"), ("b", TOKEN), ("Set-Cookie", "session=of-the-server")),
        b"\x0a\x19" + TOKEN.encode() + b"\x00\xff",
        TransportFailure(FailureKind.MALFORMED, f"illegal header line: bytearray(b'{TOKEN}')"),
        details=f"no {percent(TOKEN)}",
    )
    hidden = mask_exchange(came, SECRETS)
    assert TOKEN not in repr(hidden)
    assert percent(TOKEN) not in repr(hidden)
    assert "of-the-server" not in repr(hidden)
    assert hidden.body == b"\x0a\x19" + b"*" * len(TOKEN) + b"\x00\xff"


@pytest.mark.parametrize(("coding", "pack"), [("gzip", gzip.compress), ("deflate", zlib.compress)])
def test_a_coded_body_is_looked_into(coding: str, pack: Callable[[bytes], bytes]) -> None:
    told = f'{{"error":"{TOKEN}"}}'.encode()
    came = Exchange(0, Message("/v2"), "http://x/", 400, (("Content-Encoding", coding),), pack(told))
    body = mask_exchange(came, SECRETS).body
    assert zlib.decompress(body, 47) == told.replace(TOKEN.encode(), b"*" * len(TOKEN))


def test_a_mask_is_linear_in_the_bytes_whatever_they_are() -> None:
    """A million repetitions of a token, of its first half, and of escapes are each one pass."""
    for piece in (TOKEN.encode(), TOKEN[:7].encode() + b"!", b"%41", b"\\u0041"):
        body = piece * (2_000_000 // len(piece))
        assert len(hide_bytes(body, SECRETS)) == len(body)


# --- whole runs ------------------------------------------------------------------------------------------------------


class Echo(JsonOnly):
    """Repeats the user's headers in every spelling, wherever a server can say something."""

    def do_GET(self) -> None:  # noqa: N802
        told = self._told()
        server = {"name": "echo " + " ".join(told), "version": told[0], "extensions": ["binary_tensor_data", *told]}
        self._answer(200 if self.path == "/v2" else 400, server if self.path == "/v2" else {"error": told})

    def do_POST(self) -> None:  # noqa: N802
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        told = self._told()
        outputs = [{"name": name, "datatype": "INT32", "shape": [1], "data": [1]} for name in told]
        is_good = self.path.endswith("infer")
        self._answer(
            200 if is_good else 400, {"model_name": told[0], "outputs": outputs} if is_good else {"error": told}
        )

    def _told(self) -> list[str]:
        values = [self.headers.get("X-Anything", ""), self.headers.get("Authorization", "").partition(" ")[2]]
        return [write(value) for value in values for write in SPELLINGS.values()]

    def end_headers(self) -> None:
        """Repeat them in a header, too."""
        self.send_header("X-Seen", " ".join(self._told()))
        super().end_headers()


_BASE64 = re.compile(rb"(?<![A-Za-z0-9+/])(?:[A-Za-z0-9+/]{4}){6,}(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """All that a run against it prints and leaves behind; what stands there in base64 is there decoded, too."""
    folder = tmp_path_factory.mktemp("echo")
    outside = tmp_path_factory.mktemp("outside") / "key"
    outside.write_text(f"{TOKEN}\n")
    reports = [f"--conformance-report=r{suffix}" for suffix in (".json", ".html", ".md", ".svg")]
    with serve(Echo) as url:
        run = judge(
            folder,
            f"--target-url={url.replace('http://', f'http://user:{quote(PASSWORD)}@')}",
            f"--target-header=X-Anything: @{outside}",
            "--target-extension=binary_tensor_data",
            *("-k", "OIP-ERROR or BIN-LISTED", "-v", "-o", "log_cli=true", "--log-cli-level=DEBUG"),
            *("-o", "junit_logging=all", "--junitxml=j.xml", "--conformance-evidence=evidence", *reports),
        )
    assert "conformance" in run.stdout
    assert list(folder.glob("evidence/*/check.json"))
    pieces = [run.stdout.encode(), run.stderr.encode()]
    pieces += [path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()]
    whole = b"\n".join(pieces)
    return b"\n".join([whole, *map(b64decode, _BASE64.findall(whole))])


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_no_output_has_a_secret(written: bytes, spelling: str) -> None:
    for secret in (TOKEN, b64encode(f"user:{PASSWORD}".encode()).decode()):
        text = SPELLINGS[spelling](secret).encode()
        pieces = {text[start : start + 16] for start in range(0, max(len(text) - 15, 1), 5)}
        assert [piece for piece in pieces if len(piece.strip(b"0123456789 ")) > 6 and piece in written] == []
    assert PASSWORD.encode() not in written


# --- how values are given --------------------------------------------------------------------------------------------


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    path = tmp_path / "key"
    path.write_text("of-a-file\n")
    return path


def test_values_of_variables_and_files(monkeypatch: pytest.MonkeyPatch, key_file: Path) -> None:
    monkeypatch.setenv("MODEL_TOKEN", "${HOME} of-the-environment")
    assert expand_headers(["A: Bearer ${MODEL_TOKEN}", f"B: @{key_file}", "C: @@me", "D: $${x} $1"]) == [
        "A:Bearer ${HOME} of-the-environment",
        "B:of-a-file",
        "C:@me",
        "D:${x} $1",
    ]
    assert expand("@key", "X", key_file.parent) == "of-a-file"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("${NO_SUCH_VARIABLE}", "--target-header 'X': the environment has no variable NO_SUCH_VARIABLE"),
        ("${", "write $${ for a literal ${"),
        ("@nowhere", "No such file or directory; write @@ for a value that begins with @"),
        ("@/dev/zero", "is not a regular file"),
        ("@/", "the file /: Is a directory"),
    ],
)
def test_unreadable_header_value_is_settings_error(value: str, said: str) -> None:
    with pytest.raises(SettingsError) as refused:
        expand_headers([f"X: {value}"])
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("url", "headers", "grpc"),
    [
        ("http://user:s3same/open@host:80", (), None),
        ("http://user:s3same@host:port", (), None),
        ("ftp://user:s3same@host", (), None),
        ("http://user:s3same@host?x", (), None),
        ("http://user:s3same@[", (), None),
        ("", (), "user:s3same@host:1"),
        ("http://x", ("Bearer s3same",), None),
        ("http://x", ("Bearer s3same:x",), None),
        ("http://x", ("X: s3same\r\n",), None),
    ],
)
def test_no_refusal_shows_a_secret(url: str, headers: tuple[str, ...], grpc: str | None) -> None:
    with pytest.raises(SettingsError) as refused:
        make_settings(url, headers, grpc=grpc)
    assert "s3same" not in str(refused.value)


def test_what_is_printed_of_settings_has_no_secret() -> None:
    assert TOKEN not in repr(make_settings("http://x", (f"X-Key: {TOKEN}",)))
