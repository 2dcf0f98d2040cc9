"""Sequential, pipelined and concurrent requests, and bodies that arrive in pieces."""

ORDER = (
    "isolation",
    "in_flight",
    "like_requests",
    "bodies_in_pieces",
    "content_codings",
    "connections",
    "idle_connections",
    "waiting_clients",
)
