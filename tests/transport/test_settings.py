"""What users write, and the one line that tells them what is wrong with it."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.transport.settings import SettingsError, make_settings


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://host:8000", "http://host:8000"),
        ("http://host:8000/", "http://host:8000"),
        ("https://host/gateway/", "https://host/gateway"),
        ("http://[::1]:8000", "http://[::1]:8000"),
        ("http://user:secret@host:8000", "http://host:8000"),
    ],
)
def test_urls(url: str, expected: str) -> None:
    assert make_settings(url).url == expected


def test_credentials_become_a_header() -> None:
    # base64("user:p@ss"), by hand: 75 73 65 72 3a 70 40 73 73
    assert make_settings("http://user:p%40ss@host").headers == (("Authorization", "Basic dXNlcjpwQHNz"),)


def test_headers() -> None:
    assert make_settings("http://host", ["Host: a", "X-Key:b:c"]).headers == (("Host", "a"), ("X-Key", "b:c"))


HINT = "give http://HOST:PORT, https://HOST:PORT or 'reference'"


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("host:8000", f"--target-url 'host:8000' is not an http or https URL: {HINT}"),
        ("ftp://host", f"--target-url 'ftp://host' is not an http or https URL: {HINT}"),
        ("http://", f"--target-url 'http://' is not an http or https URL: {HINT}"),
        ("http://host?x=1", f"--target-url 'http://host?x=1': a base URL has no query or fragment; {HINT}"),
        ("http://a..b:80", f"--target-url 'http://a..b:80': the host name is invalid; {HINT}"),
        (f"http://{'a' * 70}.org", f"--target-url 'http://{'a' * 70}.org': the host name is invalid; {HINT}"),
        ("http://host:port", "--target-url 'http://host:port': host or port cannot be read"),
    ],
)
def test_bad_urls(url: str, message: str) -> None:
    with pytest.raises(SettingsError) as error:
        make_settings(url)
    assert str(error.value).startswith(message)


FRAMING = ["Content-Length: 5", "transfer-encoding: chunked", "Expect: 100-continue"]
BAD = [
    *[({"headers": [header]}, "write it as 'Name: value'") for header in ("novalue", ": x", "a b: c", "a: b\nc: d")],
    *[({"headers": [header]}, "the suite sets this header itself") for header in FRAMING],
    *[({"timeout": timeout}, "give seconds between 0 and 3600") for timeout in (0, -1, 4000)],
]


@pytest.mark.parametrize(("given", "message"), BAD)
def test_bad_headers_and_timeouts(given: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        make_settings("http://host", **given)
