"""The inference header, Content-Length and Content-Type, on both sides."""

ORDER = ("request_headers", "answer_headers", "answer_length", "wrong_headers")
