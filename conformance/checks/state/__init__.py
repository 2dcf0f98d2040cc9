"""Requests beside and behind each other, and bodies that arrive in pieces."""

ORDER = ("isolation", "bodies_in_pieces", "content_codings", "connections", "unread_bodies", "expectations")
