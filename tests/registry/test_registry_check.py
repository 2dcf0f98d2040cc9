"""What a registry takes, and what it says where it does not, on folders made by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from conformance.certification import manifest, sealing
from conformance.commands.main import main
from conformance.registry import checking, policy
from conformance.registry.policy import RegistryError
from tests.support.made_reports import CONFORMANT, HOSTILE
from tests.support.registries import POLICY, VENDOR_KEY, make_certification, make_registry

DAY = date(2026, 11, 23)


def problems(root: Path, *given: Path) -> list[tuple[str, ...]]:
    """Return what is said of folders."""
    return [found.problems for found in checking.check_folders(given, root, DAY)]


PARTIAL = {"standing": "partial", "coverage": {"met": 1, "of": 2}}
SELF_TEST = {"self_test": True, "alias_of": None, "third_party": None}
THROWAWAY = sealing.describe_key(VENDOR_KEY, lasting=False)
ANOTHER = "is not in the policy: the maintainers add it with the key "

RULES: dict[str, tuple[str, dict[str, Any], str]] = {
    "no-url": (POLICY, {"product_url": None}, "give the URL of the product: --product-url"),
    "no-licence": (POLICY, {"licence": None}, "give the licence of the product: --licence"),
    "no-provenance": (
        POLICY,
        {"container": None, "version_command": None},
        "name the image or the version that was judged",
    ),
    "no-lasting-key": (POLICY, {"key": THROWAWAY}, "sign with a long-lived key: --sign"),
    "self-test": (POLICY, SELF_TEST, "the policy accepts no self-tests"),
    "interoperable": (POLICY, {"standing": "interoperable"}, "the server is certified as interoperable; this registry"),
    "partial": (POLICY, PARTIAL, "the server is certified as partial (1 of 2 MUSTs judged and met); this registry"),
    "another-suite": (
        POLICY.replace('"0.1.0"', '"0.2.0"'),
        {},
        "this registry does not accept suite 0.1.0: certify with one of 0.2.0",
    ),
    "an-old-suite": (
        POLICY.replace('"0.1.0"', '"0.1.0"\nuntil = 2026-01-01'),
        {},
        "this registry accepts suite 0.1.0 for runs until 2026-01-01: certify with a newer version",
    ),
    "a-new-vendor": (POLICY, {"vendor": "W"}, f"the vendor W {ANOTHER}"),
    "another-key": (POLICY.replace("{vendor}", "0" * 64), {}, "the policy does not list the key"),
    "a-new-third-party": (POLICY.replace(".L]", ".M]"), {}, f"the third party L {ANOTHER}"),
    "too-large": (f"most_bytes = 9\n{POLICY}", {}, "bytes; the maximum is 9"),
    "expired": (POLICY, {"expires": "2026-11-22"}, "the certification expired on 2026-11-22"),
}


@pytest.mark.usefixtures("believed")
@pytest.mark.parametrize("name", RULES)
def test_what_is_not_taken(name: str, tmp_path: Path) -> None:
    demanded, changes, reason = RULES[name]
    ((found, *more),) = problems(make_registry(tmp_path, demanded), make_certification(tmp_path / "c", **changes))
    assert reason in found
    assert not more


@pytest.mark.usefixtures("believed")
@pytest.mark.parametrize(
    ("demanded", "changes"),
    [
        (POLICY, {}),
        (POLICY, {"container": None}),
        (f"interoperable = true\n{POLICY}", {"standing": "interoperable"}),
        (f"partial = true\n{POLICY}", PARTIAL),
        (POLICY, {"third_party": None}),
        (f"demands = []\n{POLICY}", {"product_url": None, "licence": None, "key": THROWAWAY}),
        (f"self_tests = true\n{POLICY}", SELF_TEST | {"product_url": None, "vendor": "W", "key": THROWAWAY}),
        (POLICY.replace('"0.1.0"', '"0.1.0"\nuntil = 2026-01-02'), {}),
        (POLICY, {"expires": "2026-11-23"}),
    ],
)
def test_what_is_taken(demanded: str, changes: dict[str, Any], tmp_path: Path) -> None:
    assert problems(make_registry(tmp_path, demanded), make_certification(tmp_path / "c", **changes)) == [()]


@pytest.mark.usefixtures("believed")
def test_one_certification_at_a_time(tmp_path: Path) -> None:
    root = make_registry(tmp_path / "registry")
    make_certification(root / "there")
    again = make_certification(tmp_path / "again", finished="2026-02-02T03:05:05+00:00", product="p.")
    ((found,),) = (each.problems for each in checking.check_folders([again], root, date(2026, 6, 1)))
    assert found.startswith("p. 1 already has a certification for full: there, valid until 2027-01-02")
    assert problems(root, make_certification(tmp_path / "other", product_version="2")) == [()]
    assert problems(root, make_certification(tmp_path / "profile", profile="binary")) == [()]
    assert problems(root, again) == [()], "40 days before the other ends"


@pytest.mark.usefixtures("believed")
@pytest.mark.parametrize("less", [{"standing": "interoperable"}, PARTIAL], ids=["interoperable", "partial"])
def test_a_conformant_one_follows_one_that_is_less(tmp_path: Path, less: dict[str, Any]) -> None:
    root = make_registry(tmp_path / "registry", f"interoperable = true\npartial = true\n{POLICY}")
    make_certification(root / "there", **less)
    other = make_certification(tmp_path / "other", **less, contact="other")
    found = checking.check_folders([make_certification(tmp_path / "conformant"), other], root, date(2026, 6, 1))
    assert found[0].is_accepted
    assert "has a certification for full: there" in found[1].problems[0]


@pytest.mark.usefixtures("believed")
def test_what_is_revoked_makes_room_and_is_not_taken_again(tmp_path: Path) -> None:
    root = make_registry(tmp_path / "registry")
    there = make_certification(root / "there")
    digest = manifest.compute_digest(there / manifest.NAME)
    revoked = f'[[revoked]]\ncertification = "{digest}"\non = 2026-06-01\nreason = "r"\n'
    make_registry(root, revoked=revoked)
    assert problems(root, make_certification(tmp_path / "new", contact="other")) == [()]
    assert problems(root, there) == [("the certification is revoked: r",)]


@pytest.mark.usefixtures("believed")
def test_a_run_has_one_label(tmp_path: Path) -> None:
    """Two that come together are held against each other, too."""
    root = make_registry(tmp_path / "registry")
    first = make_certification(tmp_path / "first")
    (tmp_path / "second").mkdir()
    changed = replace(manifest.read(first), product="Q", third_party=None)
    sealing.seal(tmp_path / "second", changed, CONFORMANT, first / manifest.RECORDING, VENDOR_KEY)
    one, two = problems(root, first, tmp_path / "second")
    assert one == ()
    assert two == (f"{first} certifies the same run, as P 1 by V",)


def test_a_folder_that_does_not_verify_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The recording of a folder made by hand shows nothing."""
    make_registry(tmp_path)
    given = make_certification(tmp_path / "c")
    assert main(["registry", "check", str(given), "--root", str(tmp_path)]) == 1
    said = capsys.readouterr().out
    assert said.startswith("### Certifications: 1 of 1 not accepted\n\n**`c`**: not accepted\n\n- `")
    assert "label: P 1; the server reports " in said


