"""What an installation pulls in: licences that anybody may use with ours, and a page that says what it is."""

from __future__ import annotations

import re

from tests.support import audit, dependencies
from tests.support.dependencies import InstalledPackage, find_installed
from tests.support.tables import on_each, own_name

# Those that ask no more of who uses or passes on the suite than to name the authors; of MPL-2.0, to pass on changes to
# its own files. As SPDX names them.
ALLOWED = frozenset(
    {
        *("0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "ISC", "MIT", "MIT-0", "MPL-2.0"),
        *("PSF-2.0", "Python-2.0", "Unlicense", "Zlib"),
    }
)


def names(licence: str) -> list[str]:
    """Return the licences of an expression, all of which are asked for: of a choice, too, each is one."""
    return re.split(r" (?:AND|OR) ", licence.replace("(", "").replace(")", ""))


@on_each(find_installed, own_name)
def test_the_licence_of_a_dependency_is_one_that_is_allowed(package: InstalledPackage) -> None:
    assert set(names(package.licence)) <= ALLOWED


def test_a_licence_that_is_not_allowed_shows() -> None:
    assert not set(names("MIT AND (GPL-3.0-only OR Apache-2.0)")) <= ALLOWED
    assert not set(names("")) <= ALLOWED


def rows(page: str) -> dict[str, list[str]]:
    """Return the rows of the table: package -> its other cells."""
    part = page.partition(dependencies.HEADING)[2]
    cells = [re.split(r" ?\| ?", line)[1:-1] for line in part.splitlines() if line.startswith("| ")]
    return {name: others for name, *others in cells[1:]}


def test_the_page_has_what_an_installation_pulls_in() -> None:
    written = rows(dependencies.PAGE.read_text(encoding="utf-8"))
    assert {name: cells[:2] for name, cells in written.items()} == {
        one.name: [one.extra, one.licence] for one in find_installed()
    }


def test_the_sizes_of_the_page_are_about_right() -> None:
    """A new version of a package, or another platform, may differ: by less than half, or a megabyte."""
    written = rows(dependencies.PAGE.read_text(encoding="utf-8"))
    stated = {one.name: float(written[one.name][2].split()[0]) * 1e6 for one in find_installed()}
    far = [one.name for one in find_installed() if abs(stated[one.name] - one.size) > max(1e6, one.size / 2)]
    assert far == []


def test_the_sums_of_the_page_are_those_of_its_table() -> None:
    page = dependencies.PAGE.read_text(encoding="utf-8")
    sizes = [(extra, float(size.split()[0])) for extra, _, size in rows(page).values()]
    stated = re.search(r"A plain installation is ([\d.]+) MB, one with every extra ([\d.]+) MB", page)
    assert stated
    for total, found in zip(
        stated.groups(), ([s for extra, s in sizes if not extra], [s for _, s in sizes]), strict=True
    ):
        assert abs(float(total) - sum(found)) < 0.05 * len(found), "each is rounded"


def audited(**more: object) -> dict[str, object]:
    """Return what pip-audit says of a package."""
    return {"name": "p", "version": "1", "vulns": []} | more


def test_an_audit_finds_nothing_where_all_is_known() -> None:
    assert audit.judge_packages([audited(), audited()], 2) == ("no known vulnerability in 2 packages", 0)


def test_an_audit_of_a_package_that_the_index_does_not_know_fails() -> None:
    skipped = {"name": "q", "skip_reason": "Dependency not found on PyPI and could not be audited: q (1)"}
    said = "the index of vulnerabilities has no answer for 1 of 2 packages"
    assert audit.judge_packages([audited(), skipped], 2) == (said, audit.UNKNOWN)
    assert audit.judge_packages([audited()], 2) == (said, audit.UNKNOWN)


def test_an_audit_names_what_is_vulnerable() -> None:
    found = {"id": "PYSEC-1", "fix_versions": ["2"]}
    assert audit.judge_packages([audited(vulns=[found])], 1) == ("p 1: PYSEC-1, mended in 2", audit.VULNERABLE)
