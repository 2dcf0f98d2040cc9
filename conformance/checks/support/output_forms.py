"""In which form an output comes, by the two parameters that decide it."""

from __future__ import annotations

from typing import Any

from conformance.wire.request import ABSENT

UNLISTED = "unlisted"


# (binary_data_output, how the output is listed: unlisted, or the value of its binary_data)
# -> (the form in which it comes, the requirement that decides); the contested cell has no entry.
TABLE: dict[tuple[Any, Any], tuple[str, str]] = {
    (ABSENT, UNLISTED): ("json", "BIN-ALL-UNSET"),
    (ABSENT, ABSENT): ("json", "BIN-OUTPUT-UNSET"),
    (ABSENT, False): ("json", "BIN-OUTPUT-FALSE"),
    (ABSENT, True): ("binary", "BIN-OUTPUT-TRUE"),
    (False, UNLISTED): ("json", "BIN-ALL-FALSE"),
    (False, ABSENT): ("json", "BIN-OUTPUT-UNSET"),
    (False, False): ("json", "BIN-OUTPUT-FALSE"),
    (False, True): ("binary", "BIN-TRUE-OVERRIDES"),
    (True, UNLISTED): ("binary", "BIN-ALL-TRUE"),
    (True, False): ("json", "BIN-FALSE-OVERRIDES"),
    (True, True): ("binary", "BIN-OUTPUT-TRUE"),
}
