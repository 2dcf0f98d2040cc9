"""The site of a registry: what stands in it, as text and in a browser."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import html5lib
import pytest
from axe_playwright_python.sync_playwright import Axe
from jsonschema import Draft202012Validator
from playwright.sync_api import Browser

from conformance.certification import manifest
from conformance.commands.main import main
from conformance.registry import static_site
from conformance.registry.static_site import make_slug
from conformance.spec import data_files
from tests.support.made_reports import CONFORMANT, HOSTILE, PARTIAL, requirement
from tests.support.registries import make_certification, make_registry

DAY = date(2026, 11, 23)
pytestmark = pytest.mark.usefixtures("believed")
ATOM = "{http://www.w3.org/2005/Atom}"
ADVISED = CONFORMANT | {
    "requirements": [*CONFORMANT["requirements"], requirement("BIN-LENGTH", "SHOULD", "advisory", url="https://u")]
}
INTEROPERABLE = CONFORMANT | {
    "verdict": "nonconformant",
    "requirements": [*CONFORMANT["requirements"], requirement("OIP-REFUSAL", "MUST", "fail", url="")],
}


def the_id(path: Path) -> str:
    return manifest.compute_digest(path / manifest.NAME)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A registry with a certification of each status, and texts that are attacks."""
    root = tmp_path / "registry"
    hostile = "".join(part for part in HOSTILE if part >= " " and part != "\x7f")[:200]
    make_certification(root / "a/valid", ADVISED)
    make_certification(
        root / "a/old", product_version="0.9", finished="2025-01-01T00:00:00+00:00", expires="2026-01-01"
    )
    revoked = make_certification(root / "a/revoked", product_version="2", contact=hostile, product=hostile)
    disputed = make_certification(root / "a/disputed", product_version="3", profile="binary+raw")
    make_certification(
        root / "a/interoperable", INTEROPERABLE, product_version="4", profile="classification", standing="interoperable"
    )
    make_certification(
        root / "a/partial", PARTIAL, product_version="5", profile="binary", standing="partial",
        coverage={"met": 1, "of": 2},
    )  # fmt: skip
    make_certification(root / "forged")
    make_certification(root / "stranger", vendor="W")
    return make_registry(
        root,
        revoked=f"""[[revoked]]
certification = "{the_id(revoked)}"
on = 2026-11-01
reason = "<i>Withdrawn</i>"
[[disputed]]
certification = "{the_id(disputed)}"
on = 2026-11-02
reason = "Is it so?"
requirement = "BIN-LENGTH"
url = "https://example.com/1"
""",
    )


@pytest.fixture
def built(root: Path, tmp_path: Path) -> Path:
    static_site.build(root, tmp_path / "site", DAY)
    return tmp_path / "site"


