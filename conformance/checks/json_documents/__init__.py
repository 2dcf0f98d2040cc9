"""The JSON of the base protocol: what answers say, what requests may say, and the text itself."""

ORDER = ("answers", "data", "coerced_elements", "written_requests", "endpoints")
