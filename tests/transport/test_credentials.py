"""What counts as a secret, and that no piece of one stays where a server repeats it."""

from __future__ import annotations

import pytest

from conformance.transport.credentials import find_secrets, hide

TOKEN = "tok/Sup3r+S3cret=vX9q"  # noqa: S105 - made up


@pytest.mark.parametrize(
    ("name", "value", "secrets"),
    [
        ("Authorization", "Bearer abcdef123", {"abcdef123"}),
        # user:letmein2
        ("Authorization", "Basic dXNlcjpsZXRtZWluMg==", {"dXNlcjpsZXRtZWluMg==", "user:letmein2", "letmein2"}),
        ("Cookie", "session=abcdefgh; theme=dark", {"session=abcdefgh; theme=dark", "abcdefgh"}),
        ("X-Api-Key", "0123456789abc", {"0123456789abc"}),
        ("X-Api-Key", "0123456789012345", {"0123456789012345"}),
        ("X-Api-Key", "012345678901234", set()),  # it may be a number of an answer
        ("X-Api-Key", "aaabbbaaabbb", set()),
        ("X-Api-Key", "binary_tensor_data", set()),
        ("X-Auth-Token", "short", set()),
        ("Host", "models.example.org", set()),
        ("Accept", "application/json", set()),
    ],
)
def test_what_is_secret(name: str, value: str, secrets: set[str]) -> None:
    assert set(find_secrets([(name, value)])) == secrets


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("cut: tok/Sup3r+S", "cut: ***********"),
        ("cut: tok/Sup3... (21 characters)", "cut: ********... (21 characters)"),
        ("its end: 3cret=vX9q", "its end: **********"),
        ("tok/Sup", "tok/Sup"),  # seven characters of it are no secret
        ("INT32 OUTPUT 3", "INT32 OUTPUT 3"),
    ],
)
def test_texts(text: str, hidden: str) -> None:
    assert hide(text, (TOKEN,)) == hidden


def test_short_secrets_are_found_whole() -> None:
    assert hide("is sesame, sesam", ("sesame",)) == "is ******, sesam"
