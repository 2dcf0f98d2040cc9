"""What a server withstands: hostile requests, sent only under `--conformance-robustness`; no verdict rests on them.

Every check sends something hostile between two plain requests (`expect_still_serving`). What comes of it is one of three things:
an answer, a refusal, or the end of the connection, and each check says which of these will do. What has ended real
servers is `dangerous` here, too. Requests that other areas judge already are not sent once more.
"""

ORDER = ("framing", "broken_connections", "large_bodies", "odd_values")
