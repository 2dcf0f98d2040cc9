"""How a server refuses: with an error status, with an error object, and without harm to what comes next."""

ORDER = ("impossible", "refusal_form", "afterwards", "overflowing_data")
