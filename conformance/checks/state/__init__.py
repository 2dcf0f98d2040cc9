"""Requests beside and behind each other, and bodies that arrive in pieces."""
