"""The inference header, Content-Length and Content-Type, of requests and answers."""

ORDER = ("requests", "usual_headers", "answers", "wrong_headers")
