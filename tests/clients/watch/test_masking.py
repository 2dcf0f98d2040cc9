"""Credentials are taken out of what a client sends before anybody keeps it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from conformance.clients.recording.recorder import find_secrets, mask_answer, mask_request
from conformance.clients.recording.records import RecordedAnswer
from conformance.wire.client_request import ClientRequest

SECRET = "sesame-open-0123456789"  # noqa: S105 - made up
HEADERS = {
    "Authorization": f"Bearer {SECRET}",
    "Proxy-Authorization": f"Basic {SECRET}",
    "Cookie": f"a=b; session={SECRET}",
    "X-Api-Key": SECRET,
    "api_key": SECRET,
    "X-Auth-Token": SECRET,
    "x-goog-iam-authorization-token": SECRET,
}


@pytest.mark.parametrize("name", HEADERS)
def test_a_header_keeps_its_name_alone(name: str) -> None:
    received = ClientRequest("POST", "/v2/models/m/infer", ((name, HEADERS[name]), ("X-A", "kept")), SECRET.encode())
    shown = mask_request(received)
    assert shown.headers == ((name, "..."), ("X-A", "kept"))
    assert SECRET.encode() not in shown.body
    assert len(shown.body) == len(received.body)
    assert SECRET in find_secrets(received)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (f"/v2/models/m/infer?api_key={SECRET}&a=b", "/v2/models/m/infer?api_key=...&a=b"),
        (f"/infer?a=b&access_token={SECRET}", "/infer?a=b&access_token=..."),
        (f"http://user:{SECRET}@host/v2", "http://...@host/v2"),
        (f"/v2/models/{SECRET}/infer?key={SECRET}", f"/v2/models/{'*' * len(SECRET)}/infer?key=..."),
        ("/v2/models/key/infer?a=token", "/v2/models/key/infer?a=token"),
    ],
)
def test_a_url_keeps_the_names_of_its_parameters(path: str, expected: str) -> None:
    assert mask_request(ClientRequest("POST", path)).path == expected


def test_what_is_short_or_a_number_stays_in_a_body_since_it_may_be_part_of_the_json() -> None:
    body = b'{"inputs": [1234567890123456789]}'
    received = ClientRequest("POST", "/", (("X-Key", "inputs"), ("X-Token", "1234567890123456789")), body)
    assert mask_request(received).body == body


def test_an_answer_that_repeats_a_secret_does_not() -> None:
    received = ClientRequest("POST", "/", (("Authorization", f"Bearer {SECRET}"),))
    answer = RecordedAnswer(
        401, (("Set-Cookie", "a=b"), ("X-Seen", SECRET)), f"no {SECRET}".encode(), details=f"no {SECRET}"
    )
    shown = mask_answer(answer, find_secrets(received))
    assert shown == replace(
        answer,
        headers=(("Set-Cookie", "..."), ("X-Seen", "*" * len(SECRET))),
        body=b"no " + b"*" * len(SECRET),
        details="no " + "*" * len(SECRET),
    )
