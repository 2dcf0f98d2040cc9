"""The JSON of the base protocol: what answers say, what requests may say, and the text itself."""

ORDER = (
    "answer_members",
    "listed_outputs",
    "ids",
    "data",
    "element_values",
    "coerced_elements",
    "written_requests",
    "strings_and_numbers",
    "versioned_paths",
    "model_versions",
    "plain_requests",
)
