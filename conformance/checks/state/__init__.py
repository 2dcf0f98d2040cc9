"""Requests beside and behind each other, and bodies that arrive in pieces."""

ORDER = (
    "isolation",
    "forms_together",
    "like_requests",
    "options_left_over",
    "bodies_in_pieces",
    "content_codings",
    "connections",
    "unread_bodies",
    "expectations",
)
