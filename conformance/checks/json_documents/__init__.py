"""The JSON of the base protocol: what answers say, what requests may say, and the text itself."""

ORDER = (
    "answer_members",
    "listed_outputs",
    "ids",
    "data",
    "element_values",
    "written_requests",
    "strings_and_numbers",
    "versioned_paths",
    "plain_requests",
)
