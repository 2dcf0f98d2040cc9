"""The JSON of the base protocol: what answers say, what requests may say, and the text itself."""

ORDER = ("plain_requests", "answer_members", "listed_outputs", "ids", "data", "strings_and_numbers")
