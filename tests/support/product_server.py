"""The reference server as somebody's product, P of version 1, in its metadata: `python product_server.py`."""

from __future__ import annotations

from typing import Any

from reference_server import __main__ as program
from reference_server import metadata

own = metadata.describe_server


def server() -> dict[str, Any]:
    """Return the server's metadata under the product's name."""
    return own() | {"name": "p", "version": "1"}


if __name__ == "__main__":
    metadata.describe_server = server
    program.main()
