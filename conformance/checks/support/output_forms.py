"""In which form an output comes, by the two parameters that decide it."""

from __future__ import annotations

from typing import Any

from conformance.wire.request import ABSENT

UNLISTED = "unlisted"


# (binary_data_output, how the output is listed: unlisted, or the value of its binary_data)
# -> (the form in which it comes, the requirement that decides); the contested cell has no entry.
TABLE: dict[tuple[Any, Any], tuple[str, str]] = {
    (ABSENT, UNLISTED): ("json", "BIN-BDO-N"),
    (ABSENT, ABSENT): ("json", "BIN-OUT-N"),
    (ABSENT, False): ("json", "BIN-OUT-F"),
    (ABSENT, True): ("binary", "BIN-OUT-T"),
    (False, UNLISTED): ("json", "BIN-BDO-F"),
    (False, ABSENT): ("json", "BIN-OUT-N"),
    (False, False): ("json", "BIN-OUT-F"),
    (False, True): ("binary", "BIN-BDO-OVT"),
    (True, UNLISTED): ("binary", "BIN-BDO-T"),
    (True, False): ("json", "BIN-BDO-OVF"),
    (True, True): ("binary", "BIN-OUT-T"),
}
