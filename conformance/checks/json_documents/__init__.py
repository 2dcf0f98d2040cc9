"""The JSON of the base protocol: what answers say, what requests may say, and the text itself."""

ORDER = (
    "plain_requests",
    "answer_members",
    "listed_outputs",
    "ids",
    "data",
    "written_requests",
    "element_values",
    "strings_and_numbers",
    "versioned_paths",
)
