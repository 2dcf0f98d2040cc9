"""One honest application behind HTTP servers that are not ours: hosts.toml lists them."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

HOSTS = Path(__file__).parent / "hosts.toml"
Host = Mapping[str, Any]


def read_hosts() -> dict[str, Host]:
    """Return the HTTP servers by name."""
    return tomllib.loads(HOSTS.read_text(encoding="utf-8"))