def index_of(built: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((built / "index.json").read_text())
    return found


def text_of(page: Path) -> str:
    return " ".join("".join(html5lib.HTMLParser(strict=True).parse(page.read_text()).itertext()).split())


def test_each_is_shown_as_what_it_is(built: Path) -> None:
    index = index_of(built)
    form = json.loads((data_files.find_folder("schemas") / "registry_index.schema.json").read_text())
    Draft202012Validator(form).validate(index)
    statuses = {entry["folder"]: entry["status"] for entry in index["certifications"]}
    assert statuses == {
        "a/valid": "valid",
        "a/old": "expired",
        "a/revoked": "revoked",
        "a/disputed": "disputed",
        "a/interoperable": "valid",
        "a/partial": "valid",
    }
    assert [entry["folder"] for entry in index["not_verified"]] == ["forged", "stranger"]
    shown = text_of(built / "index.html")
    for status in statuses.values():
        assert f" {status}" in shown
    assert "Not verified These folders do not hold, and certify nothing. forged: " in shown
    for entry in index["certifications"]:
        page = text_of(built / entry["page"])
        assert f"{entry['status']} Profile {entry['manifest']['profile']}, certified as {entry['standing']}" in page
        assert entry["id"] in page
        assert (built / entry["page"]).with_name("report.html").is_file()


def test_a_client_is_listed_beside_the_server_of_the_same_name(tmp_path: Path) -> None:
    target = CONFORMANT["target"] | {"language": "Go", "transports": ["http"]}
    make_certification(tmp_path / "r/server")
    make_certification(tmp_path / "r/client", CONFORMANT | {"party": "client", "target": target}, party="client")
    make_certification(
        tmp_path / "r/calls", CONFORMANT | {"party": "client", "target": target | {"transports": ["grpc"]}},
        party="client", product="Q",
    )  # fmt: skip
    static_site.build(make_registry(tmp_path / "r"), tmp_path / "site", DAY)
    found = {entry["folder"]: entry for entry in index_of(tmp_path / "site")["certifications"]}
    assert {name: entry["party"] for name, entry in found.items()} == {
        "server": "server",
        "client": "client",
        "calls": "client",
    }
    assert found["client"]["badge"] == "badges/v/p/client/full.json"
    badges = {
        name: json.loads((tmp_path / "site" / entry["badge"]).read_text())["message"] for name, entry in found.items()
    }
    assert badges == {"server": "full 1", "client": "client, full 1", "calls": "client, full 1"}
    shown = text_of(tmp_path / "site/index.html")
    assert "P client by V" in shown
    assert "full, gRPC alone" in shown
    assert "A client. Profile full" in text_of(tmp_path / "site" / found["client"]["page"])
    assert "the client reports" in text_of(tmp_path / "site" / found["client"]["page"])


def test_what_became_of_one_is_said_with_the_reason(built: Path) -> None:
    pages = {entry["folder"]: text_of(built / entry["page"]) for entry in index_of(built)["certifications"]}
    assert "Revoked since 2026-11-01: <i>Withdrawn</i>" in pages["a/revoked"]
    assert "In dispute since 2026-11-02: Is it so? (requirement BIN-LENGTH) Discussion" in pages["a/disputed"]
    assert "It expired on 2026-01-01, and says nothing of the product as it is today." in pages["a/old"]
    assert "Advice that was not followed BIN-LENGTH: " in pages["a/valid"]


def test_an_interoperable_one_is_shown_as_that(built: Path) -> None:
    (entry,) = (each for each in index_of(built)["certifications"] if each["standing"] == "interoperable")
    assert "4 interoperable valid" in text_of(built / "index.html")
    assert "Refusals that were not met OIP-REFUSAL: " in text_of(built / entry["page"])
    assert 'href=""' not in (built / entry["page"]).read_text()  # the page of a requirement may have no address


def test_advice_leads_to_the_page_of_its_requirement(built: Path) -> None:
    (entry,) = (each for each in index_of(built)["certifications"] if each["folder"] == "a/valid")
    assert '<a href="https://u"><code>BIN-LENGTH</code></a>' in (built / entry["page"]).read_text()


def test_a_partial_one_is_shown_as_that_with_its_coverage(built: Path) -> None:
    (entry,) = (each for each in index_of(built)["certifications"] if each["standing"] == "partial")
    assert entry["manifest"]["coverage"] == {"met": 1, "of": 2}
    assert "5 partial valid" in text_of(built / "index.html")
    assert "certified as partial (1 of 2 MUSTs judged and met)" in text_of(built / entry["page"])
    badge = json.loads((built / "badges/v/p/binary.json").read_text())
    assert (badge["message"], badge["color"], badge["isError"]) == ("partial 1/2, binary 5", "6639ba", True)


def test_badges_say_what_is_valid(built: Path) -> None:
    badge = json.loads((built / "badges/v/p/full.json").read_text())
    assert badge == {
        "schemaVersion": 1, "label": "oip conformance", "message": "full 1", "color": "1a7f37", "isError": False
    }  # fmt: skip
    disputed = json.loads((built / "badges/v/p/binary+raw.json").read_text())
    assert (disputed["message"], disputed["isError"]) == ("disputed 3", True)
    assert "full 1" in (built / "badges/v/p/full.svg").read_text()
    interoperable = json.loads((built / "badges/v/p/classification.json").read_text())
    assert (interoperable["message"], interoperable["isError"]) == ("interoperable, classification 4", False)
    for entry in index_of(built)["certifications"]:
        assert (built / entry["badge"]).is_file()
        assert (built / entry["badge"]).with_suffix(".svg").is_file()


def test_the_feed_tells_of_certifications_and_of_their_end(built: Path) -> None:
    feed = ElementTree.fromstring((built / "feed.xml").read_bytes())  # noqa: S314 - our own
    titles = [entry.findtext(f"{ATOM}title") or "" for entry in feed.findall(f"{ATOM}entry")]
    kinds = [title.partition(":")[0] for title in titles]
    assert kinds[:2] == ["In dispute", "Revoked"]
    partial = "Certified as partial (1 of 2 MUSTs judged and met)"
    assert sorted(kinds[2:]) == [*["Certified"] * 4, "Certified as interoperable", partial]
    assert feed.findtext(f"{ATOM}updated") == "2026-11-02T00:00:00+00:00"
    places = [link.get("href") or "" for link in feed.iter(f"{ATOM}link")]
    assert all(place.startswith("https://registry.example/site/") for place in places)
    assert len({entry.findtext(f"{ATOM}id") for entry in feed.findall(f"{ATOM}entry")}) == len(titles)


def test_nothing_of_a_stranger_is_a_tag(built: Path) -> None:
    for page in built.rglob("index.html"):
        tree = html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parse(page.read_text())
        assert {element.tag for element in tree.iter()} & {"script", "img", "i"} == set()
        assert "default-src 'none'" in page.read_text()


def test_the_same_registry_on_the_same_day_has_the_same_site(root: Path, built: Path, tmp_path: Path) -> None:
    static_site.build(root, tmp_path / "again", DAY)
    files = {path.relative_to(built): path.read_bytes() for path in built.rglob("*") if path.is_file()}
    again = tmp_path / "again"
    assert {path.relative_to(again): path.read_bytes() for path in again.rglob("*") if path.is_file()} == files


def test_build_says_what_does_not_hold(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["registry", "build", str(root), "-o", str(tmp_path / "s")]) == 1
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith(f"wrote {tmp_path}/s/index.html: 2 not verified, 1 revoked, ")
    assert said[1].startswith("forged: ")
    assert said[2].startswith("stranger: the vendor W is not in the policy")
    assert main(["registry", "build", str(root), "-o", str(tmp_path / "s")]) == 2
    assert "is not empty: give a new folder" in capsys.readouterr().err
    assert main(["registry", "build", str(root), "-o", str(root / "registry.toml/s")]) == 2
    assert "cannot write " in capsys.readouterr().err


def test_a_registry_without_certifications_has_a_site(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_registry(tmp_path / "r")
    assert main(["registry", "build", str(tmp_path / "r"), "-o", str(tmp_path / "s")]) == 0
    assert "no certifications" in capsys.readouterr().out
    assert "There is no certification yet." in text_of(tmp_path / "s/index.html")
    assert ElementTree.fromstring((tmp_path / "s/feed.xml").read_bytes()).tag == f"{ATOM}feed"  # noqa: S314 - our own


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("V", "v"),
        ("Example Inc.", "example-inc"),
        ("a/../b", "a-..-b"),
        ("..", None),
        ("\u6771\u4eac", None),
        ("/", None),
    ],
)
def test_names_of_files_stay_below(name: str, expected: str | None) -> None:
    found = make_slug(name)
    assert found == (expected or found)
    assert found
    assert not {"/", ".", ".."} & {found}
    assert "/" not in found


def test_the_pages_are_for_everybody(browser: Browser, built: Path) -> None:
    rules = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
    pages = [built / "index.html", *(built / entry["page"] for entry in index_of(built)["certifications"])]
    views = ((1280, "light"), (390, "dark"))
    seen = [(pages[0], *views[0]), *((page, *views[place % 2]) for place, page in enumerate(pages, 1))]
    for page, width, scheme in seen:
        context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)  # type: ignore[arg-type]
        shown = context.new_page()
        shown.goto(page.as_uri())
        found = Axe().run(shown, options={"runOnly": rules, "resultTypes": ["violations"]})
        assert found.violations_count == 0, f"{page}: {found.generate_report()}"
        assert shown.evaluate("document.documentElement.scrollWidth") <= width
        context.close()
