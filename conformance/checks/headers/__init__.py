"""The inference header, Content-Length and Content-Type, on both sides."""

ORDER = (
    *("request_headers", "content_types", "answer_headers", "error_headers", "answer_length"),
    *("wrong_headers", "repeated_headers"),
)
