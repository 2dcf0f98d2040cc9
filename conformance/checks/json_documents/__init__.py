"""The JSON of the base protocol: the content of answers and requests, and the JSON text itself."""

ORDER = ("answers", "data", "exact_numbers", "coerced_elements", "written_requests", "endpoints", "model_versions")