@pytest.mark.usefixtures("believed")
def test_a_comment_says_what_a_reviewer_looks_at(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_registry(tmp_path)
    given = make_certification(tmp_path / "c", expires="2999-01-01")
    assert main(["registry", "check", str(given), "--root", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert said.startswith("### Certifications: all accepted\n\n**`c`**: accepted\n")
    for part in (
        "| product | `P 1` by `V` |",
        f"`{manifest.compute_digest(given / manifest.NAME)}`",
        "| run by | `L`, key",
    ):
        assert part in said


@pytest.mark.usefixtures("believed")
def test_nothing_of_a_stranger_is_markdown(tmp_path: Path) -> None:
    hostile = "".join(part for part in HOSTILE if part >= " " and part != "\x7f")[:200]
    found = checking.check_folders(
        [make_certification(tmp_path / "c", vendor=hostile, product="@everyone")], make_registry(tmp_path), DAY
    )
    for line in checking.render_comment(found).splitlines():
        outside = "".join(line.split("`")[::2]) if "```" not in line else ""
        assert "@everyone" not in outside
        assert "<script" not in outside


POLICIES: dict[str, tuple[Callable[[str], str], str]] = {
    "missing": (lambda _: "", "'title' is a required property"),
    "no-toml": (lambda text: text + "=", "not TOML"),
    "unknown": (lambda text: "more = 1\n" + text, "'more' was unexpected"),
    "key": (lambda text: text.replace("{vendor}", "k"), "$.vendors.V.keys[0]: 'k' does not match"),
    "day": (
        lambda text: text.replace('"0.1.0"', '"0.1.0"\nuntil = "soon"'),
        "$.suites[0].until: 'soon' is not a 'date'",
    ),
    "link": (lambda text: text.replace("https:", "javascript:"), "$.url: "),
}


@pytest.mark.parametrize("name", POLICIES)
def test_an_unreadable_policy_is_one_line(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edit, reason = POLICIES[name]
    make_registry(tmp_path, edit(POLICY))
    assert main(["registry", "build", str(tmp_path), "-o", str(tmp_path / "site")]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert f"{tmp_path / 'registry.toml'}: " in said
    assert reason in said


def test_there_is_no_registry_without_a_policy(tmp_path: Path) -> None:
    with pytest.raises(RegistryError, match=r"registry\.toml does not exist: name the folder of a registry"):
        policy.read(tmp_path)


def test_revocations_have_a_form(tmp_path: Path) -> None:
    make_registry(tmp_path, revoked='[[revoked]]\ncertification = "x"\non = 2026-01-01\nreason = "r"\n')
    with pytest.raises(RegistryError, match=r"revoked\.toml: \$\.revoked\[0\]\.certification: 'x' does not match"):
        policy.read_notices(tmp_path)
