"""The inference header, Content-Length and Content-Type, on both sides."""

ORDER = ("requests", "answers", "wrong_headers")
