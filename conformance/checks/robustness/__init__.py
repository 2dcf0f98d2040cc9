"""Robustness: hostile requests, sent only with `--conformance-robustness`; they do not affect the verdict.

Every check sends something hostile between two plain requests (`expect_still_serving`). The result is an answer, a
refusal, or the end of the connection; each check states which of these are allowed. Rows that have crashed real servers
are marked `dangerous`. Requests that other areas judge are not repeated here.
"""

ORDER = ("framing", "broken_connections", "large_bodies", "odd_values")
