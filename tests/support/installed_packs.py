"""Installs packs without pip: their folder, and the metadata with their entry point, go on the path."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from textwrap import dedent

EXAMPLES = Path(__file__).parents[2] / "examples" / "packs"
GROUP = "oip_conformance.packs"
# A pack with a MUST, of which one row fails, and a SHOULD that is not met.
FILES = {
    "__init__.py": "INTERFACE = 1\n",
    "sentences.toml": """
        [little-doc]
        title = "Little"
        url = "https://example.org/little"
        [little-doc.sentences.live]
        section = "Live"
        anchor = "live"
    """,
    "requirements.toml": """
        [LITTLE-LIVE]
        level = "MUST"
        concern = "exchange"
        basis = "literal"
        statement = "The server is live."
        sources = ["little-doc.live"]
        [LITTLE-FAST]
        level = "SHOULD"
        concern = "exchange"
        basis = "literal"
        statement = "The server is `fast`."
        sources = ["little-doc.live", "oip-rest.server-extensions"]
    """,
    "live.py": """
        from conformance.expect.expectation import expect
        from conformance.expect.unmet import UnmetError
        from conformance.spec.check import check, rows

        @check("little.is-live", requirements="LITTLE-LIVE")
        @rows(("live", "live"), ("other", "OTHER"))
        def is_live(target, word):
            \"\"\"The server is live.\"\"\"
            expect(target.get(f"/v2/health/{word}")).answered()

        @check("little.is-fast", requirements="LITTLE-FAST", role="identity_int32")
        def is_fast(target, model):
            \"\"\"The server is fast.\"\"\"
            raise UnmetError("a fast server", "\\x1b[31m<b>this one</b>", target.infer(model.request(send="json")))
    """,
}


def list_examples() -> list[Path]:
    """Return the folder of each pack of this repository."""
    return sorted(path.parent for path in EXAMPLES.glob("*/pyproject.toml"))


def install_examples(place: Path, folders: Iterable[Path]) -> list[str]:
    """Install packs from their projects; return what is added to the path of Python."""
    added = []
    for folder in folders:
        project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        write_metadata(place, project["name"], project["version"], project["entry-points"][GROUP])
        added.append(str(folder))
    return [*added, str(place)]


def write_metadata(place: Path, name: str, version: str, packs: Mapping[str, str]) -> None:
    """Write the metadata of an installed distribution with packs: name -> package."""
    folder = place / f"{name.replace('-', '_')}-{version}.dist-info"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", encoding="utf-8")
    lines = [f"[{GROUP}]", *(f"{pack} = {package}" for pack, package in packs.items())]
    (folder / "entry_points.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_pack(place: Path, changes: dict[str, str], name: str = "little", package: str = "oip_little_pack") -> None:
    """Install a pack with these files instead of its own; a file without content is left out."""
    folder = place / package
    folder.mkdir(parents=True)
    for file, text in {**FILES, **changes}.items():
        if text:
            (folder / file).write_text(dedent(text), encoding="utf-8")
    write_metadata(place, package, "0.5", {name: package})


def extend_path(added: Iterable[str]) -> None:
    """Add folders to the path of this process."""
    sys.path.extend(each for each in added if each not in sys.path)
