"""How a server refuses: with an error status, with an error object, and without harm to what comes next."""

ORDER = (
    *("impossible", "against_the_metadata", "repeated_tensors", "refusal_form", "wrong_methods", "unlisted_versions"),
    *("afterwards", "overflowing_data"),
)
