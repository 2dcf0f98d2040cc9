"""The reference server, whose process ends at a request: `python -m tests.support.ending_server [OPTIONS] KIND`.

KIND is a text that the body of this request holds, or `raw:` for a raw binary request; options are the server's own.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from reference_server import __main__, app, framing
from reference_server.faults import fault, switch_on

STATUS = 3


def main(kind: str) -> None:
    """Serve until a request of this kind comes."""

    @fault("app.Service.infer")
    async def ending(original: Any, service: app.Service, http: Any) -> Any:
        """The process ends."""
        body = await http.body()
        if http.headers.get(framing.HEADER) == "0" if kind == "raw:" else kind.encode() in body:
            os._exit(STATUS)
        return await original(service, http)

    with switch_on(ending):
        __main__.main()


if __name__ == "__main__":
    main(sys.argv.pop())
