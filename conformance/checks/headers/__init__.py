"""The inference header, Content-Length and Content-Type, of requests and answers."""

ORDER = ("requests", "answers", "wrong_headers")
